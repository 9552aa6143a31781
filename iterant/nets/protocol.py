"""The interface of a network: methods that the engine calls, the readout, checks and `build`.

    >>> net = build("local-rule", {"dims": 2, "channels": 3}, seed=0)
    >>> needs_of(net)
    Needs(dims=2, channels=3, classes=2)
    >>> Argmax().predict(logits, inputs)        # (B, K, *S) -> (B, *S) int64

Any ``nn.Module`` with the methods of `Net` is a network. Networks do not depend on tasks, but carry
the readout that they were trained for. The networks of iterant state in their configuration which
inputs they read; a user-defined network may do the same.

Shapes: B batch, C channels, W width, K classes, *S space.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from iterant import bounds, registry
from iterant.errors import DataError, NetError, argument
from iterant.formatting import counted

METHODS = ("read", "start", "step", "answer")


@runtime_checkable
class Net(Protocol):
    """The methods that the engine calls."""

    def read(self, inputs: Tensor) -> Tensor | None:
        """The ``memory`` of every `step`, such as the recall term, from inputs (B, C, *S).

        The same at every iteration. Its first axis is the batch; None: there is no memory.
        """

    def start(self, inputs: Tensor) -> Tensor:
        """The features before the first iteration, (B, W, *S)."""

    def step(self, features: Tensor, memory: Tensor | None, index: int) -> Tensor:
        """The features after one more iteration, in a new tensor; ``index`` iterations are done."""

    def answer(self, features: Tensor) -> Tensor:
        """Logits (B, K, *S)."""


@dataclass(frozen=True)
class NetConfig:
    """Base of the configurations of our networks, which are saved as JSON beside the weights."""

    kind: ClassVar[str]
    """The name of the network in `iterant.registry`."""

    dims: int
    channels: int

    def described(self) -> dict[str, Any]:
        return asdict(self)

    def check_sizes(self, *names: str) -> None:
        """Raise NetError unless dims and stem are 1 or 2 and these fields are widths."""
        if self.dims not in (1, 2):
            raise NetError(f"a network has 1 or 2 dimensions of space, got {self.dims}")
        if (stem := getattr(self, "stem", 1)) not in (1, 2):
            raise NetError(f"a cell has 1 or 2 pixels per side (stem), got {stem}")
        for name in names:
            value = getattr(self, name)
            if not isinstance(value, int) or not bounds.WIDTH.holds(value):
                raise NetError(f"{name} must be a whole number {bounds.WIDTH}, got {value!r:.50}")


class NetModule(nn.Module):
    """Base class of the networks of iterant, which are not called but iterated."""

    depth: int | None = None
    """Number of iterations; None: unlimited."""

    def __init__(self, config: Any) -> None:
        super().__init__()
        self.config = config
        self.readout: Readout = registry.find("readout", config.readout)()

    def extra_repr(self) -> str:
        return f"{self.config.kind}, {parameter_count(self):,} parameters"

    def forward(self, *_: object) -> Tensor:
        raise NetError(
            "a network is not called: iterant.solve(net, inputs) gives its answers, "
            "iterant.think(net, inputs, steps=30) every iteration"
        )


class OptionalMembers(Net, Protocol):
    """What a network may have besides the methods of `Net`; without a member, what is said here.

    depth             iterations of a feed-forward network; None: any number
    readout           how logits become an answer; `Argmax`
    config            an object or a dict with the fields of `Needs`; any inputs are accepted
    uses_index        whether `step` depends on ``index``, so that CUDA graphs do; True
    exact_precision   whether half precision is refused, because it gives wrong answers; False
    recurrent         parameters that iterations share, of which ``throttle`` divides the learning
                      rate; none
    hidden_weights    weights that Muon orthogonalises; ``recurrent``
    card, trained_problems    what is known about the training; set by `iterant.load`

    Forms of networks in `iterant.nets.fast` also have

    last_change       (B,): see `last_change_of`
    updates_per_cell  how often a cell was computed on average, if not at every iteration
    threads           the number of CPU threads that is fastest
    select_samples(which, inputs, features)           go on with these samples of the batch (b,);
                      ``inputs`` and ``features`` are their rows of those read and returned last
    previous_features(before)                         the features before the latest iteration,
                      ``before`` unless they were overwritten
    flush()           after every backward pass: add gradients that were computed aside
    refresh()         after every optimizer step: update copies of the weights
    """


@runtime_checkable
class Readout(Protocol):
    """How logits become an answer, and which positions count.

    The loss, the confidence of an iteration and the prediction use the same readout, so that they
    cannot disagree on which positions count.
    """

    def predict(self, logits: Tensor, inputs: Tensor) -> Tensor:
        """(B, *S) int64: the class of every position."""

    def counted(self, inputs: Tensor) -> Tensor | None:
        """(B, *S) bool: the positions that the loss and the confidence count; None: all."""


class Argmax:
    """The most probable class at every position, the first of equals: prefix sums."""

    def predict(self, logits: Tensor, inputs: Tensor) -> Tensor:
        if logits.shape[1] != 2:
            return logits.argmax(dim=1)
        # For two classes a comparison is some fifty times faster than argmax on a CPU.
        zero, one = logits.unbind(dim=1)
        # Like argmax, a NaN counts as the largest.
        return ((one > zero) | (one.isnan() & ~zero.isnan())).long()

    def counted(self, inputs: Tensor) -> Tensor | None:
        return None


class ArgmaxOpen(Argmax):
    """The most probable class where the input is not all zero, else 0: mazes and their walls."""

    def predict(self, logits: Tensor, inputs: Tensor) -> Tensor:
        return super().predict(logits, inputs) * self.counted(inputs)

    def counted(self, inputs: Tensor) -> Tensor:
        is_open, *others = (inputs > 0).unbind(dim=1)
        for channel in others:  # a CPU takes far longer for `any` over channels
            is_open = is_open | channel
        return is_open


class TwoBest(Argmax):
    """1 on the two positions with the highest score of class 1: a move's origin and destination.

    >>> TwoBest().predict(torch.tensor([[[0.0, 0, 0, 0], [1, 5, 0, 2]]]), None)
    tensor([[0, 1, 0, 1]])

    Of equal scores the earlier position wins, so that the answer is the same on every device.
    """

    def predict(self, logits: Tensor, inputs: Tensor) -> Tensor:
        scores = logits[:, 1].flatten(1)
        best = scores.argsort(dim=1, descending=True, stable=True)[:, :2]
        flat = torch.zeros_like(scores, dtype=torch.int64).scatter_(1, best, 1)
        return flat.view_as(logits[:, 1])


def readout_of(net: Net) -> Readout:
    """How the network's logits become an answer; argmax if it has no ``readout``."""
    readout: Any = getattr(net, "readout", None)
    return readout if isinstance(readout, Readout) else Argmax()


