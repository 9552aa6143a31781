"""Mazes: the task, their generation, and mazes in pictures."""
