"""Mazes: the task, grids of cells, and mazes in pictures."""
