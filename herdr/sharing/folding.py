"""Events into messages of sessions, and into what is kept in mind of each session."""
