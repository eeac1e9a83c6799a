"""Hooks at work: what a tool does becomes locks, events and messages."""
