"""The MCP server at `/mcp`."""
