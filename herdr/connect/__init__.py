"""How the configuration files of AI tools are changed, and changed back: pure."""
