"""Cards: the training and test results of shipped networks.

    >>> card("mazes").figures[59].solved
    1000
    >>> print(card_markdown(card("mazes")))

A card is data in the ``config.json`` of the weights; ``CARD.md`` is the same as text. Every figure
has its number of problems, iterations and confidence interval. Figures are of the weights as they
ship; measurements before they were converted are separate (`Earlier`).
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
    """The test result on problems of one size."""

    problems: int
    iterations: int
    solved: int
    twice: int | None = None
    """Solved after twice the iterations, if measured"""
    seed: int = 7
    """Of the test problems"""

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % confidence interval of the accuracy."""
        low, high = wilson(torch.tensor(self.solved), self.problems).tolist()
        return low, high


@dataclass(frozen=True)
class Earlier:
    """Test results of a network before it was converted for shipping."""

    what: str
    """Which weights, measured where"""
    results: tuple[str, ...]
    figures: dict[Size, Figure]


@dataclass(frozen=True)
class Card:
    """The origin and the test results of a network.

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
    """Files in results/ with these figures"""
    figures: dict[Size, Figure] = field(default_factory=dict)
    """By size; for chess a range (600_000, 700_000)"""
    failures: str = "none seen in these tests"
    pictures: dict[str, str] = field(default_factory=dict)
    """Files beside the card, with captions"""
    notes: tuple[str, ...] = ()
    earlier: Earlier | None = None

    def described(self) -> dict[str, Any]:
        """The card as JSON."""
        content = asdict(self)
        if content["earlier"] is None:
            del content["earlier"]
        for part in (content, content.get("earlier")):
            if part is not None:
                part["figures"] = {size_text(s): figure for s, figure in part["figures"].items()}
        return content


def parse_size(text: str) -> Size:
    """The inverse of `size_text`."""
    ends = tuple(map(int, text.split(":")))
    if len(ends) not in (1, 2):
        raise ValueError(f"{text!r} is no size")
    return ends[0] if len(ends) == 1 else (ends[0], ends[1])


def card(name: str) -> Card:
    """The card of a shipped network, or of a folder."""
    config, _ = read_weights(folder_of(name))
    content = config.get("card")
    if not isinstance(content, Mapping):
        raise DataError(f"{name} has no card; its weights were not written by scripts/ship")
    try:
        parts: dict[str, Any] = {key: tuple(content[key]) for key in ("results", "notes")}
        parts |= {"figures": _figures(content["figures"]), "pictures": dict(content["pictures"])}
        if (before := content.get("earlier")) is not None:
            parts["earlier"] = Earlier(
                before["what"], tuple(before["results"]), _figures(before["figures"])
            )
        return Card(**{**content, **parts})
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise DataError(f"the card of {name} is not one of this version ({error})") from error


def card_markdown(card: Card) -> str:
    """The card as Markdown."""
    # A command is code, unless it is prose with code in it.
    command = card.command if "`" in card.command else f"`{card.command}`"
    before = []
    if card.earlier:
        head = f"Before, {card.earlier.what} ({_files(card.earlier.results)}):"
        before = ["", head, "", *_table(card.earlier.figures)]
    return "\n".join(
        [
            f"# {card.name}",
            "",
            f"A network for {card.task} with {card.parameters:,} parameters.",
            f'`iterant.load("{card.name}")`',
            "",
            f"- **Trained on**: {card.trained_on}",
            f"- **How**: {card.how}",
            f"- **Command**: {command}",
            f"- **Commit**: {card.commit} (recipes are named as they were there; they change)",
            f"- **Seed**: {card.seed}",
            f"- **Hardware**: {card.hardware}",
            f"- **Figures from**: {_files(card.results)}",
            *(f"- {note}" for note in card.notes),
            "",
            "Tested without a filter, after a fixed number of iterations; the seed is the test's:",
            "",
            *_table(card.figures),
            *before,
            "",
            f"**Known failures**: {card.failures}",
            *(f"\n![{caption}]({file})\n\n*{caption}*" for file, caption in card.pictures.items()),
            "",
        ]
    )


def _table(figures: Mapping[Size, Figure]) -> list[str]:
    rows = []
    for size, figure in sorted(figures.items(), key=_ends):
        (low, high), accuracy = figure.interval, 100 * figure.solved / figure.problems
        rows.append(
            [
                size_text(size),
                f"{figure.problems:,}",
                str(figure.seed),
                f"{figure.iterations:,}",
                f"{figure.solved:,} = {accuracy:.2f} % ({100 * low:.2f} to {100 * high:.2f})",
                "not measured" if figure.twice is None else f"{figure.twice:,}",
            ]
        )
    return markdown_table(_HEADINGS, rows)


def _ends(row: tuple[Size, Figure]) -> tuple[int, ...]:
    size, _ = row
    return (size,) if isinstance(size, int) else tuple(size)


def _files(results: tuple[str, ...]) -> str:
    return ", ".join(f"`results/{name}.json`" for name in results)


def _figures(content: Mapping[str, Any]) -> dict[Size, Figure]:
    return {parse_size(size): Figure(**figure) for size, figure in content.items()}
