"""Daemon, hooks, HTTP and MCP."""
