"""Learning with a rule that sends messages, a column a message: what nobody hears is left out.

    >>> hands = TellingHands(net, smoothing=0.2)     # as SquareHands, several times faster

In a rule with messages (`iterant.nets.local_rule`) whose sides are alike, every message is made by
the same small layer, of the problem and of what the teller heard from its other neighbours, and
what a square holds of its own is read by nobody but the answer. So the messages between open
squares are the columns of one matrix; what is told to walls, and squares' own numbers, are computed
only where a loss or the state at the end asks for them. Losses, gradients and states are those of
`iterant.training.unroll.EagerUnroll` up to rounding.

Shapes: D sides of a square, E numbers of a message, O numbers of a square's own, H hidden numbers
of a side, N open squares, M messages between them, K iterations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from iterant.engine import State
from iterant.nets.fast.grouped import can_group
from iterant.nets.fast.packed import neighbours_of
from iterant.nets.local_rule import Layers, LocalRule, sum_over_other_sides
from iterant.nets.protocol import Net
from iterant.training.objectives import Segment, StepResult
from iterant.training.squares import SparseUnroll, rows_of
from iterant.training.squares import fits as lies_on_squares
from iterant.training.unroll import backward, initial_state


def fits(net: Net) -> bool:
    """Whether this network's messages can be the columns of a matrix."""
    return lies_on_squares(net) and can_group(net)


@dataclass(frozen=True)
class Roads:
    """Who tells whom, of all open squares of a batch."""

    told_by: Tensor
    """(M,): the place of a message among the N * D of all squares and sides"""
    hearer: Tensor
    """(M,): the square that hears it"""
    heard_at: Tensor
    """(D, N): the message that comes in from each side; M where there is none"""
    first: Tensor
    """(M,): one of the messages that a teller heard from its other neighbours; M where none is"""
    more: tuple[tuple[Tensor, Tensor], ...]
    """(m,), (m,): messages for which a teller heard a second, a third …, and which that is"""
    back: Tensor
    """(M,): the message that goes the other way"""

    @classmethod
    def between(cls, beside: Tensor) -> Roads:
        """From the numbers of every square's neighbours, (N, D); N where there is none."""
        squares, sides = beside.shape
        there = beside < squares
        told_by = there.flatten().nonzero().flatten()
        count = len(told_by)
        number = torch.full((squares * sides + 1,), count, device=beside.device)
        number[told_by] = torch.arange(count, device=beside.device)
        # The neighbour on a side speaks to me on its opposite side.
        opposite = torch.arange(sides, device=beside.device) ^ 1
        heard_at = number[(beside * sides + opposite).where(there, squares * sides)]
        teller, side = told_by // sides, told_by % sides
        # Those that are there come first.
        others = heard_at[teller].scatter(1, side[:, None], count).sort(dim=1).values
        more = []
        for column in others.unbind(1)[1:-1]:
            rows = (column < count).nonzero().flatten()
            more.append((rows, column[rows]))
        return cls(told_by, beside.flatten()[told_by], heard_at.T.contiguous(), others[:, 0],
                   tuple(more), heard_at[teller, side])  # fmt: skip

    def others(self, told: Tensor) -> Tensor:
        """(E, M): for every message, what its teller heard from all but the one it is for."""
        found = functional.pad(told, (0, 1)).index_select(1, self.first)
        for rows, which in self.more:
            found.index_add_(1, rows, told.index_select(1, which))
        return found

    def others_back(self, gradient: Tensor) -> Tensor:
        """The transpose of `others`: if you count for me, then on the way back I count for you."""
        return self.others(gradient.index_select(1, self.back)).index_select(1, self.back)


class _Talk(torch.autograd.Function):
    """All messages before the first iteration and after each: (K + 1, E, M)."""

    @staticmethod
    def forward(
        ctx: Any,
        first: Tensor,
        term: Tensor,
        tells: Tensor,
        told: Tensor,
        bias: Tensor,
        roads: Roads,
        shake: Tensor | None,
        steps: int,
    ) -> Tensor:
        heard, inner, path = [], [], [first]
        for _ in range(steps):
            held = path[-1] if shake is None else path[-1] + shake
            heard.append(roads.others(held))
            inner.append(torch.addmm(term, tells, heard[-1]).relu_())
            path.append(torch.addmm(bias[:, None], told, inner[-1]).tanh_())
        ctx.save_for_backward(tells, told)
        ctx.roads, ctx.heard, ctx.inner, ctx.path = roads, heard, inner, path
        return torch.stack(path)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        tells, told = ctx.saved_tensors
        (gradient,) = gradients
        below = gradient[-1]
        term_back = torch.zeros_like(ctx.inner[0])
        tells_back, told_back = torch.zeros_like(tells.T), torch.zeros_like(told)
        bias_back = told.new_zeros(len(told))
        for step in reversed(range(len(ctx.inner))):
            inner = ctx.inner[step]
            said = torch.ops.aten.tanh_backward(below, ctx.path[step + 1])
            bias_back += said.sum(dim=1)
            told_back.addmm_(said, inner.T)
            thought = torch.ops.aten.threshold_backward(told.T @ said, inner, 0)
            term_back += thought
            tells_back.addmm_(ctx.heard[step], thought.T)
            below = gradient[step] + ctx.roads.others_back(tells.T @ thought)
        return below, term_back, tells_back.T, told_back, bias_back, None, None, None


class _Hear(torch.autograd.Function):
    """(…, E, M) to (…, E, N): the sum of what all neighbours tell a square."""

    @staticmethod
    def forward(ctx: Any, told: Tensor, roads: Roads) -> Tensor:
        ctx.roads = roads
        return _heard(told, roads).sum(dim=-2)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return gradients[0].index_select(-1, ctx.roads.hearer), None


