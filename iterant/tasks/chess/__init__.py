"""Chess puzzles: the task, positions with their notation and rules, puzzle files."""
