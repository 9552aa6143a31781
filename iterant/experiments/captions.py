"""What stands below a figure: how many seeds its lines are means of, and that none was left out.

>>> caption(EXPERIMENTS["fig-depth"], records)
'Means over all finished runs, none filtered out: 5 seeds of m = 30; 3 seeds of m = 10, m = 20 …'
"""

from __future__ import annotations

from collections.abc import Sequence

from iterant.experiments.layout import Experiment, Panel
from iterant.experiments.measures import Changes, curves_of_all
from iterant.experiments.models import MODELS
from iterant.experiments.records import Records
from iterant.experiments.timed import Timed

_OF = "Means over all finished runs, none filtered out"
_AT_REST = (
    " A line of ‖Δφ‖ that ends has come to rest: its change is 0, which has no place on the axis."
)


def caption(experiment: Experiment, records: Records) -> str:
    """The line below its figure; panels that do not have the same seeds are named."""
    told: dict[str, list[str]] = {}
    for panel in experiment.panels:
        if not panel.grid:  # whose curves are a panel of their own
            told.setdefault(_seeds(panel, records), []).append(panel.title)
    rest = _AT_REST if any(_rests(panel, records) for panel in experiment.panels) else ""
    rest += "".join(_lost(panel, records) for panel in experiment.panels)
    if len(told) == 1:
        return f"{_OF}: {next(iter(told))}.{rest}"
    parts = [f"{'; '.join(where)}: {seeds}." for seeds, where in told.items()]
    return f"{_OF}. {' '.join(parts)}{rest}"


def caption_by_time(experiment: Experiment, groups: Sequence[Timed]) -> str:
    """The same of networks that had a time each."""
    counts = {
        count
        for group in groups
        for panel in experiment.panels
        for key in panel.models
        if (count := len(curves_of_all(panel.measure, group.records.of(key))))
    }
    least, most = min(counts), max(counts)
    return f"{_OF}: {_number(most) if least == most else f'{least} to {most} seeds'} of each."


def _rests(panel: Panel, records: Records) -> bool:
    """Whether all seeds of a model come to a change of nothing."""
    if not isinstance(panel.measure, Changes):
        return False
    drawn = [panel.measure.curves(records.of(key)) for key in panel.models]
    return any(curves and not any(curve[-1] for curve in curves) for curves in drawn)


def _lost(panel: Panel, records: Records) -> str:
    """Of which models features overflow before the end: a mean falls where its largest is gone."""
    if not isinstance(panel.measure, Changes):
        return ""
    told = []
    for key in panel.models:
        ends = panel.measure.features(records.of(key))
        if lost := sum(end.get("broken", 0) for end in ends):
            told.append(f"{lost} of {sum(sum(end.values()) for end in ends)} of {_name(key)}")
    if not told:
        return ""
    return f" Problems whose features overflow are left out from there on: {_list(told)}."


def _seeds(panel: Panel, records: Records) -> str:
    """Of every model of a panel, those with as many together."""
    counted: dict[int, list[str]] = {}
    names = panel.names or tuple(map(_name, panel.models))
    for key, name in zip(panel.models, names, strict=True):
        count = len(curves_of_all(panel.measure, records.of(key)))
        counted.setdefault(count, []).append(name)
    missing = counted.pop(0, [])
    if not counted:
        return "not run yet"
    alike = len(counted) == 1 and not missing
    parts = [
        f"{_number(count)} of {'each' if alike else _list(counted[count])}"
        for count in sorted(counted, reverse=True)
    ]
    return "; ".join([*parts, *([f"not run: {_list(missing)}"] if missing else [])])


def _number(count: int) -> str:
    return "one seed" if count == 1 else f"{count} seeds"


def _name(key: str) -> str:
    model = MODELS[key]
    none = model.alpha is None or model.label == "FF"
    return model.label if none else f"{model.label} α = {model.alpha:g}"


def _list(names: Sequence[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last