def _heard(told: Tensor, roads: Roads) -> Tensor:
    """(…, E, M) to (…, E, D, N): what every square hears from each side."""
    heard = functional.pad(told, (0, 1)).index_select(-1, roads.heard_at.flatten())
    return heard.view(*told.shape[:-1], *roads.heard_at.shape)


class _Rule:
    """The rule's weights, and what each square and side sees of a problem."""

    def __init__(self, net: LocalRule, seen: Tensor, roads: Roads) -> None:
        """``seen`` is what open squares see of the problem: (N, 1 + D, C), themselves first."""
        self.roads, self.layers, channels = roads, Layers.of(net), net.config.channels
        hidden, recall, base = self.layers.hidden, net.recall.weight.flatten(1), _bias(net.recall)
        # Side 0 speaks for all, and what it sees of side 1 for what a side sees of any other.
        one, own = slice(hidden.own, hidden.own + hidden.each), slice(hidden.own)
        self._views = _sorted(seen)
        self._recall, self._base = recall[one, : 3 * channels], base[one, None]
        around = torch.cat([seen[:, 0], seen[:, 1:].sum(dim=1)], dim=1)
        self.own_term = base[own, None] + recall[own, : 2 * channels] @ around.T

    def terms(self, places: Tensor | None = None) -> Tensor:
        """(H, M): what the sides at these places make of the problem; of all if none is said."""
        views = self._views if places is None else self._views.index_select(0, places)
        return self._base + self._recall @ views.T

    def own(self, told: Tensor) -> Tensor:
        """(…, E, M) to (…, O, N): what squares make of it for themselves."""
        hear: Any = _Hear
        layers = self.layers
        inner = torch.relu(layers.keeps @ hear.apply(told, self.roads) + self.own_term)
        return torch.tanh(layers.kept @ inner + layers.own_bias[:, None])

    @torch.no_grad()
    def everything(self, told: Tensor) -> Tensor:
        """(E, M) to (N, W): all that squares hold next, what they tell walls included."""
        layers, heard = self.layers, _heard(told, self.roads)
        around = torch.stack(sum_over_other_sides(heard.unbind(1)), dim=-1)
        inner = torch.relu(layers.tells @ around.flatten(1) + self.terms())
        said = torch.tanh(layers.told @ inner + layers.bias[:, None])
        said = said.view(len(said), -1, heard.shape[1]).movedim(0, -1).flatten(1)
        return torch.cat([self.own(told).T, said], dim=1)


def _sorted(seen: Tensor) -> Tensor:
    """(N * D, 3 C): for every side the square itself, what is there, and what all others see."""
    here, there = seen[:, :1].expand_as(seen[:, 1:]), seen[:, 1:]
    return torch.cat([here, there, there.sum(dim=1, keepdim=True) - there], dim=2).flatten(0, 1)


def _bias(layer: nn.Module) -> Tensor:
    if not isinstance(layer.bias, Tensor):
        raise TypeError("this layer of a local rule has a bias")
    return layer.bias


class MessageUnroll(SparseUnroll):
    """The verbs on messages between open squares."""

    def forward_backward(
        self,
        inputs: Tensor,
        targets: Tensor,
        segment: Segment,
        *,
        state: State | None = None,
        restart: Tensor | None = None,
        keep: int | None = None,
        noise: Tensor | None = None,
    ) -> StepResult:
        """Iterate with gradients, add those of the loss to the parameters."""
        if segment.settle:  # what walls are told counts as restless, too
            return super().forward_backward(inputs, targets, segment, state=state, restart=restart,
                                 keep=keep, noise=noise)  # fmt: skip
        net: Any = self.net
        begun = initial_state(net, inputs, state, restart)
        seen, room = net.view(inputs)
        is_open = room[:, 0].bool()
        places = is_open.flatten().nonzero().flatten()
        roads = Roads.between(neighbours_of(is_open))
        sights = rows_of(seen)[places].view(len(places), -1, inputs.shape[1])
        rule = _Rule(net, sights, roads)
        layers = rule.layers

        def messages(features: Tensor) -> Tensor:
            sides = rows_of(features)[places][:, layers.state.own :]
            return (
                sides.reshape(-1, layers.state.each).index_select(0, roads.told_by).T.contiguous()
            )

        shake = None if noise is None else messages(noise)
        talk: Any = _Talk
        weights = (layers.tells, layers.told, layers.bias)
        path = talk.apply(messages(begun.features), rule.terms(roads.told_by), *weights, roads,
                          shake, segment.steps)  # fmt: skip
        heard = path[:-1] if shake is None else path[:-1] + shake
        counted = [(share, at) for at, share in enumerate(self.shares(segment)) if share]
        own = rule.own(heard[[at for _, at in counted]])
        head = net.head.weight.flatten(1)[:, : layers.state.own]
        logits = (head @ own + net.head.bias[:, None]).movedim(1, -1)
        wanted = self.wanted(inputs, targets)[places]
        loss = self.weighed(logits, wanted, [share for share, _ in counted])
        backward(net, loss * segment.weight, self.scale)

        def state_at(number: int) -> State:
            if number == 0:
                return State((begun.features * is_open[:, None]).detach(), begun.step)
            rows = rule.everything(heard[number - 1])
            return self.spread(rows, places, is_open, begun.step + number)

        kept = None if keep is None else state_at(keep)
        return StepResult(loss.detach(), state_at(segment.steps), kept)
