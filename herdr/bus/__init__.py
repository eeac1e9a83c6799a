"""The event bus: classify, debounce, rate limit, lanes, one writer, a log, followers as cursors over it."""
