"""What the hooks of AI tools send and expect: pure, one module a tool."""
