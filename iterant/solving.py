"""Iterate until each problem is done.

    >>> answer = solve(net, batch.inputs, max_steps=1000)
    >>> task.solved(answer.prediction, batch)
    >>> [solution] = solutions(net, task, [Problem(batch[[0]])])
    >>> solution.answer, solution.right, solution.settled

`solve` takes tensors and decodes the answers; its callback sees every iteration, as for
`iterant.evaluation`. `solutions` takes problems from text, files or a task, and also gives the
answer in words, its film, and whether it is right. `iterant.tasks.inputs.gather` reads problems,
`iterant.tasks.protocol.sample_problems` samples them.

Shapes: B batch, b samples still in the batch, W width, K classes, *S space.
"""

from __future__ import annotations

import base64
import html
import math
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby, pairwise
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from iterant import registry
from iterant.engine import State, Thought, check_count, iterate_from
from iterant.errors import NetError, UsageError
from iterant.formatting import counted
from iterant.halting import SETTLED, Fixed, Resting, Rule, RuleState
from iterant.nets.fast import accelerate, threads
from iterant.nets.protocol import (
    Needs,
    Net,
    check_inputs,
    check_net,
    depth_of,
    like,
    needs_of,
    on_device,
    readout_of,
)
from iterant.tasks.protocol import (
    OptionalMethods,
    Problem,
    RulesCheck,
    Task,
    answer_text,
    is_right,
    offers,
    slices,
)

MAX_STEPS = 1000
"""Default limit on the iterations of networks that are not feed-forward."""
BUDGET, LAST_LAYER = "budget", "last layer"
"""Reasons to stop other than a rule's: no iterations left, no layers left."""

_MAX_PROBLEMS, _MAX_POSITIONS = 64, 1 << 18
"""Largest number of problems, and of positions of all of them, in a batch"""
_MAX_TEXT_POSITIONS = 1 << 17
"""Answers of a film are also written as text if they have at most this many positions in all"""

_FILM_BYTES, _MIN_FRAMES, _MAX_FRAMES = 16 << 20, 16, 4096
"""Memory of a film; least and most frames"""


@dataclass(frozen=True)
class Answer:
    """The answers of a batch, one row per sample."""

    prediction: Tensor
    """(B, *S) int64, by the network's readout"""
    steps: Tensor
    """(B,) int64: iterations each sample took before it stopped"""
    answered_at: Tensor
    """(B,) int64: the iteration the answer is from (before ``steps`` for `MostConfident`)"""
    stopped_by: tuple[str, ...]
    """Why each sample stopped: "settled", "stable answer", "fixed iterations" or another rule's
    reason where the rule was met; else "budget", or "last layer" for networks of fixed depth"""

    @property
    def settled(self) -> Tensor:
        """(B,) bool: whether the state is at rest or in a cycle that keeps its answer.

        More iterations then give the same answer; see `iterant.halting.Resting`.
        """
        settled = [reason == SETTLED for reason in self.stopped_by]
        return torch.tensor(settled, dtype=torch.bool, device=self.steps.device)

    def to(self, device: torch.device | str) -> Answer:
        """The same answers on another device."""
        steps, answered_at = self.steps.to(device), self.answered_at.to(device)
        return Answer(self.prediction.to(device), steps, answered_at, self.stopped_by)

    def __repr__(self) -> str:
        """The number settled and their iterations, in one line."""
        least, most = int(self.steps.min()), int(self.steps.max())
        took = f"{'' if least == most else f'{least} to '}{counted(most, 'iteration')}"
        shape = " × ".join(map(str, self.prediction.shape[1:]))
        answers, settled = counted(len(self.steps), "answer"), int(self.settled.sum())
        return f"Answer({answers} of {shape}: {settled} settled, after {took})"


