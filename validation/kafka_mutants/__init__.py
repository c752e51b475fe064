"""Changed classes of a released Kafka as mutants: what the default run of `tidegauge drive --kafka` sees of them."""
