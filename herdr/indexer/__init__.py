"""The indexer: a program of its own, so that parsing and ranking never hold up the bus.

`python -m herdr.indexer` is started by the gateway, speaks frames over its standard input and output, and ends
with its input. It alone opens the graphs' files. Parsing is left to workers of its own (`parse_worker`).
"""
