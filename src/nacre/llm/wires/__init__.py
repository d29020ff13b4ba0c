"""One adapter for each way to reach a model."""
