"""One picture of the project, read by all tools: so far, which files there are and how they change."""
