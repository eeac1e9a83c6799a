"""The project graph of one workspace in one SQLite file, which only the indexer's process opens."""
