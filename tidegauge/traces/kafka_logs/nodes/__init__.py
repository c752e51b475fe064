"""Turn the lines of one node into steps of its processes, replicas and controller, and find where lines are missing."""
