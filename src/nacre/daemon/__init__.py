"""The daemon of a home: holds index and model warm for whoever asks."""
