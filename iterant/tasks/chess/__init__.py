"""Chess puzzles: the task, positions and rules, puzzle files, other notations."""
