"""How a log line is written: dates, patterns, JSON, and what other programs put in front of it."""
