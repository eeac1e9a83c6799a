"""One small module a language: its grammar, what to look for in it, and how its imports name files."""
