"""Tasks at work: requests become errands of the bus's writer, its rulings become answers and timers."""
