"""The event bus: classify, debounce, rate limit, lanes, one writer, a log, and followers as cursors over it."""
