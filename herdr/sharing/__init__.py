"""Shared context at work: the indexer's process, sessions folded from the log, artifacts, snapshots."""
