"""What the gateway says to backends of the kinds `llamacpp` and `openai`, and what it hears from them. Pure."""
