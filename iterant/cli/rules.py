"""The halting rule that --rule, --patience and --tolerance name together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from iterant import names
from iterant.errors import UsageError

if TYPE_CHECKING:
    from iterant.halting import Rule


def rule_of(
    words: tuple[str, ...], word: str, patience: int | None, tolerance: float | None
) -> Rule | None:
    """The rule of that word, one of ``words``; None: the first of them as it is by default.

    >>> rule_of(("rest", "stable"), "stable", 5, None)
    StableAnswer(patience=5)
    """
    from iterant import halting

    if word not in words:
        raise UsageError(names.unknown("rule", word, words))
    made: dict[str, tuple[type[Rule], tuple[str, ...]]] = {
        "rest": (halting.Resting, ("tolerance",)),
        "stable": (halting.StableAnswer, ("patience",)),
        "plain": (halting.Fixed, ()),
        "max-confidence": (halting.MostConfident, ()),
    }
    kind, takes = made[word]
    given: dict[str, Any] = {
        name: value
        for name, value in (("patience", patience), ("tolerance", tolerance))
        if value is not None
    }
    for name in given:
        if name not in takes:
            takers = " or ".join(rule for rule in words if name in made[rule][1])
            raise UsageError(f"--{name} is for the rule {takers}, not for {word}; leave it out")
    return kind(**given) if given or word != words[0] else None
