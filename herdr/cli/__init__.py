"""The `herdr` command: one module for each group of subcommands."""
