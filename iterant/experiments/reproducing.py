"""Making a table or a figure: what is missing, how long it takes, what a small machine leaves out.

>>> wanted = missing(EXPERIMENTS["table-prefix-peaks"], records, seeds=1)
>>> estimate(wanted)                                   # seconds on an H200
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from iterant.experiments.campaign import campaign
from iterant.experiments.catalogue import Experiment
from iterant.experiments.measuring import Say
from iterant.experiments.models import MODELS, Unit, usual_seconds
from iterant.experiments.records import Records
from iterant.runs.files import PathLike
from iterant.training.stopping import seconds

SMALLER: dict[str, Any] = {"width": 32, "validate_every": 5, "watch_every": 0}
"""What is made smaller where there is no GPU: fields of the recipe."""

SMALLER_TESTS = 0.05
"""The share of every test set that is thought about then."""

_TESTING = 0.2
"""The share of the time that is kept for tests then."""


def missing(experiment: Experiment, records: Records, seeds: int | None = None) -> list[Unit]:
    """Units that are not recorded yet: a seed of every model, then the next."""
    models = [model for model in experiment.models if model.available]
    most = max((seeds or model.seeds for model in models), default=0)
    return [
        Unit(model.key, seed)
        for seed in range(most)
        for model in models
        if seed < (seeds or model.seeds) and f"{model.key}-s{seed}" not in records.names
    ]


def estimate(units: Sequence[Unit]) -> float:
    """Seconds on an H200, one after the other, from measured costs of an update."""
    return sum(usual_seconds(MODELS[unit.model]) for unit in units)


def produce(
    units: Sequence[Unit],
    *,
    out: PathLike,
    device: str,
    budget: str | float | None,
    small: bool,
    say: Say,
    data: str | None = None,
) -> list[Unit]:
    """Train and test these units, records into ``out``; returns those there was no time for.

    ``small``: on a machine without a GPU, everything smaller; every unit then gets its share of
    the budget, and one that is cut off is tested as it is.
    """
    if not small:
        return campaign(
            units, out=out, device=device, time_limit=budget, precision="fp16", say=say, data=data,
            enough_time=lambda unit, left: left > 0.6 * usual_seconds(MODELS[unit.model]),
        )  # fmt: skip
    return campaign(
        units, out=out, runs="runs/reduced", device=device, time_limit=budget,
        reserve=0.0 if budget is None else _TESTING * seconds(budget),
        reduced=SMALLER, share=SMALLER_TESTS, fair=True, unfinished=True, say=say, data=data,
    )  # fmt: skip
