"""Chess puzzles: the task, boards and planes, notations, rules and puzzle files."""