def depth_of(net: Net) -> int | None:
    """The number of iterations of a feed-forward network; None: any number."""
    depth: Any = getattr(net, "depth", None)
    return depth if isinstance(depth, int) else None


def last_change_of(net: Net) -> Tensor | None:
    """(B,): the largest change of a feature in the latest iteration, where the network reports it.

    Only fast forms report it whose features lie between -1 and 1 (local rules), or change by a
    fixed amount if they change (max-plus networks). NaN or infinite if a feature is. It may be on
    the CPU when the features are on a GPU.
    """
    change: Any = getattr(net, "last_change", None)
    return change if isinstance(change, Tensor) else None


def first_weight(net: Net) -> Tensor | None:
    """One of the network's parameters, for its device and precision; None if it has none."""
    return next(net.parameters(), None) if isinstance(net, nn.Module) else None


def like(net: Net, inputs: Tensor) -> Tensor:
    """The inputs on the network's device and in its precision."""
    weight = first_weight(net)
    return inputs if weight is None else inputs.to(weight.device, weight.dtype)


def on_device(net: Net, device: str | torch.device | None) -> Net:
    """The network itself, or a copy on that device; None: where it is."""
    weight = first_weight(net)
    if device is None or weight is None or weight.device == registry.device(device):
        return net
    there: Any = copy.deepcopy(net)
    moved: Net = there.to(registry.device(device))
    return moved


