"""Interventions on iterating networks, convergence, path independence and errors.

>>> report = analyze(["runs/m0"], what=["noise", "zeros", "swap"])
>>> report.save("analysis")

studies.py            all studies by name, their subjects, `analyze`
interventions.py      noise, zeros, swaps, flipped bits, moved ends; recovery from them
convergence.py        size of changes; settled, cycling, moving; path independence
errors_by_kind.py     accuracy by kind of problem, near misses
report.py             results as tables, files, plots, a page
"""

from iterant.analysis.interventions import Trial
from iterant.analysis.report import Report, Result
from iterant.analysis.studies import STUDIES, Subject, analyze

__all__ = ["STUDIES", "Report", "Result", "Subject", "Trial", "analyze"]
