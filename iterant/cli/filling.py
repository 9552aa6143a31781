"""What `iterant reproduce` trains and tests where something is missing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from iterant.errors import RunError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import Console

    from iterant.experiments.layout import Experiment
    from iterant.experiments.models import Unit
    from iterant.experiments.records import Records


FEW = 12
"""Names that are told one by one."""


def fill(
    one: Experiment,
    results: Path,
    seeds: int | None,
    budget: str | None,
    device: str,
    data: str | None,
    screen: Console,
) -> bool:
    """Train and test what is missing; says whether it was made smaller."""
    from iterant.experiments.records import read_records
    from iterant.experiments.reproducing import (
        check_places,
        check_tests,
        missing,
        produce,
        tested_enough,
    )
    from iterant.training.start import use_device
    from iterant.training.stopping import seconds

    if budget is not None:
        seconds(budget)  # refused before anything is said
    small = use_device(device).type != "cuda"
    if not one.models:
        _count(one, results, seeds, budget, device, screen)
        return False
    out = results / ("reduced" if small else "runs")
    there = read_records(out)
    units = missing(one, tested_enough(one, there) if small else there, seeds)
    if not units:
        screen.print("every run is there already; give more --seeds for another")
        return small
    check_tests(one, data)
    check_places(out, small)
    before = {f"{record.model}-s{record.seed}" for record in there.unfinished()}
    begun = sum(unit.name in before for unit in units)
    units.sort(key=lambda unit: unit.name in before)  # those that had no time yet come first
    for line in _promised(one, units, begun, budget, out if small else None):
        screen.print(line, soft_wrap=True)
    try:
        left = produce(
            one, units, out=out, device=device, budget=budget, small=small, data=data,
            say=lambda text: screen.print(text, soft_wrap=True),
        )  # fmt: skip
    except KeyboardInterrupt:
        screen.print("what was trained is kept; the same command goes on from there")
        raise
    if left:
        names = _few([unit.name for unit in left])
        screen.print(f"not done: {names}; give the same command again", soft_wrap=True)
    if small and len(left) == len(units):
        raise RunError(f"no run of {one.name} could be recorded; the lines above say why")
    return small


def cut_off(one: Experiment, records: Records) -> str:
    """Which of its runs had no time to finish, though they were tested; "": none."""
    keys = {model.key for model in one.models}
    told = []
    for record in records.unfinished():
        if record.model in keys:
            training = record.figures["training"]
            done = f"{training.get('updates', 0):,} of {training.get('of', 0):,} updates"
            told.append(f"{record.model}-s{record.seed} ({done})")
    if not told:
        return ""
    return (
        f"cut off by their time, and tested as they were: {_few(told)}; the same command "
        "gives them more"
    )


def _few(names: Sequence[str]) -> str:
    """As many as a person reads, and how many more there are."""
    more = f" and {len(names) - FEW} more" if len(names) > FEW else ""
    return ", ".join(names[:FEW]) + more


def _promised(
    one: Experiment, units: Sequence[Unit], begun: int, budget: str | None, reduced: Path | None
) -> Iterator[str]:
    """What is going to be done, and how much smaller it is made where it goes to ``reduced``."""
    from iterant.cli.figures import duration
    from iterant.experiments.reproducing import SMALLER_TESTS, estimate, told

    yield (
        f"{'1 run is' if len(units) == 1 else f'{len(units)} runs are'} missing"
        + (f" ({begun} cut off before)" if begun else "")
        + f", about {duration(estimate(units))} on one H200"
        + (f"; here they get {budget}" if budget else "")
    )
    if reduced is not None:
        yield (
            f"there is no GPU here, so everything is made smaller: {told(one)}; "
            f"{100 * SMALLER_TESTS:g} % of every test set"
            + (", each run as long as its share of the time" if budget else "")
            + f"; such runs are kept in {reduced} and are no part of RESULTS.md"
        )


def _count(
    one: Experiment,
    results: Path,
    seeds: int | None,
    budget: str | None,
    device: str,
    screen: Console,
) -> None:
    """Train the networks whose runs are not here, and test all on problems without curves."""
    from iterant.cli.figures import duration
    from iterant.experiments.counting import count, estimate_counts, uncounted
    from iterant.experiments.counts import read_counts
    from iterant.experiments.records import read_records
    from iterant.experiments.reproducing import RUNS, check_places, produce
    from iterant.training.start import use_device
    from iterant.training.stopping import seconds

    wanted = uncounted(one, read_counts(results), seeds)
    if not wanted:
        screen.print("every network is tested already; give more --seeds for another")
        return
    if use_device(device).type != "cuda":
        raise UsageError(
            f"{one.name} takes about {duration(estimate_counts(wanted, RUNS))} of a GPU, and there "
            "is none here; test a run of your own by scripts/measure-network, with --model"
        )
    check_places(results / "runs", small=False)

    def say(text: str) -> None:
        screen.print(text, soft_wrap=True)

    def train(units: Sequence[Unit], out: Path) -> None:
        produce(one, units, out=out, device=device, budget=budget, small=False, say=say)

    say(f"{len(wanted)} tests are missing, about {duration(estimate_counts(wanted, RUNS))} on one "
        "H200, training included" + (f"; here they get {budget}" if budget else ""))  # fmt: skip
    try:
        left = count(
            wanted, read_records(results / "runs").whole, results=results, runs=RUNS, device=device,
            train=train, limit=None if budget is None else seconds(budget), say=say,
        )  # fmt: skip
    except KeyboardInterrupt:
        say("what was trained and tested is kept; the same command goes on from there")
        raise
    if left:
        names = _few([f"{test.unit.name} at {test.row.size}" for test in left])
        say(f"not done: {names}; give the same command again")
