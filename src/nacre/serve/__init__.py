"""The daemon, hooks, HTTP server and MCP server."""
