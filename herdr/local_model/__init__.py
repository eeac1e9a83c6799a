"""A llama.cpp server of our own: found, started, watched over and ended with the gateway."""
