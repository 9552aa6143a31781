"""Deep Thinking networks on strings, computed faster still: every convolution a matrix product.

    >>> fast = FusedStrings(net)
    >>> states = fast.stretch(fast.start(x), fast.read(x), 30)
    >>> loss(fast.answer(states[-1]), y).backward()
    >>> fast.flush()

As `deep_thinking.py`, with three differences. Strings are rows of a matrix (`hopper/rows.py`).
Additions, ReLUs and their masks belong to the convolutions, forwards and backwards, so that an
iteration is as many kernels as it has convolutions. And the iterations of a stretch lie one after
the other in memory, so that the gradients of all kernels are one product after the last of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from iterant.nets.deep_thinking import PaperNet
from iterant.nets.fast.deep_thinking import Fused, Layer, can_fuse
from iterant.nets.fast.hopper.layers import RowLayer, RowTape
from iterant.nets.fast.hopper.program import RowProgram, can_tile, prepare
from iterant.nets.fast.hopper.rows import Rows, aligned, has_kernels
from iterant.nets.protocol import depth_of

_WIDE = 128
"""Networks from this width on fill the tiles of the matrix products."""


class FusedStrings(Fused):
    """`Fused` for networks of one dimension."""

    tape: RowTape
    repeats = True
    """Whether every iteration has the same weights, as programs of many iterations want it"""

    def __init__(self, net: PaperNet) -> None:
        """Wrap a network; it goes on holding the weights."""
        super().__init__(net)
        self.tape = RowTape()
        self.projecting = [RowLayer(self._projection)]
        features, inputs = self._recall or (None, None)
        self.recalling = [] if inputs is None else [RowLayer(inputs)]
        blocks = [layer for pair in self._blocks for layer in pair]
        first = [] if features is None else [features]
        self.looping = [RowLayer(layer) for layer in (*first, *blocks)]
        self.heading = [RowLayer(layer) for layer in self._head]
        self._tileable = self.repeats and can_tile(net.projection.weight, net.config.width)
        if self._tileable:
            prepare(net.config.width, net.projection.weight.dtype)

    def read(self, inputs: Tensor) -> Tensor | None:
        """The recall term, once a problem."""
        return self._chain(inputs, self.recalling, relu=False) if self.recalling else None

    def start(self, inputs: Tensor) -> Tensor:
        """The projection of the problem into features."""
        return self._chain(inputs, self.projecting, relu=True)

    def answer(self, features: Tensor) -> Tensor:
        """Logits (B, classes, L)."""
        return self._chain(features, self.heading, relu=False)

    def step(self, features: Tensor, memory: Tensor | None, index: int) -> Tensor:
        """One iteration."""
        return self.segment(features, memory, 1)[-1]

    def segment(
        self, features: Tensor, memory: Tensor | None, count: int, done: int = 0
    ) -> tuple[Tensor, ...]:
        """The features after each of ``count`` iterations; without gradients, after the last.

        ``done``: iterations before them, for networks whose iterations differ.
        """
        if not torch.is_grad_enabled():
            return (_walk(self, features, memory, count),)
        run: Any = _Stretch.apply  # torch leaves it untyped
        made: tuple[Tensor, ...] = run(features, self._token, memory, self, count)
        return made

    def _layers(self) -> list[Layer]:
        return [*self.projecting, *self.recalling, *self.looping, *self.heading]

    def pin(self) -> None:
        """Lay the kernels out now and keep them: whoever changes the weights calls `refresh`."""
        for layer in self._row_layers():
            if self._tileable and layer in self.looping:
                layer.tile()
            else:
                layer.pin()

    def program(self, rows: Rows, features: Tensor) -> RowProgram | None:
        """What runs many iterations in one launch, where kernels are pinned and there is one."""
        pinned = all(layer.tiles is not None for layer in self.looping)
        return RowProgram.of(rows, features) if pinned else None

    def tiles(self, back: int) -> list[Tensor]:
        """The kernels that programs read, for the way there (0) or back (1)."""
        return [layer.tiles[back] for layer in self.looping if layer.tiles is not None]

    @torch.no_grad()
    def refresh(self) -> None:
        """Bring pinned kernels up to date with the weights, in place."""
        for layer in self._row_layers():
            layer.refresh()

    def _row_layers(self) -> list[RowLayer]:
        return [*self.projecting, *self.recalling, *self.looping, *self.heading]

    def _chain(self, x: Tensor, layers: list[RowLayer], *, relu: bool) -> Tensor:
        run: Any = _Chain.apply
        made: Tensor = run(x, self._token, self.tape, layers, relu)
        return made


def fused(net: object) -> Fused | None:
    """The fastest form of a network that computes the same; None where there is none."""
    if not can_fuse(net):
        return None
    repeats = depth_of(net) is None
    return FusedStrings(net) if repeats and can_string(net) else Fused(net)


def can_string(net: PaperNet) -> bool:
    """Whether `FusedStrings` is the faster one."""
    config = net.config
    wide = config.dims == 1 and config.width >= _WIDE and not config.bounded
    # Features lie in rows of their width, which the GPU's copy engine takes in whole pieces.
    wide = wide and aligned(config.width) == config.width
    return wide and has_kernels(net.projection.weight)


def _iteration(
    rows: Rows, kernels: Sequence[Tensor], places: list[Tensor], memory: Tensor | None, relu: bool
) -> None:
    """One iteration from places[0], through one place a layer, to the last place.

    ``relu``: whether there is one after the recall layer.
    """
    at = 0
    if memory is not None:
        rows.convolve(places[0], kernels[0], places[1], added=memory, relu=relu)
        at = 1
    while at < len(kernels):
        x, inner, y = places[at : at + 3]
        rows.convolve(x, kernels[at], inner, relu=True)
        rows.convolve(inner, kernels[at + 1], y, added=x, relu=True)
        at += 2


def _walk(net: FusedStrings, features: Tensor, memory: Tensor | None, count: int) -> Tensor:
    """The features after ``count`` iterations, on the same few places again and again."""
    rows, width = Rows.of(features), features.shape[1]
    held = None if memory is None else rows.pack(memory, width)
    program, end = net.program(rows, features), features.new_empty(rows.count, width)
    relu = net.net.config.recall_relu
    if program is not None:
        places = features.new_empty(len(net.looping), 2, rows.count, width)
        rows.unpack(places[0, 0]).copy_(features)
        program.run(net.tiles(0), places, end=end, count=count, memory=held, relu=relu)
        return rows.unpack(end)
    x = rows.pack(features, width)
    inner, ends = [torch.empty_like(x) for _ in net.looping[1:]], [end, torch.empty_like(x)]
    kernels = [layer.kernel for layer in net.looping]
    for i in range(count):
        _iteration(rows, kernels, [x, *inner, ends[i % 2]], held, relu)
        x = ends[i % 2]
    return rows.unpack(x)


class _Stretch(Function):
    """Iterations, the kernels' gradients left on the tape."""

    @staticmethod
    def forward(
        ctx: Any, features: Tensor, token: Tensor, memory: Tensor | None, net: Any, count: int
    ) -> tuple[Tensor, ...]:
        rows, width, depth = Rows.of(features), features.shape[1], len(net.looping)
        held = None if memory is None else rows.pack(memory, width)
        inputs = features.new_empty(depth, count, rows.count, width)
        inputs[0, 0].zero_()
        rows.unpack(inputs[0, 0]).copy_(features)
        end = features.new_empty(rows.count, width)
        ends = [*inputs[0, 1:].unbind(), end]
        program, relu = net.program(rows, features), net.net.config.recall_relu
        if program is not None:
            program.run(net.tiles(0), inputs, end=end, count=count, memory=held, relu=relu)
        else:
            kernels = [layer.kernel for layer in net.looping]
            for i, after in enumerate(ends):
                _iteration(rows, kernels, [*inputs[:, i].unbind(), after], held, relu)
        ctx.program = program
        ctx.net, ctx.rows, ctx.inputs, ctx.ends = net, rows, inputs, ends
        ctx.recalls = memory is not None
        ctx.set_materialize_grads(False)
        return tuple(rows.unpack(rows_of) for rows_of in ends)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> Any:
        net, rows, inputs, recalls = ctx.net, ctx.rows, ctx.inputs, ctx.recalls
        depth, count, size, width = inputs.shape
        made = torch.empty_like(inputs)
        made[-1, -1].zero_()
        if gradients[-1] is not None:
            arrive(gradients[-1], rows.unpack(ctx.ends[-1]), rows.unpack(made[-1, -1]))
        into, relu = inputs.new_empty(size, width), net.net.config.recall_relu
        if ctx.program is not None and all(gradient is None for gradient in gradients[:-1]):
            ctx.program.run(net.tiles(1), inputs, end=into, count=count, memory=None, relu=relu,
                            gradients=made)  # fmt: skip
        else:
            kernels = [layer.backward_kernel for layer in net.looping]
            for i in reversed(range(count)):
                to, sign = (made[-1, i - 1], inputs[0, i]) if i else (into, None)
                _iteration_back(
                    rows, kernels, inputs[:, i].unbind(), [*made[:, i].unbind(), to], sign, relu
                )
                arriving = gradients[i - 1] if i else None
                if arriving is not None:
                    part = torch.empty_like(arriving)
                    arrive(arriving, rows.unpack(inputs[0, i]), part)
                    rows.unpack(to).add_(part)
        flat = (depth, count * size, width)
        net.tape.put_stack(net.looping, inputs.view(flat), made.view(flat))
        memory = rows.unpack(made[0].sum(dim=0)) if recalls else None
        return rows.unpack(into), None, memory, None, None


