"""Correlation of the logs of several nodes: requests matched with sends, steps merged, gaps that show between two logs."""
