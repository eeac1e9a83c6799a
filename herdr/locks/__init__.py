"""Write locks: who may change what, decided in `seq` order by the bus's writer and kept as a fold of the log."""
