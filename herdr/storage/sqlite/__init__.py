"""The log on SQLite: one writer connection, two read-only ones, and the upkeep between batches."""
