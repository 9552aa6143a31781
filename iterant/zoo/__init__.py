"""Trained networks: shipped weights by name, and runs or weights folders by path.

loading.py   from a name or a path to a network, or to its card
weights/     the shipped weights, one folder per name
"""

from iterant.zoo.loading import Card, card, load, shipped

__all__ = ["Card", "card", "load", "shipped"]
