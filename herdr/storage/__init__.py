"""Implementations of what the subjects need to be kept: logs in memory and in SQLite."""
