"""Language models and embedding models: providers, capabilities, credentials and metering."""
