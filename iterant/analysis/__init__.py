"""Interventions and what they show: recovery, convergence, path independence, near misses.

>>> report = analyze(["runs/m0"], what=["noise", "zeros", "swap"])
>>> report.save("analysis")

parts.py          a batch in parts, draws that a seed decides
recovery.py       how thinking goes on after an intervention
interventions.py  noise, zeros, swaps, flipped bits, moved ends
flips.py          recovery time against the index of a flipped bit
convergence.py    how much iterations change; settled, cycling, moving
paths.py          whether all starts lead to the same end
kinds.py          accuracy by kind of problem
misses.py         how wrong the wrong answers are
subjects.py       networks with their task and what is known of their training
studies.py        all studies by name
report.py         tables, files, pictures, a page
analyzing.py      every study on every network
"""

from iterant.analysis.analyzer import analyze
from iterant.analysis.convergence import Convergence, converge
from iterant.analysis.errors_by_kind import ByKind, NearMisses, by_kind, near_misses
from iterant.analysis.path_independence import Independence, independence
from iterant.analysis.recovery import Case, Recovery, recover
from iterant.analysis.report import Report
from iterant.analysis.studies import STUDIES, Subject

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
