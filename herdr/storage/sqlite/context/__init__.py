"""context.db: blobs, artifacts and session histories on one SQLite file."""