@torch.no_grad()
def solve(
    net: Net,
    inputs: Tensor,
    *,
    max_steps: int = MAX_STEPS,
    rule: Rule | str | None = None,
    device: str | torch.device | None = None,
    callback: Callable[[Iteration], None] | None = None,
) -> Answer:
    """Iterate on every problem until the rule is met or ``max_steps`` iterations are done.

        >>> answer = solve(net, batch.inputs)
        >>> task.solved(answer.prediction, batch)
        tensor([True, True])
        >>> answer.steps.shape, answer.settled
        (torch.Size([2]), tensor([True, True]))

    Samples that are done leave the batch, so the cost is the sum of the samples' iterations. The
    default rule is `Resting`: a sample stops when it is settled, that is when its state is at rest
    or in a cycle that keeps its answer. Where ``max_steps`` ends before that, ``settled`` is False.
    Networks of fixed depth run all their layers, or ``max_steps`` of them, and are never settled.

    Args:
        net: a network of `iterant.load`, or any object with its four methods.
        inputs: (N, C, *space) problems, ``batch.inputs``.
        max_steps: limit on the iterations of each problem.
        rule: when to stop, one of `iterant.halting` or its name, ``stable``; None: `Resting`.
        callback: called with every `Iteration`. It may keep the features; if its attribute
            ``copies`` is true, iterations may overwrite them (faster on a CPU), so it clones what
            it keeps.
        device: where to compute, on a copy of the network if that is elsewhere; None: where the
            network is. The answer is on the device of the inputs.
    """
    given = inputs
    if device is not None and isinstance(inputs, Tensor):
        net, inputs = on_device(net, device), inputs.to(registry.device(device))
    check_inputs(net, inputs)
    budget, depth = check_count("max_steps", max_steps, least=1), depth_of(net)
    budget = budget if depth is None else min(budget, depth)
    if isinstance(rule, str):
        registry.allow(rule)
        rule = registry.rule(rule)
    elif rule is None:
        rule = Resting() if depth is None else Fixed()
    users = (rule,) if callback is None else (rule, callback)
    reuse = all(getattr(user, "copies", False) for user in users)
    fast = accelerate(net, inputs, reuse=reuse)
    prediction = torch.empty(0, dtype=torch.int64, device=inputs.device)
    steps = torch.zeros(len(inputs), dtype=torch.int64, device=inputs.device)
    answered_at, met = torch.zeros_like(steps), torch.zeros_like(steps, dtype=torch.bool)
    with threads(fast):
        for iteration in iterate_until_done(fast, inputs, rule, budget):
            if callback is not None:
                callback(iteration)
            if iteration.any_leaving:
                latest, latest_at = iteration.answer()
                if not len(prediction):
                    prediction = latest.new_zeros(len(inputs), *latest.shape[1:])
                source = iteration.leaving.nonzero().flatten()
                target = iteration.rows[source]
                prediction[target], answered_at[target] = latest[source], latest_at[source]
                steps[target], met[target] = iteration.thought.step, iteration.done[source]
    reason = str(getattr(rule, "reason", type(rule).__name__))
    stopped_by = tuple(
        reason if is_met else LAST_LAYER if step == depth else BUDGET
        for is_met, step in zip(met.tolist(), steps.tolist(), strict=True)
    )
    return Answer(prediction, steps, answered_at, stopped_by).to(given.device)


@dataclass(frozen=True)
class Iteration:
    """One iteration of the samples still in the batch."""

    thought: Thought
    _before: Tensor
    """The same features as `before`, or what has overwritten them"""
    rows: Tensor
    """(b,) int64: the samples' indices in the whole batch"""
    done: Tensor
    """(b,) bool: whether the rule is met"""
    leaving: Tensor
    """(b,) bool: ``done``, or all when the budget is spent"""
    any_leaving: bool
    """Whether any is leaving; computed once, because reading it waits for the GPU"""
    rule_state: RuleState

    @property
    def before(self) -> Tensor:
        """(b, W, *S): the features before the iteration."""
        restore = getattr(self.thought.net, "previous_features", None)
        features: Tensor = self._before if restore is None else restore(self._before)
        return features

    def answer(self) -> tuple[Tensor, Tensor]:
        """Prediction (b, *S) and the step (b,) it is from, if all stopped now."""
        return self.rule_state.answer(self.thought)


