"""Commands about language and embedding models: setup, keys, costs, traces."""
