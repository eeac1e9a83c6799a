"""Herdr: one event bus, one picture of the project and one local model for all of a developer's AI tools."""

__version__ = "0.1.0"
