"""Benchmarks: Herdr and its peers side by side in one run. See docs/explanation/performance.md."""
