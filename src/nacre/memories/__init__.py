"""Memories: storing, comparing, linking, editing, retiring and forgetting."""
