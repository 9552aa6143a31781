"""Networks with known answers: local rules with exact weights, and an untrained chess network.

    >>> exact_mazes(tmp_path / "mazes")            # a folder of weights
    >>> exact_sums(tmp_path / "sums")

Mazes: each cell computes, for each of its four sides, whether the start or the end lies beyond it
(its neighbour is one, or has one beyond a side other than the shared one). A cell is on the path
if it is start or end, or if two of its sides lead to one. In a maze without loops this depends
only on the cells beyond, so earlier features are forgotten after as many iterations as the longest
path has cells.

Prefix sums: each position takes the parity of its left neighbour (1 even, -1 odd, 0 unknown) and
flips it if its own bit is 1. Information moves one position per iteration.

tanh(20) is 1 in single precision, so features are exact.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from iterant.io import save_weights
from iterant.nets import DeepThinking, LocalRuleConfig, build, paper_net

_GAIN = 20.0
_OPPOSITE = (1, 0, 3, 2)
"""Of up, down, left, right: the order in which a local rule sees its neighbours."""


def exact_mazes(folder: Path) -> Path:
    """A network that solves any maze without loops."""
    width, channels = 5, 3
    config = LocalRuleConfig(
        dims=2, channels=channels, width=width, hidden=width, stem=2, isotropic=False,
        masked=True, readout="argmax-open",
    )  # fmt: skip
    is_end = torch.tensor([1.0, 1.0, -2.0])  # of red, green, blue: 1 for start and end, else 0
    sight = torch.zeros(width, 5 * width)
    recall = torch.zeros(width, 5 * channels)
    for side in range(4):
        there = (1 + side) * width
        onwards = [other for other in range(4) if other != _OPPOSITE[side]]
        sight[side, [there + other for other in onwards]] = 1
        recall[side, (1 + side) * channels : (2 + side) * channels] = is_end
    recall[4, :channels] = is_end
    head = torch.tensor([[0.0] * 5, [1.0, 1.0, 1.0, 1.0, 2.0]])
    return _saved(
        folder, config, "mazes", sight, recall, torch.zeros(width), torch.eye(width) * _GAIN,
        head, torch.tensor([1.5, 0.0]),
    )  # fmt: skip


def exact_sums(folder: Path) -> Path:
    """A network that solves any string of L bits in L iterations."""
    config = LocalRuleConfig(dims=1, channels=1, width=1, hidden=10, isotropic=False)
    # A row per hidden unit: weights of the left parity, left input and own input, and the bias.
    # With s = 1 for bit 0 and -1 for bit 1 (-2 times the input), the output is the left parity
    # times s, or s if there is no left neighbour (its input is 0).
    product = [(1, 0, 1, -1), (-1, 0, -1, -1), (1, 0, -1, -1), (-1, 0, 1, -1)]
    first = [
        (0, 0, 1, 0),
        (0, 1, 1, -1),
        (0, -1, 1, -1),
        (0, 0, -1, 0),
        (0, 1, -1, -1),
        (0, -1, -1, -1),
    ]
    rows = torch.tensor([*product, *first]).float()
    sight, recall = torch.zeros(10, 3), torch.zeros(10, 3)
    sight[:, 1] = rows[:, 0]
    recall[:, 0], recall[:, 1] = -2 * rows[:, 2], 2 * rows[:, 1]
    mix = torch.tensor([[1.0, 1, -1, -1, 1, -1, -1, -1, 1, 1]]) * _GAIN
    return _saved(
        folder, config, "prefix-sums", sight, recall, rows[:, 3], mix,
        torch.tensor([[1.0], [-1.0]]), torch.zeros(2),
    )  # fmt: skip


def untrained_chess(folder: Path) -> Path:
    """The paper's chess network, narrower and untrained, but large enough to run in a worker."""
    config = replace(paper_net("chess"), width=48)
    net = build(config.kind, config.described(), seed=3)
    assert isinstance(net, DeepThinking)
    with torch.no_grad():  # larger scores than at initialization, so that they change
        for weights in net.head.parameters():
            weights.mul_(3)
    described = {"kind": config.kind, "config": config.described(), "task": "chess"}
    return save_weights(folder, described, net.state_dict())


def _saved(
    folder: Path, config: LocalRuleConfig, task: str, sight: Tensor, recall: Tensor,
    recall_bias: Tensor, mix: Tensor, head: Tensor, head_bias: Tensor,
) -> Path:  # fmt: skip
    ones = (1,) * config.dims  # all kernels have size 1
    tensors = {
        "sight.weight": sight.view(*sight.shape, *ones),
        "recall.weight": recall.view(*recall.shape, *ones),
        "recall.bias": recall_bias,
        "mix.weight": mix.view(*mix.shape, *ones),
        "mix.bias": torch.zeros(config.width),
        "head.weight": head.view(*head.shape, *ones),
        "head.bias": head_bias,
    }
    return save_weights(
        folder, {"kind": config.kind, "config": config.described(), "task": task}, tensors
    )
