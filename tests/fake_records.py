"""Records with known numbers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from iterant.experiments.records import keep_record


def figures(
    model: str,
    seed: int,
    curve: Sequence[int],
    *,
    size: str = "512",
    problems: int = 100,
    train: int = 100,
    finished: bool = True,
    **more: Any,
) -> dict[str, Any]:
    """The figures of one run: one test, and a training accuracy of ``train`` per cent."""
    return {
        "model": model, "seed": seed, "reduced": {}, "finished": finished, "precision": "fp16",
        "training": {"ended": "finished", "updates": 5, "of": 9,
                     "train": {"solved": train, "of": 100},
                     "validation": {"solved": train, "of": 100}},
        "tests": {size: {"problems": problems, "solved": list(curve)}},
        "studies": {},
        **more,
    }  # fmt: skip


def keep(folder: Path, model: str, seed: int, curve: Sequence[int], **how: Any) -> None:
    """Write the record of such a run to a separate file."""
    keep_record(folder, f"{model}-s{seed}", figures(model, seed, curve, **how), seed)


def keep_count(
    folder: Path,
    model: str,
    seed: int,
    size: str,
    solved: dict[int, int],
    *,
    problems: int = 100,
    name: str = "",
    test_precision: str = "fp32",
) -> None:
    """A record of a test without a curve: problems solved after some iterations."""
    test = {"problems": problems, "solved": {str(steps): count for steps, count in solved.items()}}
    about = {"model": model, "seed": seed, "finished": True, "reduced": {}, "studies": {},
             "test precision": test_precision,
             "tests": {f"{size}:{problems}:{min(solved)}": test}}  # fmt: skip
    keep_record(folder, name or f"measure-{model}-s{seed}-{size}", about, seed)
