"""Interventions on iterating networks, convergence, path independence and errors.

studies.py         all studies by name, `analyze`; accuracy by kind of problem, near misses
interventions.py   noise, zeros, swaps, flipped bits, moved ends; recovery from them
convergence.py     size of changes; settled, cycling, moving; path independence
report.py          subjects and results, as tables, files, plots, a page
"""

from iterant.analysis.interventions import Trial
from iterant.analysis.report import Report, Result, Subject
from iterant.analysis.studies import STUDIES, analyze

__all__ = ["STUDIES", "Report", "Result", "Subject", "Trial", "analyze"]
