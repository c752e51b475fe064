"""Reports: the same Report as text, JSON, JUnit XML and one HTML page, each by the module of its format."""
