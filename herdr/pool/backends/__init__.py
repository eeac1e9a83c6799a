"""The kinds of backends."""