def arrive(gradient: Tensor, y: Tensor, out: Tensor) -> None:
    """Write the gradient before a ReLU from the one after it, where it made ``y``."""
    torch.ops.aten.threshold_backward.grad_input(gradient, y, 0, grad_input=out)


def _iteration_back(
    rows: Rows,
    kernels: Sequence[Tensor],
    inputs: Sequence[Tensor],
    made: list[Tensor],
    sign: Tensor | None,
    relu: bool,
) -> None:
    """From the gradient of the last output, before its ReLU, to those of all others.

    ``made`` holds one a layer, and at its end that of the first layer's input, which must pass
    the ReLU that made ``sign`` if there was one.
    """
    at, recalls = len(kernels) - 2, len(kernels) % 2
    while at >= 0:
        rows.convolve(made[at + 1], kernels[at + 1], made[at], sign=inputs[at + 1])
        passes = inputs[at] if at else sign
        if at == 1 and recalls and not relu:
            passes = None
        rows.convolve(made[at], kernels[at], made[at - 1], added=made[at + 1], sign=passes)
        at -= 2
    if recalls:
        rows.convolve(made[0], kernels[0], made[-1], sign=sign)


class _Chain(Function):
    """Convolutions with ReLUs between them, the kernels' gradients left on the tape."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, token: Tensor, tape: RowTape, layers: list[RowLayer], relu: bool
    ) -> Tensor:
        rows = Rows.of(x)
        places = [rows.pack(x, layers[0].inputs)]
        for layer in layers:
            out = x.new_empty(rows.count, layer.outputs)
            rectified = relu or layer is not layers[-1]
            places.append(rows.convolve(places[-1], layer.kernel, out, relu=rectified))
        ctx.tape, ctx.layers, ctx.relu, ctx.rows, ctx.places = tape, layers, relu, rows, places
        ctx.channels = x.shape[1]
        return rows.unpack(places[-1], len(layers[-1].weight))

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        rows, places, g = ctx.rows, ctx.places, gradients[0]
        if ctx.relu:
            y = rows.unpack(places[-1], g.shape[1])
            g = torch.ops.aten.threshold_backward(g, y, 0)
        back = rows.pack(g, ctx.layers[-1].outputs)
        for at in reversed(range(len(ctx.layers))):
            layer, x = ctx.layers[at], places[at]
            ctx.tape.put_stack([layer], x[None], back[None])
            if at == 0 and not ctx.needs_input_grad[0]:
                return None, None, None, None, None
            into = g.new_empty(rows.count, layer.inputs)
            back = rows.convolve(back, layer.backward_kernel, into, sign=x if at else None)
        return rows.unpack(back, ctx.channels), None, None, None, None
