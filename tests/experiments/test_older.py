"""A recipe that only asks more of runs that failed is the same for those that did not."""

from __future__ import annotations

from typing import Any

import pytest

from iterant.experiments.counts import has_changed, validations
from iterant.experiments.models import MODELS
from iterant.io.files import to_json


def recorded(**changes: Any) -> dict[str, Any]:
    now: dict[str, Any] = to_json(MODELS["mazes-ours"].recipe().described())
    del now["again_below"]  # as it was before runs could begin again
    return {**now, **changes}


@pytest.mark.parametrize(
    ("validated", "changed"),
    [([1.0, 0.99], False), ([1.0, 0.98], True), ([None], True), ([1.0, None], True), ([], True)],
)
def test_runs_that_would_not_have_begun_again_are_the_same(
    validated: list[float | None], changed: bool
) -> None:
    assert has_changed("mazes-ours", recorded(), validated) is changed
    assert has_changed("mazes-ours", recorded(rate=7.0), validated)


def test_what_seeds_validated_at_is_read_from_results() -> None:
    seeds = {"0": {"best": {"validation": 0.5}}, "1": {"best": {}}, "2": {"best": 3}, "3": {}}
    assert validations(seeds) == [0.5, None, None, None]
    assert validations(None) == validations([1]) == []