def iterate_until_done(net: Net, inputs: Tensor, rule: Rule, budget: int) -> Iterator[Iteration]:
    """Yield every iteration up to the budget; samples for which the rule is met leave the batch.

        >>> iterations = iterate_until_done(net, x, StableAnswer(), budget=1000)
        >>> cost = sum(len(iteration.rows) for iteration in iterations)

    No gradients are kept. `check_inputs` is up to the caller.
    """
    if isinstance(rule, type) or not callable(getattr(rule, "start", None)):
        raise UsageError(f"a rule is an object such as halting.StableAnswer(30), got {rule!r}")
    with torch.no_grad():
        rule_state, state = rule.start(), State(net.start(inputs))
    if not isinstance(rule_state, RuleState):
        raise UsageError(
            f"start() of {type(rule).__name__} gave {type(rule_state).__name__}, not a subclass "
            "of iterant.halting.RuleState; make it one"
        )
    rows = torch.arange(len(inputs), device=inputs.device)
    while len(rows):
        before, none_done = state.features, torch.zeros_like(rows, dtype=torch.bool)
        for thought in iterate_from(net, inputs, state, budget - state.step):
            met, is_last = rule_state.update(thought), thought.step >= budget  # (b,) or None
            if met is not None:
                _check_met(met, len(rows), rule)
            any_leaving = is_last or (met is not None and bool(met.any()))
            # A rule may decide on the CPU.
            done = met.to(rows.device) if any_leaving and met is not None else none_done
            leaving = ~none_done if is_last else done
            yield Iteration(thought, before, rows, done, leaving, any_leaving, rule_state)
            if is_last:
                return
            if any_leaving:
                break
            before = thought.features
        staying = (~done).nonzero().flatten()
        rule_state.select(staying)
        rows, inputs, state = rows[staying], inputs[staying], thought.state.rows(staying)
        if select := getattr(net, "select_samples", None):  # it has tables of every sample
            select(staying, inputs, state.features)


def _check_met(met: Any, count: int, rule: Rule) -> None:
    """Raise UsageError unless a rule, which may be user-defined, gave (count,) bool."""
    if not isinstance(met, Tensor) or met.dtype != torch.bool or met.shape != (count,):
        raise UsageError(
            f"update() of {type(rule).__name__} gave {met!r:.80}, wanted None or a tensor of "
            f"{counted(count, 'bool')}, one for each sample"
        )


def check_fits(net: Net, task: Task) -> None:
    """Raise NetError if the inputs or classes of a network are not those of the task."""
    check_net(net)
    if isinstance(task, str | type):
        raise UsageError(f'wanted a task, got {task!r}; give iterant.task("mazes") or Mine()')
    spec, needs = task.spec, needs_of(net)
    offered = Needs(spec.dims, spec.channels, spec.classes)
    if needs is not None and needs != offered:
        raise NetError(
            f"this network is for {needs}, and {spec.name} has {offered}; "
            f"take a network that was trained on {spec.name}"
        )


@dataclass(frozen=True)
class Frame:
    """The answer after one iteration."""

    step: int
    prediction: NDArray[np.uint8]
    """(*S)"""
    min_confidence: float
    """The probability of the predicted class at the least confident position"""


