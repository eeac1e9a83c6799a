"""What `herdr doctor` looks at, by where it looks. A check returns findings; what it cannot see it says so."""
