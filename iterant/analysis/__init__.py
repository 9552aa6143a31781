"""Interventions on iterating networks, convergence, path independence and errors.

>>> report = analyze(["runs/m0"], what=["noise", "zeros", "swap"])
>>> report.save("analysis")

studies.py            all studies by name, their subjects, `analyze`
interventions.py      noise, zeros, swaps, flipped bits, moved ends; recovery from them
convergence.py        size of changes; settled, cycling, moving; path independence
errors_by_kind.py     accuracy by kind of problem, near misses
report.py             tables, files, plots, a page
"""

from iterant.analysis.convergence import Convergence, Independence, converge, independence
from iterant.analysis.errors_by_kind import ByKind, NearMisses, by_kind, near_misses
from iterant.analysis.interventions import Case, Recovery, recover
from iterant.analysis.report import Report
from iterant.analysis.studies import STUDIES, Subject, analyze

__all__ = [
    "STUDIES",
    "ByKind",
    "Case",
    "Convergence",
    "Independence",
    "NearMisses",
    "Recovery",
    "Report",
    "Subject",
    "analyze",
    "by_kind",
    "converge",
    "independence",
    "near_misses",
    "recover",
]
