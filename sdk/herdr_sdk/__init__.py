"""Publish to and follow a Herdr gateway."""
