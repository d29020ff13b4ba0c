"""Language models: providers, capabilities, credentials and metering."""
