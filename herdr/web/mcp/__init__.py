"""The MCP server at `/mcp`: what models may do with Herdr by themselves, in both eras of the protocol."""
