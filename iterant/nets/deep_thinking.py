"""The paper's networks: Deep Thinking (DT), DT-Recall, and feed-forward networks of equal depth.

    >>> net = DeepThinking(PaperConfig(dims=2, channels=3, width=128))

A projection of the problem into features, a block of residual convolutions that is repeated (with
recall, after a convolution of features and problem together), and a head. Every convolution has
kernel size 3, padding 1 and no bias.

Shapes: B batch, C channels, W width, *S space.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from iterant import bounds, registry
from iterant.errors import NetError, UnknownName
from iterant.nets.protocol import NetConfig, NetModule, build, parameter_count

_CONVOLVE = {1: functional.conv1d, 2: functional.conv2d}
_EPS = 1e-6
"""Added to a mean square before dividing: features that are all zero stay zero."""
_MOST_LAYERS = 4096


@dataclass(frozen=True)
class PaperConfig(NetConfig):
    """The configuration of the paper's networks."""

    kind: ClassVar[str] = "deep-thinking"

    width: int
    recall: bool = True
    recall_relu: bool = False
    """A ReLU after the recall convolution: the authors have it in 1D, not in 2D."""
    head: tuple[int, ...] = (32, 8)
    """Channels of the hidden layers of the head."""
    classes: int = 2
    blocks: int = 2
    """Residual blocks per iteration, two convolutions each."""
    group_norm: bool = False
    bounded: bool = False
    """After every iteration each position's features are divided by their root mean square."""
    readout: str = "argmax"

    def __post_init__(self) -> None:
        object.__setattr__(self, "head", tuple(self.head))  # JSON holds a list
        self.check_sizes("channels", "width", "classes", "blocks")
        if not all(isinstance(width, int) and bounds.WIDTH.holds(width) for width in self.head):
            raise NetError(f"head must be whole numbers {bounds.WIDTH}, got {self.head!r:.50}")
        # A configuration may come from an untrusted file: building millions of layers takes hours.
        layers = len(self.head) + self.blocks * getattr(self, "depth", 1)
        if layers > _MOST_LAYERS:
            raise NetError(f"a network has at most {_MOST_LAYERS:,} blocks and layers in its head")
        if self.group_norm and self.width % 4:
            raise NetError(
                f"group norm has 4 groups, so the width must be a multiple of 4: {self.width}"
            )


def _conv(dims: int, inputs: int, outputs: int) -> nn.Conv1d | nn.Conv2d:
    conv = nn.Conv1d if dims == 1 else nn.Conv2d
    return conv(inputs, outputs, kernel_size=3, padding=1, bias=False)


class RecallConv(nn.Module):
    """The convolution of the concatenation [features, problem].

    It equals the sum of a convolution of the features and one of the problem. The second is the
    same at every iteration, so it is computed once (`recall_term`). Both are slices of one weight.
    """

    def __init__(self, dims: int, width: int, channels: int) -> None:
        super().__init__()
        self.dims, self.width = dims, width
        self.weight = nn.Parameter(torch.empty(width, width + channels, *[3] * dims))
        nn.init.kaiming_uniform_(self.weight, a=math.sqrt(5))  # as nn.ConvNd does

    def recall_term(self, inputs: Tensor) -> Tensor:
        """The convolution of the problem, (B, C, *S) to (B, W, *S)."""
        return _CONVOLVE[self.dims](inputs, self.weight[:, self.width :], padding=1)

    def forward(self, features: Tensor, recall_term: Tensor) -> Tensor:
        """The convolution of the features plus that of the problem; all (B, W, *S)."""
        weight = self.weight[:, : self.width]
        return _CONVOLVE[self.dims](features, weight, padding=1) + recall_term


class ResidualBlock(nn.Module):
    """Two convolutions with a skip: relu(x + conv(relu(conv(x)))), group norm optional."""

    def __init__(self, config: PaperConfig) -> None:
        super().__init__()
        dims, width = config.dims, config.width
        self.conv1, self.conv2 = _conv(dims, width, width), _conv(dims, width, width)
        self.norm = nn.GroupNorm(4, width, affine=False) if config.group_norm else nn.Identity()

    def forward(self, features: Tensor) -> Tensor:
        """(B, W, *S) to the same shape."""
        inner = torch.relu(self.norm(self.conv1(features)))
        return torch.relu(features + self.norm(self.conv2(inner)))


def _blocks(config: PaperConfig) -> nn.Sequential:
    """The residual blocks of one iteration."""
    return nn.Sequential(*(ResidualBlock(config) for _ in range(config.blocks)))


class PaperNet(NetModule):
    """The parts that recurrent and feed-forward networks share."""

    config: PaperConfig

    def __init__(self, config: PaperConfig) -> None:
        """Build projection, recall and head; subclasses add the blocks."""
        super().__init__(config)
        dims, width, channels = config.dims, config.width, config.channels
        self.projection = _conv(dims, channels, width)
        self.recall = RecallConv(dims, width, channels) if config.recall else None
        layers: list[nn.Module] = []
        for before, after in pairwise((width, *config.head, config.classes)):
            layers += [_conv(dims, before, after), nn.ReLU()]
        self.head = nn.Sequential(*layers[:-1])

    def read(self, inputs: Tensor) -> Tensor | None:
        """The recall term (B, W, *S), the same at every iteration; None without recall."""
        return None if self.recall is None else self.recall.recall_term(inputs)

    def start(self, inputs: Tensor) -> Tensor:
        """The projection of the problem, (B, C, *S) to (B, W, *S)."""
        return torch.relu(self.projection(inputs))

    def blocks_of(self, index: int) -> nn.Module:
        """The residual blocks of an iteration."""
        raise NotImplementedError

    def step(self, features: Tensor, memory: Tensor | None, index: int) -> Tensor:
        """One iteration, (B, W, *S) to the same shape: recall, then residual blocks."""
        if self.recall is not None and memory is not None:
            features = self.recall(features, memory)
            features = torch.relu(features) if self.config.recall_relu else features
        after: Tensor = self.blocks_of(index)(features)
        return self.bound(after)

    def bound(self, features: Tensor) -> Tensor:
        """With ``bounded``, divide the features by their root mean square at each position.

        They then cannot explode, however many iterations follow.
        """
        if not self.config.bounded:
            return features
        wide = torch.promote_types(features.dtype, torch.float32)
        square = features.to(wide).square().mean(dim=1, keepdim=True)
        return features * (square + _EPS).rsqrt().to(features.dtype)

    def answer(self, features: Tensor) -> Tensor:
        """Logits (B, classes, *S)."""
        logits: Tensor = self.head(features)
        return logits

    @property
    def hidden_weights(self) -> list[nn.Parameter]:
        """The weights from features to features, which Muon orthogonalises."""
        outer = ("projection.", "head.")
        return [weight for name, weight in self.named_parameters() if not name.startswith(outer)]


