"""Trained networks: shipped weights by name, and runs or weights folders by path.

loading.py   from a name or a path to a network
weights/     the shipped weights, one folder per name
cards.py     their training and test results
"""

from iterant.zoo.cards import Card, card
from iterant.zoo.loading import load, shipped

__all__ = ["Card", "card", "load", "shipped"]
