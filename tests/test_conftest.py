"""The net under all tests: it must catch what it is there for."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

DRAWS = """
import random
import numpy as np
import torch

def test_python(): random.random()
def test_numpy(): np.random.rand()
def test_torch(): torch.rand(1)
def test_torch_seed(): torch.manual_seed(3)
def test_python_own(): random.Random(1).random()
def test_numpy_own(): np.random.default_rng(1).random()
def test_torch_own(): torch.rand(1, generator=torch.Generator().manual_seed(1))
"""


def test_global_randomness_fails_a_test(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(Path(__file__).with_name("conftest.py").read_text())
    pytester.makepyfile(DRAWS)
    # Another process: in this one the outer fixture would see the draws too.
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    result.assert_outcomes(passed=7, errors=4)
    for changed in ("random", "numpy.random", "torch.random"):
        result.stdout.fnmatch_lines_random([f"*the global state of {changed} was changed*"])
    result.stdout.no_re_match_line("ERROR .*_own.*")
