"""Tasks that go from hand to hand: decided in `seq` order by the bus's writer and kept as a fold of the log."""
