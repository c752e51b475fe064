"""Real Kafka clusters, made by seed: what happens to them, the truth of their clients and disks, and what the judge says."""