@dataclass(frozen=True)
class Needs:
    """The inputs and classes that a network is built for."""

    dims: int
    channels: int
    classes: int = 2

    def __str__(self) -> str:
        """In words: "strings of 1 channel and 2 classes"."""
        kind = {1: "strings", 2: "images"}.get(self.dims, f"{self.dims}D problems")
        return f"{kind} of {counted(self.channels, 'channel')} and {self.classes} classes"


def needs_of(net: Net) -> Needs | None:
    """The inputs and classes in a network's configuration; None if it does not state them."""
    config: Any = getattr(net, "config", None)
    fields = config if isinstance(config, Mapping) else getattr(config, "__dict__", {})
    names = ("dims", "channels", "classes")
    numbers = {name: fields[name] for name in names if isinstance(fields.get(name), int)}
    return Needs(**numbers) if {"dims", "channels"} <= numbers.keys() else None


def check_net(net: object) -> None:
    """Raise NetError if this is not a network but, for example, the name of one."""
    if isinstance(net, type) or not all(callable(getattr(net, name, None)) for name in METHODS):
        value = repr(net) if isinstance(net, str | type) else type(net).__name__
        raise NetError(
            f"wanted a network, got {value}; load one with iterant.load(…), or give an object with "
            f"the methods {', '.join(METHODS)}"
        )


def check_precision(net: Net, dtype: torch.dtype) -> None:
    """Raise NetError if the network needs more than half precision and ``dtype`` is only that."""
    if getattr(net, "exact_precision", False) and torch.finfo(dtype).bits < 32:
        raise NetError(
            f"{type(net).__name__} needs numbers that are exact in float32, and would be wrong in "
            f"{dtype}; use {argument('precision', 'fp32')}"
        )


def check_inputs(net: Net, inputs: Tensor) -> None:
    """Raise NetError unless this is a network and it can read the inputs."""
    check_net(net)
    if not isinstance(inputs, Tensor) or not inputs.is_floating_point():
        dtype = inputs.dtype if isinstance(inputs, Tensor) else type(inputs).__name__
        raise NetError(
            f"inputs must be a floating-point torch tensor (N, C, *space), got {dtype}; "
            "use batch.inputs, inputs.float() or torch.from_numpy(array).float()"
        )
    _check_shape(net, inputs)
    check_precision(net, inputs.dtype)
    # A finite sum proves it in one pass; a sum may overflow, so only then look at each number.
    if not bool(inputs.detach().sum().isfinite()) and not bool(inputs.isfinite().all()):
        first = (~inputs.isfinite()).nonzero()[0].tolist()
        raise NetError(
            f"inputs must be finite, got {float(inputs[tuple(first)])} at {first}; "
            "torch.nan_to_num replaces such numbers"
        )


def _check_shape(net: Net, inputs: Tensor) -> None:
    """Raise NetError unless shape, precision and device are those that the network states."""
    needs = needs_of(net)
    if needs is None:
        return
    shape, axes = tuple(inputs.shape), ("N", str(needs.channels), "H", "W")[: needs.dims + 2]
    if len(shape) != len(axes) or shape[1] != needs.channels or min(shape) < 1:
        raise NetError(
            f"this network reads inputs of shape ({', '.join(axes)}), got {shape}; "
            "one problem alone is inputs[None]"
        )
    stem = getattr(getattr(net, "config", None), "stem", 1)
    if any(side % stem for side in shape[2:]):
        raise NetError(
            f"this network reads cells of {stem} pixels per side, so sides must be multiples of "
            f"{stem}, got {shape}"
        )
    weight = first_weight(net)
    if weight is not None and (inputs.dtype, inputs.device) != (weight.dtype, weight.device):
        raise NetError(
            f"this network computes in {weight.dtype} on {weight.device}, the inputs are "
            f"{inputs.dtype} on {inputs.device}; "
            f"use inputs.to({str(weight.device)!r}, {weight.dtype})"
        )