class Film:
    """The answers to one problem by iteration, in bounded memory.

    The frames are spread evenly over the iterations: when the film is full, every other frame is
    dropped and frames are taken half as often from then on. Films of small problems hold every
    iteration.
    """

    def __init__(self, positions: int) -> None:
        """Keep as many frames of a problem with this many positions as fit in 16 MiB."""
        room = _FILM_BYTES // max(1, positions)
        self.max_frames = min(max(room, _MIN_FRAMES), _MAX_FRAMES)
        self.stride = 1
        """Iterations from one frame to the next"""
        self.frames: list[Frame] = []
        """In the order of iterations"""

    def due(self, step: int) -> bool:
        """Whether this iteration gets a frame; the first always does."""
        return (step - 1) % self.stride == 0

    def put(self, frame: Frame, *, last: bool = False) -> None:
        """Add a frame if it is due; ``last``: in any case."""
        if not (last or self.due(frame.step)):
            return
        if len(self.frames) >= self.max_frames:
            self.stride *= 2
            self.frames = [old for old in self.frames if self.due(old.step)]
        if last or self.due(frame.step):
            self.frames.append(frame)

    def at(self, step: int) -> Frame:
        """The frame of that iteration, or the last one before it."""
        following = bisect_right(self.frames, step, key=lambda frame: frame.step)
        return self.frames[max(0, following - 1)]

    def changes(self) -> list[Frame]:
        """The first frame, and every one whose answer differs from the one before."""
        return self.frames[:1] + [
            frame
            for before, frame in pairwise(self.frames)
            if not np.array_equal(frame.prediction, before.prediction)
        ]


def _frames_of(thought: Thought) -> list[Frame]:
    """The frame of every sample of the batch."""
    classes = thought.prediction.unsqueeze(1)
    probability = thought.logits.float().softmax(dim=1).gather(1, classes).squeeze(1)
    counts = readout_of(thought.net).counted(thought.inputs)
    if counts is not None:
        probability = torch.where(counts, probability, 1.0)
    least = probability.flatten(1).amin(dim=1).tolist()
    predictions = thought.prediction.to(torch.uint8).cpu().numpy()
    return [Frame(thought.step, *each) for each in zip(predictions, least, strict=True)]


Viewer = Callable[[Problem, Frame, Film], None]
"""Called with every iteration of the problem being solved."""


@dataclass(frozen=True)
class Solution:
    """The answer to one problem, and how it was found."""

    problem: Problem
    film: Film
    prediction: Tensor | None = None
    """(1, *S) int64; None where the problem has no solution"""
    steps: int = 0
    """Iterations taken"""
    stopped_by: str = ""
    """Why it stopped, as in `Answer.stopped_by`: "settled", "stable answer", "budget" …"""
    answered_at: int = 0
    """The iteration that the answer is from"""
    seconds: float = 0.0
    """Time of the iterations; that of a batch is divided equally among its problems"""
    right: bool | None = None
    """Whether the answer is right; None if the true answer is not known"""
    min_confidence: float = 0.0
    """The probability of the predicted class at the least confident position"""
    answer: str = ""
    """The prediction as text, if the task can write it: bits, a move"""
    verdict: RulesCheck = field(default_factory=RulesCheck)
    """Whether it keeps the rules of the task"""
    allowed: Tensor | None = None
    """(1, *S): the best answer that the rules allow, with ``restrict``"""
    allowed_answer: str = ""
    allowed_right: bool | None = None
    """Whether ``allowed`` is right; it is not the network's own answer"""
    history: tuple[tuple[Frame, str], ...] = ()
    """Every change of the answer in the film, with its text (empty for large problems)"""
    task: Task | None = field(default=None, repr=False, compare=False)
    """Draws the film"""

    def _repr_html_(self) -> str | None:
        """The iterations as an animation, which a notebook plays."""
        if self.task is None:
            return None
        image: bytes = registry.find("picture", "film")(self)
        source = f"data:image/gif;base64,{base64.b64encode(image).decode()}"
        return f'<img src="{source}" alt="{html.escape(repr(self))}">'

    @property
    def settled(self) -> bool:
        """Whether the state is at rest, or in a cycle that keeps its answer."""
        return self.stopped_by == SETTLED

    def __repr__(self) -> str:
        """The outcome in one line."""
        name = self.problem.name or "problem"
        if self.prediction is None:
            return f"Solution({name}: {self.problem.unsolvable}; not tried)"
        ended = "settled" if self.settled else f"not settled, stopped by {self.stopped_by}"
        right = {True: "right", False: "wrong", None: "not judged"}[self.right]
        after = counted(self.steps, "iteration")
        return f"Solution({name}: {self.answer or 'no answer'}; {ended} after {after}; {right})"

    def described(self) -> dict[str, Any]:
        """A dict for JSON; grids are rows of digits, with spaces between if a class is above 9."""
        batch = self.problem.batch
        extras = {
            name: values[0].item() for name, values in batch.extras.items() if values.ndim == 1
        }
        result = {
            "problem": self.problem.name,
            "about": {k: v for k, v in extras.items() if isinstance(v, str | int | float)},
            "notes": list(self.problem.notes),
            "unsolvable": self.problem.unsolvable or None,
            "answer": self.answer or None,
            "prediction": _digits(self.prediction),
            "truth": _digits(batch.targets) if batch.labelled else None,
            "right": self.right,
            "settled": self.settled,
            "stopped_by": self.stopped_by or None,
            "iterations": self.steps,
            "answered_at": self.answered_at,
            "seconds": round(self.seconds, 4),
            "sure": round(self.min_confidence, 6),
            "keeps_rules": self.verdict.legal,
            "verdict": self.verdict.words or None,
            "changes": [
                {
                    "iteration": frame.step,
                    "sure": round(frame.min_confidence, 6),
                    "answer": text or None,
                }
                for frame, text in self.history
            ],
        }
        if self.allowed is not None:
            result["allowed"] = _digits(self.allowed)
            result["allowed_answer"] = self.allowed_answer
            result["allowed_right"] = self.allowed_right
        return result


