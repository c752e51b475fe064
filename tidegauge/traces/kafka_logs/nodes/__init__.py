"""What the lines of one node make of it: steps of its processes, replicas and controller, and where lines are missing."""
