"""The fused form of a local rule computes what the sparse form computes, iterations ahead.

The kernel itself needs Triton: on a GPU, or anywhere with TRITON_INTERPRET=1.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from small_networks import local_rule, maze_inputs
from torch import Tensor

import iterant
from iterant.engine import After, last, think
from iterant.halting import Rule, StableAnswer
from iterant.nets import LocalRule, build
from iterant.nets.fast import FusedRule, SparseRule, accelerate

MAZES = {"dims": 2, "channels": 3, "stem": 2, "masked": True, "readout": "argmax-open"}
STRINGS = {"dims": 1, "channels": 1, "isotropic": False}


class Emulated(FusedRule):
    """Iterates by plain operations instead of the kernel, and counts iterations."""

    launched = 0

    def _run_iterations(
        self, features: Tensor, following: Sequence[Tensor], changes: Sequence[Tensor]
    ) -> None:
        for after, change in zip(following, changes, strict=True):
            self.launched += 1
            parts = features.view(len(features), -1, self._part_channels)
            table = self._table.long()
            seen = torch.stack([one[reads] for one, reads in zip(parts, table, strict=True)])
            hidden = (seen.flatten(2) @ self._sight + self._recall_term).relu()
            after.copy_((hidden @ self._mix + self._bias).tanh() * self._is_cell)
            change[: len(features)] = (after - features).abs().flatten(1).amax(dim=1)
            features = after


def shipped() -> LocalRule:
    net = iterant.load("mazes-messages")
    assert isinstance(net, LocalRule)
    return net


def mazes(count: int = 6, size: int = 13) -> Tensor:
    return maze_inputs(count, size).float()


def check_same(one: FusedRule, other: FusedRule | SparseRule, inputs: Tensor, steps: int) -> None:
    both = zip(think(one, inputs, steps=steps), think(other, inputs, steps=steps), strict=True)
    for ours, theirs in both:
        assert torch.allclose(ours.features, theirs.features, atol=1e-5)
        assert one.last_change is not None
        assert other.last_change is not None
        assert torch.allclose(one.last_change, other.last_change, atol=1e-5)


def test_every_iteration_is_that_of_the_sparse_form() -> None:
    net, inputs = shipped(), mazes()
    inputs[2] = 0
    fast = Emulated(net)
    check_same(fast, SparseRule(net), inputs, 40)
    assert fast.launched == 96, "two blocks of 32, and the one after them"


@pytest.mark.parametrize("halting", [None, StableAnswer(5)])
def test_samples_that_stop_cause_no_recomputation(
    halting: Rule | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    net, inputs = shipped(), mazes(10)
    sparse = iterant.solve(net, inputs, max_steps=400, rule=halting)
    fast = Emulated(net)
    monkeypatch.setattr("iterant.solving.accelerate", lambda *_, **__: fast)
    answer = iterant.solve(net, inputs, max_steps=400, rule=halting)
    assert torch.equal(answer.prediction, sparse.prediction)
    assert torch.equal(answer.steps, sparse.steps)
    assert len(set(answer.steps.tolist())) > 4
    assert fast.launched == -(-int(answer.steps.max()) // 32) * 32 + 32


def test_interventions_on_features_apply() -> None:
    net, inputs = local_rule().float(), mazes()
    halve = After(20, features=lambda features: features / 2)
    with torch.no_grad():
        plain = last(think(net, inputs, steps=25, intervene=[halve]))
        quick = last(think(Emulated(net), inputs, steps=25, intervene=[halve]))
    assert torch.allclose(plain.logits, quick.logits, atol=1e-5)


def device_for_triton() -> torch.device:
    if importlib.util.find_spec("triton") is None:
        pytest.skip("Triton is not installed")
    if torch.cuda.is_available():
        return torch.device("cuda")
    if os.environ.get("TRITON_INTERPRET") == "1":
        return torch.device("cpu")
    pytest.skip("the kernel needs a GPU, or TRITON_INTERPRET=1")


@pytest.mark.parametrize(
    "config",
    [
        MAZES,
        {**MAZES, "messages": True, "width": 24, "hidden": 80},
        {**MAZES, "messages": True, "width": 18, "hidden": 35, "isotropic": False},
        STRINGS,
    ],
    ids=str,
)
def test_the_kernel_computes_an_iteration(config: dict[str, Any]) -> None:
    device = device_for_triton()
    net: Any = build("local-rule", config, seed=4)
    if config["dims"] == 2:
        inputs = mazes(3, size=5)
        inputs[1] = 0
    else:
        inputs = torch.randn(3, 1, 90, generator=torch.Generator().manual_seed(1))
    net, inputs = net.to(device), inputs.to(device)
    check_same(FusedRule(net), Emulated(net), inputs, 5)
    with torch.no_grad():
        for weight in net.mix.parameters():
            weight.fill_(torch.nan)
    broken = FusedRule(net)
    next(think(broken, inputs, steps=1))
    assert broken.last_change is not None
    assert not broken.last_change[0].isfinite(), "NaN counts as changed"


def test_accelerate_chooses_it_on_cuda() -> None:
    if not torch.cuda.is_available():
        pytest.skip("needs a GPU")
    device_for_triton()
    net, inputs = shipped().cuda(), mazes().cuda()
    assert isinstance(accelerate(net, inputs), FusedRule)
    assert accelerate(net.double(), inputs.double()) is net
    on_cpu = iterant.solve(shipped(), inputs.cpu(), max_steps=400)
    on_gpu = iterant.solve(shipped().cuda(), inputs, max_steps=400)
    assert torch.equal(on_gpu.prediction.cpu(), on_cpu.prediction)
    assert torch.equal(on_gpu.settled.cpu(), on_cpu.settled)
    assert int((on_gpu.steps.cpu() - on_cpu.steps).abs().max()) <= 1
