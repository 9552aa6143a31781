"""`scripts/measure-network` on tiny networks: its results, and the rows that they fill."""

from __future__ import annotations

import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from typing import Any

import pytest

import iterant
from iterant.experiments.catalogue import EXPERIMENTS
from iterant.experiments.records import read_records
from iterant.experiments.report import rows_of
from iterant.io import read_result

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "measure-network"


@pytest.fixture(scope="module")
def script() -> Any:
    spec = spec_from_loader("measure_network", SourceFileLoader("measure_network", str(SCRIPT)))
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny network of the paper's kind, trained for two updates from seed 3."""
    out = tmp_path_factory.mktemp("trained") / "mazes-recall-a0.01-s3"
    small: dict[str, Any] = {"width": 4, "head": (4,), "iterations": 2, "count": 40, "batch": 16}
    small |= {"epochs": 1, "watch_every": 0}
    iterant.train("mazes", recipe="paper", seed=3, out=out, device="cpu", **small)
    return out


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_a_run_of_the_papers_network_fills_its_row(
    script: Any, run: Path, precision: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = [str(run), "mazes", "201:1:2", "801:1:1", "--precision", precision,
             "--model", "mazes-recall-a0.01", "--results", str(tmp_path)]  # fmt: skip
    monkeypatch.setattr(sys, "argv", ["measure-network", *words])
    monkeypatch.setattr(type(iterant.registry.task("mazes")), "sample", small_mazes())
    nets, evaluate = [], script.evaluate_long

    def record_net(net: Any, *rest: Any, **how: Any) -> Any:
        nets.append(net)
        return evaluate(net, *rest, **how)

    monkeypatch.setattr(script, "evaluate_long", record_net)
    script.main()
    assert {weight.dtype for net in nets for weight in net.parameters()} == {
        iterant.registry.find("precision", precision)
    }
    result = read_result(tmp_path / "measure-mazes-mazes-recall-a0.01-s3.json")
    assert result["seed"] == 3, "from the configuration of the run"
    assert result["figures"]["test precision"] == precision
    assert result["figures"]["precision"] == "fp32", "of training, by the run's recipe"
    (record,) = read_records(tmp_path).all
    assert (record.model, record.seed) == ("mazes-recall-a0.01", 3)
    assert [count.size for count in record.counts] == ["201", "801"]
    theirs, _ = rows_of(EXPERIMENTS["mazes-801"], read_records(tmp_path))
    assert theirs["all seeds"] == "0.00 % after 1 and 2"


def small_mazes() -> Any:
    """Mazes of 9×9 instead of any size: 801×801 would take a minute to generate."""
    plain = type(iterant.registry.task("mazes")).sample

    def sample(self: Any, count: int, *, size: Any = None, seed: int = 0) -> Any:
        return plain(self, count, size=9, seed=seed)

    return sample
