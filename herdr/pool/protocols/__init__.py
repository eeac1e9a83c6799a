"""What clients and backends speak: bytes to neutral requests and chunks, and back. Pure, no I/O."""
