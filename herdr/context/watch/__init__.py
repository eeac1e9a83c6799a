"""Watching a workspace: notices from the kernel are hints, sweeps over the folder are the truth."""
