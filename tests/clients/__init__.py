"""The real Claude Code, Codex, opencode and Qwen Code against the gateway and a real llama.cpp; see `__main__`."""