def check_user_net(net: Net, word: str, *, dims: int, channels: int, classes: int = 2) -> None:
    """Try a user-defined network on small inputs: check the shapes of its features and logits.

    Errors inside its methods are ignored here and shown later with their whole traceback: it may
    be made for one size only.
    """
    inputs = torch.linspace(-1, 1, 2 * channels * 8**dims).view(2, channels, *[8] * dims)
    try:
        probe: Any = copy.deepcopy(net)
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            memory, features = probe.read(inputs), probe.start(inputs)
            before = features.clone()
            after = probe.step(features, memory, 0)
            same = after.shape == features.shape
            shape = tuple(probe.answer(after).shape) if same else None
    except Exception:
        return
    if not torch.equal(features.nan_to_num(), before.nan_to_num()):
        raise NetError(
            f"step() of {word!r} changes the features that it is given; return a new tensor: "
            "features + change, not features += change"
        )
    if shape is None:
        raise NetError(
            f"step() of {word!r} makes features of shape {tuple(after.shape)} from "
            f"{tuple(features.shape)}; wanted the same shape"
        )
    expected = (2, classes, *inputs.shape[2:])
    if shape != expected:
        raise NetError(
            f"answer() of {word!r} gave {shape} for 2 problems of {expected[2:]}; "
            f"wanted {expected}: a score for each of {classes} classes at every position"
        )


def build(kind: str, config: Any, seed: int | None = None) -> Net:
    """A network from its kind and its configuration, an object or a dict of its fields.

        >>> net = build("local-rule", {"dims": 2, "channels": 3}, seed=0)

    Both may come from a file: ``kind`` is a registered name, or one that was given to
    `registry.allow`.

    Weights are drawn from ``seed`` without touching the global generator; None: from seed 0, for
    weights that are loaded afterwards. A user-defined class without ``Config`` gets the fields as
    keyword arguments.
    """
    net_class = registry.find("net", kind)
    if not issubclass(net_class, nn.Module):
        raise NetError(f"{kind!r} is not a network: wanted a subclass of nn.Module")
    config_class: Any = getattr(net_class, "Config", None)
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed or 0)
        if config_class is None:
            return _build_user_net(net_class, kind, config)
        try:
            config = config_class(**config) if isinstance(config, dict) else config
        except TypeError as error:
            raise DataError(
                f"the configuration of a {kind!r} network does not fit ({error}); "
                "it was written by another version or edited by hand"
            ) from error
        net: Net = net_class(config)
    return net


def _build_user_net(net_class: Any, kind: str, arguments: dict[str, Any]) -> Net:
    try:
        net = net_class(**arguments)
    except TypeError as error:
        names = ", ".join(arguments)
        raise NetError(
            f"{kind!r} cannot be built with {names} ({error}); wanted __init__(self, {names}), "
            "and defaults for what else it takes"
        ) from error
    if not hasattr(net, "config"):  # what inputs it reads, see `needs_of`
        net.config = dict(arguments)
    built: Net = net
    return built


def shape_faults(kind: str, config: Any, tensors: Mapping[str, Tensor]) -> str:
    """`tensor_faults` of a network of ours, found without allocating what the file claims.

    Not for a user-defined network, which may compute with its weights when it is built, nor for
    message passing, which does so and is limited in size.
    """
    if ":" in kind or config.get("messages"):
        return ""
    with torch.device("meta"):  # at most thousands of layers, by the limits of configurations
        net: Any = build(kind, config)
    return tensor_faults(net.state_dict(), tensors)


def tensor_faults(expected: Mapping[str, Tensor], tensors: Mapping[str, Tensor]) -> str:
    """How tensors differ from those of a network in names, shapes and types; "" if they fit."""

    def described(tensor: Tensor | None) -> str:
        if tensor is None:
            return "none"
        kind = "floating-point" if tensor.is_floating_point() else "other"
        return f"{kind} numbers of shape {tuple(tensor.shape)}"

    names = dict.fromkeys([*expected, *tensors])
    pairs = {name: (described(expected.get(name)), described(tensors.get(name))) for name in names}
    faults = [f"{name}: wanted {a}, got {b}" for name, (a, b) in pairs.items() if a != b]
    more = f" and {len(faults) - 3} more" if len(faults) > 3 else ""
    return ", ".join(faults[:3]) + more


def parameter_count(net: object) -> int:
    """The number of parameters; 0 for a network that is not an ``nn.Module``."""
    return sum(p.numel() for p in net.parameters()) if isinstance(net, nn.Module) else 0
