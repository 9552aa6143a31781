"""Figures as people read them: shares, durations, small curves and bars.

>>> share(0.9996), duration(75), sparkline([0, 1, 2], 3)
('99.9 %', '1:15', '▁▅█')
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from iterant.training.progress import Report

_STEPS = "▁▂▃▄▅▆▇█"
_LEAST = 1e-8


def share(value: float) -> str:
    """A share in per cent, rounded down: 100 % means all of them."""
    if not math.isfinite(value):
        return "?"
    return f"{math.floor(value * 1000 + 1e-6) / 10:.1f} %"


def duration(seconds: float) -> str:
    """A time as ``1:15`` or ``2:03:00``; a question mark where nobody knows."""
    if not math.isfinite(seconds) or seconds > 1e7:
        return "?"
    minutes, rest = divmod(round(max(0.0, seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def sparkline(values: Sequence[float], width: int, *, log: bool = False) -> str:
    """The values as a curve of at most ``width`` signs, each the mean of its part."""
    kept = [value for value in values if math.isfinite(value)]
    if log:
        kept = [math.log(max(value, _LEAST)) for value in kept]
    if len(kept) < 2:
        return ""
    parts = min(width, len(kept))
    edges = [len(kept) * part // parts for part in range(parts + 1)]
    means = [math.fsum(kept[low:high]) / (high - low) for low, high in pairwise(edges)]
    low, high = min(means), max(means)
    height = (high - low) or 1.0
    return "".join(_STEPS[round((mean - low) / height * (len(_STEPS) - 1))] for mean in means)


def bar(done: float, width: int, *, ascii_only: bool = False) -> str:
    """A bar so many signs wide, filled as far as the work is done."""
    full = round(min(max(done, 0.0), 1.0) * width)
    return ("#" * full + "-" * (width - full)) if ascii_only else "━" * full + "╌" * (width - full)


def watched(report: Report) -> list[str]:
    """What was seen on larger problems, a text a size: ``48: 97.0 % at 2m, 98.0 % at 4m``."""
    sizes: dict[str, list[str]] = {}
    for name in report.figures:
        size, _, what = name.partition(" ")
        if name not in report.monitoring:
            continue
        value = report.figures[name]
        said = f"change {value:.0e}" if what == "change" else f"{share(value)} {what}"
        sizes.setdefault(size, []).append(said)
    return [f"{size}: {', '.join(said)}" for size, said in sizes.items()]