def _digits(grid: Tensor | None) -> list[str] | None:
    """Rows of a (1, *S) grid of classes as text."""
    if grid is None:
        return None
    rows, between = grid[0] if grid.dim() == 3 else grid, " " if int(grid.max()) > 9 else ""
    return [between.join(map(str, row)) for row in rows.tolist()]


def solutions(
    net: Net,
    task: Task,
    problems: Sequence[Problem],
    *,
    max_steps: int | None = None,
    rule: Rule | None = None,
    restrict: bool = False,
    viewer: Viewer | None = None,
) -> Iterator[Solution]:
    """Solve every problem; yields the solutions in order.

        >>> [solution] = solutions(net, task, [Problem(batch[[0]])])
        >>> solution.settled, solution.right
        (True, True)

    Small problems of one shape are solved in one batch, unless there is a viewer.
    ``max_steps=None`` allows 1,000 iterations and one for each cell of the problem; the default
    rule is that of `solve`. ``restrict`` also finds the best answer that the rules of the task
    allow.
    """
    check_fits(net, task)
    if restrict and not offers(task, "restrict"):
        raise UsageError(
            f"the rules of {task.spec.title} do not restrict answers; leave that option out"
        )
    # A viewer shows one problem at a time: with 0 positions, every batch holds one.
    for group in _batches(problems, 0 if viewer is not None else _MAX_POSITIONS):
        if group[0].unsolvable:
            yield from (Solution(problem, Film(1), task=task) for problem in group)
            continue
        budget = default_max_steps(task, group[0]) if max_steps is None else max_steps
        inputs = like(net, torch.cat([problem.batch.inputs for problem in group]))
        films, start = _Films(group, restrict, viewer), time.perf_counter()
        answer = solve(net, inputs, max_steps=budget, rule=rule, callback=films)
        seconds = (time.perf_counter() - start - films.seconds) / len(group)
        for row, problem in enumerate(group):
            yield _solution(task, problem, answer, row, films, seconds)


