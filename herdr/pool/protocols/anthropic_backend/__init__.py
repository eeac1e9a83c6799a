"""What the gateway says to a backend that speaks Anthropic's Messages API, and what it hears from it."""
