"""What is known about a shipped network: a card beside its weights.

    >>> card("mazes").figures[59].solved
    1000
    >>> print(written(card("mazes")))

The card is data in the weights' ``config.json``; ``CARD.md`` is the same for people. Every figure
says how many problems, how many iterations and how sure one may be. Figures are of the weights as
they ship; what was measured before they were stored stands apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import torch

from iterant.errors import DataError
from iterant.evaluation.curve import wilson
from iterant.formatting import markdown_table, size_text
from iterant.io import read_weights
from iterant.tasks.protocol import Size
from iterant.zoo.loading import folder_of

CARD = "CARD.md"

_HEADINGS = ("size", "problems", "seed", "iterations", "wholly right (95 % interval)",
             "after twice as many")  # fmt: skip


@dataclass(frozen=True)
class Figure:
    """How a network did on problems of one size."""

    problems: int
    iterations: int
    solved: int
    twice: int | None = None
    """Solved after twice the iterations, if it was looked at"""
    seed: int = 7
    """Of the test problems"""

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the share that is solved."""
        low, high = wilson(torch.tensor(self.solved), self.problems).tolist()
        return low, high


@dataclass(frozen=True)
class Earlier:
    """What was measured of a network before it was stored as it ships."""

    what: str
    """Of which weights, where"""
    results: tuple[str, ...]
    figures: dict[Size, Figure]


@dataclass(frozen=True)
class Card:
    """Where a network comes from and what it can do.

    >>> card("mazes").figures[59].solved
    1000
    """

    name: str
    task: str
    parameters: int
    trained_on: str
    how: str
    command: str
    commit: str
    seed: int
    hardware: str
    results: tuple[str, ...]
    """Files in results/ that hold these figures with all their circumstances"""
    figures: dict[Size, Figure] = field(default_factory=dict)
    """By size; of puzzles a range (600_000, 700_000)"""
    failures: str = "none seen in these tests"
    pictures: dict[str, str] = field(default_factory=dict)
    """Files beside the card, and what each of them shows"""
    notes: tuple[str, ...] = ()
    earlier: Earlier | None = None

    def described(self) -> dict[str, Any]:
        """All of it, as JSON holds it."""
        made = asdict(self)
        made["figures"] = _by_text(made["figures"])
        if made["earlier"] is None:
            del made["earlier"]
        else:
            made["earlier"]["figures"] = _by_text(made["earlier"]["figures"])
        return made


def size_of(text: str) -> Size:
    """The size that a text means."""
    ends = tuple(map(int, text.split(":")))
    if len(ends) not in (1, 2):
        raise ValueError(f"{text!r} is no size")
    return ends[0] if len(ends) == 1 else (ends[0], ends[1])


def card(name: str) -> Card:
    """The card of a shipped network, or of any folder that has one."""
    config, _ = read_weights(folder_of(name))
    found = config.get("card")
    if not isinstance(found, Mapping):
        raise DataError(f"{name} has no card; its weights were not written by scripts/ship")
    try:
        parts: dict[str, Any] = {key: tuple(found[key]) for key in ("results", "notes")}
        parts |= {"figures": _by_size(found["figures"]), "pictures": dict(found["pictures"])}
        if (before := found.get("earlier")) is not None:
            parts["earlier"] = Earlier(
                before["what"], tuple(before["results"]), _by_size(before["figures"])
            )
        return Card(**{**found, **parts})
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise DataError(f"the card of {name} is not one of this version ({error})") from error


def written(made: Card) -> str:
    """The card as a page in Markdown."""
    return "\n".join(
        [
            f"# {made.name}",
            "",
            f"A network for {made.task} with {made.parameters:,} parameters.",
            f'`iterant.load("{made.name}")`',
            "",
            f"- **Trained on**: {made.trained_on}",
            f"- **How**: {made.how}",
            f"- **Command**: {_command(made.command)}",
            f"- **Commit**: {made.commit} (recipes are named as they were there; they change)",
            f"- **Seed**: {made.seed}",
            f"- **Hardware**: {made.hardware}",
            f"- **Figures from**: {_files(made.results)}",
            *(f"- {note}" for note in made.notes),
            "",
            "Tested without a filter, after a fixed number of iterations; the seed is the test's:",
            "",
            *_table(made.figures),
            *(_before(made.earlier) if made.earlier else ()),
            "",
            f"**Known failures**: {made.failures}",
            *(f"\n![{caption}]({file})\n\n*{caption}*" for file, caption in made.pictures.items()),
            "",
        ]
    )


def _before(earlier: Earlier) -> list[str]:
    head = f"Before, {earlier.what} ({_files(earlier.results)}):"
    return ["", head, "", *_table(earlier.figures)]


def _table(figures: Mapping[Size, Figure]) -> list[str]:
    """A row a size, the easiest first."""
    rows = [
        [
            size_text(size),
            f"{figure.problems:,}",
            str(figure.seed),
            f"{figure.iterations:,}",
            _percent(figure),
            "not measured" if figure.twice is None else f"{figure.twice:,}",
        ]
        for size, figure in sorted(figures.items(), key=_easiest_first)
    ]
    return markdown_table(_HEADINGS, rows)


def _files(results: tuple[str, ...]) -> str:
    return ", ".join(f"`results/{name}.json`" for name in results)


def _command(text: str) -> str:
    """What was typed, as code; words around it, where it was several commands, stay words."""
    return text if "`" in text else f"`{text}`"


def _by_text(figures: Mapping[Size, Any]) -> dict[str, Any]:
    return {size_text(size): value for size, value in figures.items()}


def _by_size(found: Mapping[str, Any]) -> dict[Size, Figure]:
    return {size_of(size): Figure(**value) for size, value in found.items()}


def _easiest_first(row: tuple[Size, Figure]) -> tuple[int, ...]:
    size, _ = row
    return (size,) if isinstance(size, int) else tuple(size)


def _percent(figure: Figure) -> str:
    low, high = figure.interval
    return (
        f"{figure.solved:,} = {100 * figure.solved / figure.problems:.2f} % "
        f"({100 * low:.2f} to {100 * high:.2f})"
    )