def default_max_steps(task: Task, problem: Problem) -> int:
    """Default iterations: information moves at least one cell per iteration."""
    cells: int = problem.batch.targets[0].numel() // task.spec.square**task.spec.dims
    return MAX_STEPS + cells


def _batches(problems: Sequence[Problem], max_positions: int) -> Iterator[list[Problem]]:
    """Consecutive problems of one shape, in batches; unsolvable problems separately."""

    def key(problem: Problem) -> tuple[str, torch.Size]:
        return problem.unsolvable, problem.batch.inputs.shape

    for _, same_key in groupby(problems, key):
        group = list(same_key)
        most = min(_MAX_PROBLEMS, max(1, max_positions // group[0].batch.targets[0].numel()))
        yield from (group[part] for part in slices(len(group), most))


class _Films:
    """A callback of `solve` that films every problem of a batch."""

    copies = True

    def __init__(self, problems: list[Problem], restrict: bool, viewer: Viewer | None) -> None:
        self.problems, self.restrict, self.viewer = problems, restrict, viewer
        self.films = [Film(problem.batch.targets[0].numel()) for problem in problems]
        self.logits: dict[int, Tensor] = {}
        """(K, *S): the logits that each problem's answer was read from, with ``restrict``"""
        self.seconds = 0.0
        """Time spent in this callback, which is not counted as iterating"""

    def __call__(self, iteration: Iteration) -> None:
        start = time.perf_counter()
        thought, rows = iteration.thought, iteration.rows.tolist()
        leaving = iteration.leaving.tolist()
        if any(leaving) or any(self.films[row].due(thought.step) for row in rows):
            for row, frame, last in zip(rows, _frames_of(thought), leaving, strict=True):
                self.films[row].put(frame, last=last)
        if self.restrict:
            # The answer of `MostConfident` may be of an earlier iteration than the last one.
            is_latest = (iteration.answer()[1] == thought.step).tolist()
            latest = zip(rows, thought.logits, is_latest, strict=True)
            self.logits |= {row: logits for row, logits, now in latest if now}
        if self.viewer is not None:
            film = self.films[rows[0]]
            self.viewer(self.problems[rows[0]], film.at(thought.step), film)
        self.seconds += time.perf_counter() - start


def _solution(
    task: Task, problem: Problem, answer: Answer, row: int, films: _Films, seconds: float
) -> Solution:
    batch, prediction = problem.batch, answer.prediction[row : row + 1].cpu()
    film, answered_at = films.films[row], int(answer.answered_at[row])
    confidence = film.at(answered_at).min_confidence
    right = is_right(task, batch, prediction)
    if right and math.isnan(confidence):  # decoded from NaN
        right = False
    changes = film.changes()
    texts = [""] * len(changes)
    if len(changes) * batch.targets[0].numel() <= _MAX_TEXT_POSITIONS:
        grids = [torch.from_numpy(frame.prediction)[None].long() for frame in changes]
        texts = [answer_text(task, batch, grid) for grid in grids]
    allowed: dict[str, Any] = {}
    if films.restrict:
        grid, assumption = cast("OptionalMethods", task).restrict(batch, 0, films.logits[row])
        if assumption not in ("", *problem.notes):
            problem = replace(problem, notes=(*problem.notes, assumption))
        allowed = {
            "allowed": grid[None],
            "allowed_answer": answer_text(task, batch, grid[None]),
            "allowed_right": is_right(task, batch, grid[None]),
        }
    return Solution(
        problem=problem,
        film=film,
        prediction=prediction,
        steps=int(answer.steps[row]),
        stopped_by=answer.stopped_by[row],
        answered_at=answered_at,
        seconds=seconds,
        right=right,
        min_confidence=confidence,
        answer=answer_text(task, batch, prediction),
        verdict=task.verdict(batch, 0, prediction) if offers(task, "verdict") else RulesCheck(),
        history=tuple(zip(changes, texts, strict=True)),
        task=task,
        **allowed,
    )
