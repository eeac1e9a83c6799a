"""Sessions: one history of what was said to and by all tools, and a view of it that fits a budget. Pure."""
