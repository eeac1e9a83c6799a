"""Tasks at work: the table between the bus's writer, the clock and those who ask."""
