"""`python -m herdr` is the same as the `herdr` command."""

import sys

from herdr.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
