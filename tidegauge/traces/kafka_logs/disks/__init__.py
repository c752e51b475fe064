"""What brokers left on disk: segment files and checkpoints."""
