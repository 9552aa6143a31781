"""Values become JSON, or a message says which one does not."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from iterant.errors import UsageError
from iterant.io.files import to_json

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(values)
@settings(deadline=None, max_examples=60)
def test_what_json_holds_already_comes_back_equal(value: Any) -> None:
    if "inf" in repr(value):
        assert json.dumps(to_json(value, nan_to_null=True), allow_nan=False)
    else:
        assert json.loads(json.dumps(to_json(value))) == value


def test_numbers_and_arrays_of_numpy_and_torch() -> None:
    given = {
        "a": np.float32(0.5),
        "b": np.arange(3),
        "c": torch.tensor(2),
        3: (torch.ones(2), Path("x") / "y"),
    }
    assert to_json(given) == {"a": 0.5, "b": [0, 1, 2], "c": 2, "3": [[1.0, 1.0], "x/y"]}


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, np.float64("nan")])
def test_what_is_no_number_is_refused_by_place_or_becomes_a_gap(value: float) -> None:
    with pytest.raises(UsageError, match=r"'best\.loss\[1\]'"):
        to_json({"best": {"loss": [1.0, value]}})
    assert to_json({"best": [1.0, value]}, nan_to_null=True) == {"best": [1.0, None]}


def test_other_objects_and_keys_are_refused_by_place() -> None:
    with pytest.raises(UsageError, match=r"a set as JSON at 'x'"):
        to_json({"x": {1}})
    with pytest.raises(UsageError, match=r"the key 1\.5"):
        to_json({1.5: 1})
