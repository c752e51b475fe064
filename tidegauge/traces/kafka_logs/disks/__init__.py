"""Read what brokers left on disk: segment files, dumps of them, and checkpoints."""
