"""Measurements of the shared context: the graph, maps, snapshots, and what all of it saves in tokens."""
