"""Mazes: the task, generation, edits, and mazes as text and pictures."""