class DeepThinking(PaperNet):
    """DT (``recall=False``) and DT-Recall (``recall=True``) of the paper, in 1D and 2D."""

    Config = PaperConfig
    uses_index = False

    def __init__(self, config: PaperConfig) -> None:
        super().__init__(config)
        self.block = _blocks(config)

    def blocks_of(self, index: int) -> nn.Module:
        return self.block

    @property
    def recurrent(self) -> list[nn.Parameter]:
        """The parameters that iterations share; some recipes reduce their learning rate."""
        return self.hidden_weights


@dataclass(frozen=True)
class FeedForwardConfig(PaperConfig):
    """The configuration of a feed-forward network."""

    kind: ClassVar[str] = "feed-forward"

    depth: int = 30
    """Iterations, each with its own blocks; they share one recall convolution."""

    def __post_init__(self) -> None:
        self.check_sizes("depth")
        super().__post_init__()


class FeedForward(PaperNet):
    """Feed-forward networks, with or without recall; iteration i has its own weights."""

    Config = FeedForwardConfig

    def __init__(self, config: FeedForwardConfig) -> None:
        super().__init__(config)
        self.depth = config.depth
        self.blocks = nn.ModuleList(_blocks(config) for _ in range(config.depth))

    def blocks_of(self, index: int) -> nn.Module:
        return self.blocks[index]


_PAPER_TASKS: dict[str, dict[str, Any]] = {
    "prefix-sums": {"dims": 1, "channels": 1, "width": 400},
    "mazes": {"dims": 2, "channels": 3, "width": 128, "readout": "argmax-open"},
    "chess": {"dims": 2, "channels": 12, "width": 512, "readout": "two-best"},
}
_VARIANTS: dict[str, tuple[type[PaperConfig], bool]] = {
    "dt": (PaperConfig, False),
    "dt-recall": (PaperConfig, True),
    "ff": (FeedForwardConfig, False),
    "ff-recall": (FeedForwardConfig, True),
}
"""Class of the configuration, and whether with recall. A variant outside of the package is a
subclass of `DeepThinking`; one with the fast forms is a line here and a subclass of `PaperConfig`
with other defaults, such as three blocks."""
VARIANTS = tuple(_VARIANTS)
"""The paper's four architectures, as recipes name them."""
PAPER_KINDS = (PaperConfig.kind, FeedForwardConfig.kind)
"""Their two names in `iterant.registry`, which saved configurations hold; recipes do not."""


def paper_net(problem: str, variant: str = "dt-recall") -> PaperConfig:
    """The configuration of one of the paper's networks.

    >>> paper_net("chess").width
    512
    """
    if problem not in _PAPER_TASKS:
        raise UnknownName(registry.unknown_name("task", problem, tuple(_PAPER_TASKS)))
    return variant_config(variant, problem, **_PAPER_TASKS[problem])


def variant_config(
    variant: str,
    problem: str,
    *,
    dims: int,
    width: int | None = None,
    head: tuple[int, ...] | None = None,
    depth: int = 30,
    **fields: Any,
) -> PaperConfig:
    """One of the paper's architectures for any problem; ``fields`` are those of `PaperConfig`.

        >>> config = variant_config("dt-recall", "mine", dims=2, channels=4, classes=3)
        >>> build(config.kind, config).answer(torch.zeros(1, config.width, 5, 5)).shape
        torch.Size([1, 3, 5, 5])

    The paper's head is (width, width / 2) in 1D and (32, 8) in 2D; problems that are not in
    the paper get 64 features.
    """
    if variant not in VARIANTS:
        raise UnknownName(registry.unknown_name("network", variant, VARIANTS))
    config_class, recall = _VARIANTS[variant]
    width = width or _PAPER_TASKS.get(problem, {}).get("width", 64)
    head = head or ((width, max(1, width // 2)) if dims == 1 else (32, 8))
    # The authors have a ReLU after the recall convolution of recurrent networks, in 1D only.
    is_recurrent = config_class is not FeedForwardConfig
    extra = {"recall_relu": recall and dims == 1} if is_recurrent else {"depth": depth}
    return config_class(dims=dims, width=width, head=head, recall=recall, **extra, **fields)


def catalogue() -> list[tuple[str, int]]:
    """The paper's networks and their parameter counts, without allocating them.

    >>> dict(catalogue())["mazes dt-recall"]
    783504
    """
    rows = []
    for problem in _PAPER_TASKS:
        for variant in VARIANTS:
            config = paper_net(problem, variant)
            with torch.device("meta"):
                net = build(config.kind, config)
            rows.append((f"{problem} {variant}", parameter_count(net)))
    return rows
