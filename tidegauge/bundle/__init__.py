"""One file with what a verdict and a story need of some logs, to be sent to somebody; its names may be replaced."""
