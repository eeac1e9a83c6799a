"""The project graph: what each file defines, imports and calls, and what follows from that. Pure."""
