"""Measurements of write locks: how long one decision takes, and how fast locks come and go over the wire."""
