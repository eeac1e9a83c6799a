"""The conformance suites of the Model Context Protocol against a gateway; see `__main__`."""
