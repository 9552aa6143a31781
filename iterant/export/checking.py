"""Exported graphs beside the network they came from: the same numbers at any size, or an error.

    >>> checked = check(source, {"read": read_bytes, "step": step_bytes, "answer": answer_bytes})
    >>> checked.worst, checked.spaces

Shapes: B batch, C channels, *S space in pixels.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

from iterant.engine import think
from iterant.errors import NetError
from iterant.export.source import Source

Space = tuple[int, ...]

STEPS = 10
"""Iterations that are compared."""

_SPACES: dict[int, tuple[tuple[int, Space], ...]] = {
    1: ((1, (7,)), (3, (33,)), (2, (150,))),
    2: ((1, (8, 8)), (3, (26, 22)), (2, (48, 62))),
}
"""Batch and space of the problems compared; the exporter has seen none of them."""

_TOLERANCE = 1e-3
"""Of the largest logit. Single precision and another order of sums give 1e-6 or so."""

_EXAMPLE_SPACE: dict[int, Space] = {1: (12,), 2: (8, 8)}
_EXAMPLE_STEPS = 4


@dataclass(frozen=True)
class Checked:
    """How the graphs compare with PyTorch."""

    worst: float
    """The largest difference of logits, relative to the largest logit"""
    steps: int
    spaces: tuple[Space, ...]
    onnxruntime: str
    """Its version"""

    def described(self) -> dict[str, Any]:
        """As JSON holds it."""
        return asdict(self)


def check(source: Source, graphs: Mapping[str, bytes]) -> Checked:
    """Run the graphs with onnxruntime and compare every iteration's logits with PyTorch's."""
    import onnxruntime

    sessions = {name: _session(content) for name, content in graphs.items()}
    shapes = _SPACES[source.config["dims"]]
    worst = 0.0
    for number, (batch, space) in enumerate(shapes):
        inputs = problems(source.config["channels"], batch, space, seed=number)
        worst = max(worst, _difference(source, sessions, inputs))
    return Checked(worst, STEPS, tuple(space for _, space in shapes), onnxruntime.__version__)


def problems(channels: int, batch: int, space: Space, seed: int) -> Tensor:
    """(B, C, *S) of zeros and ones: no task's problems, and like those of all of them."""
    chance = torch.Generator().manual_seed(seed)
    return torch.randint(0, 2, (batch, channels, *space), generator=chance).float()


def example(source: Source) -> dict[str, Any]:
    """A small problem and the logits after a few iterations, for other programs to compare."""
    config = source.config
    inputs = problems(config["channels"], 1, _EXAMPLE_SPACE[config["dims"]], seed=99)
    with torch.no_grad():
        *_, thought = think(source.net, inputs, steps=_EXAMPLE_STEPS)
    return {
        "shape": list(inputs.shape),
        "inputs": inputs.int().flatten().tolist(),
        "steps": _EXAMPLE_STEPS,
        "logits": [float(f"{value:.6g}") for value in thought.logits.flatten().tolist()],
    }


def _session(content: bytes) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])


def _difference(source: Source, sessions: Mapping[str, Any], inputs: Tensor) -> float:
    """The largest relative difference over the iterations of one batch."""
    features, *memory = sessions["read"].run(None, {"inputs": inputs.numpy()})
    told = {"memory": memory[0]} if memory else {}
    worst = 0.0
    with torch.no_grad():
        for thought in think(source.net, inputs, steps=STEPS):
            (features,) = sessions["step"].run(None, {"features": features, **told})
            (logits,) = sessions["answer"].run(None, {"features": features})
            wanted = thought.logits
            scale = max(1.0, float(wanted.abs().max()))
            apart = float((torch.from_numpy(logits) - wanted).abs().max()) / scale
            if not apart <= _TOLERANCE:
                raise NetError(
                    f"the exported graphs and PyTorch differ by {apart:.2g} of the largest logit "
                    f"at iteration {thought.step} on a problem of shape {tuple(inputs.shape)}; "
                    "a step that depends on the iteration's number or on the size it was traced "
                    "with cannot be exported"
                )
            worst = max(worst, apart)
    return worst
