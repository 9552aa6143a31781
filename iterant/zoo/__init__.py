"""Trained networks: shipped weights by name, and anything that was trained or imported by path.

>>> net = iterant.load("runs/m0")

loading.py   from a name or a path to a network
weights/     one folder of shipped weights a name
cards.py     what is known about them
"""

from iterant.zoo.cards import Card, card
from iterant.zoo.loading import load, shipped

__all__ = ["Card", "card", "load", "shipped"]
