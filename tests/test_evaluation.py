"""Accuracy by iteration: known exactly for networks built by hand; laws for trained ones."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
import torch
from exact_networks import ByHand, exact_prefix_sums, first_right, forgetting, poisoned
from exact_networks import two_cycle as two_cycle_net
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from small_networks import PAIRS, Ticking, small_batch, small_net
from torch import Tensor
from torch.overrides import TorchFunctionMode

import iterant
from iterant import evaluation
from iterant.errors import TaskError, UsageError
from iterant.evaluation import (
    Curve,
    evaluate,
    evaluate_batch,
    is_finite,
    operations,
    resolve_steps,
    wilson,
)
from iterant.halting import Fixed, MostConfident, Resting, Rule, StableAnswer
from iterant.nets import depth_of
from iterant.nets.fast import SparseRule
from iterant.solving import solve
from iterant.tasks.prefix_sums import PrefixSums
from iterant.tasks.protocol import Batch

TASK = PrefixSums()
BITS, COUNT, STEPS = 10, 40, 25
BATCH = TASK.sample(COUNT, size=BITS, seed=1)
BY_HAND = [exact_prefix_sums, two_cycle_net, forgetting]


def known_curve(targets: Tensor, steps: int) -> list[int]:
    """How many problems are solved after each iteration."""
    solved_at = first_right(targets).tolist()
    return [sum(first <= step for first in solved_at) for step in range(1, steps + 1)]


@pytest.mark.parametrize("make", BY_HAND)
def test_the_curve_of_known_networks(make: type[ByHand]) -> None:
    curve = evaluate(make(), TASK, size=BITS, count=COUNT, seed=1, max_steps=STEPS)
    assert curve.steps == tuple(range(1, STEPS + 1))
    assert curve.solved.tolist() == known_curve(BATCH.targets, STEPS)
    assert curve.peak == (int(first_right(BATCH.targets).max()), 1.0)
    assert (curve.end, curve.lost, curve.nonfinite) == (1.0, 0.0, 0)
    assert curve.steps_taken.tolist() == [STEPS] * COUNT
    assert curve.stopped is None


def test_relative_change_in_the_last_iteration() -> None:
    assert evaluate_batch(exact_prefix_sums(), TASK, BATCH, steps=BITS + 1).change == 0
    assert evaluate_batch(exact_prefix_sums(), TASK, BATCH, steps=BITS).change > 0
    mazes, net = iterant.task("mazes"), iterant.load("mazes-messages")
    before, after = (
        t.features.detach() for t in iterant.think(net, mazes.sample(1).inputs, steps=2)
    )
    change = evaluate_batch(net, mazes, mazes.sample(1), steps=2).change
    assert change == pytest.approx(float((after - before).norm() / after.norm()), rel=1e-4)
    # These features count iterations: the fifth goes from 4 to 5.
    batch = Batch(torch.full((3, 1, 4), 9.0), torch.zeros(3, 4, dtype=torch.int64))
    assert evaluate_batch(Ticking(), TASK, batch, steps=5).change == pytest.approx(1 / 5)


RULES: list[Rule | None] = [None, Fixed(7), StableAnswer(2), Resting(0.02), MostConfident()]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: type(rule).__name__)
@pytest.mark.parametrize(("problem", "variant"), PAIRS)
def test_a_budget_of_k_is_solving_with_k_iterations(
    problem: str, variant: str, rule: Rule | None
) -> None:
    net, batch, task = small_net(problem, variant), small_batch(problem), iterant.task(problem)
    budget = depth_of(net) or 14
    # Their own answers as targets: untrained networks solve nothing else.
    half = solve(net, batch.inputs, max_steps=budget // 2, rule=rule or Fixed())
    batch = type(batch)(batch.inputs, half.prediction, batch.extras)
    curve = evaluate_batch(net, task, batch, steps=budget, rule=rule)
    assert int(curve.solved[budget // 2 - 1]) == len(batch)
    for budget_now in (1, 2, budget // 2, budget):
        answer = solve(net, batch.inputs, max_steps=budget_now, rule=rule or Fixed())
        solved = task.solved(answer.prediction, batch)
        assert int(curve.solved[budget_now - 1]) == int(solved.sum())
    assert torch.equal(curve.steps_taken, answer.steps)
    assert torch.equal(curve.right, solved)


@settings(max_examples=25)
@given(st.integers(1, COUNT + 3), st.sampled_from([None, StableAnswer(1), Resting(0.1)]))
def test_the_batch_size_does_not_change_the_figures(size: int, rule: Rule | None) -> None:
    whole = evaluate_batch(exact_prefix_sums(), TASK, BATCH, steps=STEPS, rule=rule)
    parts = evaluate_batch(
        exact_prefix_sums(), TASK, BATCH, steps=STEPS, rule=rule, batch_size=size
    )
    assert parts.solved.tolist() == whole.solved.tolist()
    assert whole.steps_taken.tolist() == parts.steps_taken.tolist()
    assert parts.change == pytest.approx(whole.change)


def test_answers_are_decoded_at_the_marks_only() -> None:
    class Counting(ByHand):
        decoded = 0

        def answer(self, features: Tensor) -> Tensor:
            self.decoded += 1
            return super().answer(features)

    net = Counting()
    curve = evaluate_batch(net, TASK, BATCH, steps=STEPS, at=[3, 9])
    assert curve.steps == (3, 9)
    known = known_curve(BATCH.targets, STEPS)
    assert curve.solved.tolist() == [known[2], known[8]]
    assert net.decoded == 4, "at both, at the end and one before"
    halted = evaluate_batch(
        exact_prefix_sums(), TASK, BATCH, steps=STEPS, at=[3, 24], rule=Fixed(5)
    )
    assert halted.solved.tolist() == [known[2], known[4]]


@pytest.mark.parametrize("steps", [20, 200])
def test_problems_at_rest_leave_without_a_trace(steps: int, monkeypatch: Any) -> None:
    task, net = iterant.task("mazes"), iterant.load("mazes-messages")
    batch = task.sample(8, size=9, seed=2)
    computed = []
    step = SparseRule.step

    def counting(self: Any, features: Tensor, memory: Tensor, index: int) -> Tensor:
        computed.append(len(features))
        return step(self, features, memory, index)

    monkeypatch.setattr(SparseRule, "step", counting)
    figures = evaluate_batch(net, task, batch, steps=steps, cost=True).described()
    assert (sum(computed) < 8 * steps / 2) == (steps == 200)
    monkeypatch.setattr(evaluation, "ExactRest", Fixed)
    whole = evaluate_batch(net, task, batch, steps=steps, cost=True).described()
    del figures["seconds"], whole["seconds"]
    assert figures == whole


def test_answers_that_still_change_at_the_end_are_counted() -> None:
    for budget in (3, BITS + 1):
        # A sum by hand is right from one iteration on, and changes until then.
        curve = evaluate_batch(exact_prefix_sums(), TASK, BATCH, steps=budget)
        assert curve.answers_changing is not None
        assert curve.answers_changing >= int(curve.solved[-1] - curve.solved[-2])
        assert (curve.answers_changing > 0) == (budget < int(first_right(BATCH.targets).max()))
        assert ("still changing" in repr(curve)) == (curve.answers_changing > 0)
    stopped = evaluate_batch(exact_prefix_sums(), TASK, BATCH, steps=200, rule=StableAnswer(20))
    assert stopped.answers_changing == 0
    feed_forward = evaluate(small_net("prefix-sums", "ff"), TASK, size=BITS, count=2)
    assert feed_forward.answers_changing is None


def test_features_that_are_not_finite_are_counted_and_never_solved() -> None:
    zeros = torch.zeros_like(BATCH.targets)
    bad = BATCH.targets[:, 0] == 1
    curve = evaluate_batch(poisoned(3), TASK, BATCH, steps=STEPS)
    assert curve.nonfinite == int(bad.sum()) > 0
    steps = first_right(BATCH.targets)
    healthy = [int(((steps <= step) & (~bad | (step <= 3))).sum()) for step in range(1, STEPS + 1)]
    assert curve.solved.tolist() == healthy
    assert curve.change != curve.change, "the mean of NaN is NaN"
    # NaN reads out as class 0: even where that is the wanted answer, it does not count.
    lucky = type(BATCH)(BATCH.inputs, zeros)
    for rule in (None, StableAnswer(2), Resting(0.1), MostConfident()):
        shown = evaluate_batch(poisoned(0), TASK, lucky, steps=5, rule=rule)
        assert not bool(shown.right[bad].any())
        assert shown.described()["not finite"] == shown.nonfinite == int(bad.sum())


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_large_features_are_finite(dtype: torch.dtype) -> None:
    largest = torch.finfo(dtype).max
    features = torch.full((4, 2, 3), largest, dtype=dtype)
    features[1, 0, 0] = float("nan")
    features[2, 1, 2] = float("inf")
    features[3, 1, 1] = -float("inf")
    assert is_finite(features).tolist() == [True, False, False, False]


def test_progress_ends_at_the_whole() -> None:
    seen: list[tuple[int, int]] = []
    evaluate_batch(
        exact_prefix_sums(), TASK, BATCH, steps=STEPS, batch_size=15, rule=Fixed(3),
        progress=lambda done, of: seen.append((done, of)),
    )  # fmt: skip
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert {of for _, of in seen} == {COUNT * STEPS}
    assert seen[-1] == (COUNT * STEPS, COUNT * STEPS)


def test_seconds_and_operations_by_iteration() -> None:
    curve = evaluate(exact_prefix_sums(), TASK, size=BITS, count=COUNT, max_steps=STEPS)
    assert curve.seconds > 0
    assert curve.work is not None
    assert len(curve.work) == STEPS
    # Two convolutions: 5 × 4 × 3 and 4 × 2 products, each with its sum, at every bit.
    each = 2 * BITS * (5 * 4 * 3 + 4 * 2)
    assert curve.work.tolist() == [each * step for step in curve.steps]


def test_the_depth_of_a_feed_forward_network() -> None:
    net, batch, task = small_net("mazes", "ff"), small_batch("mazes"), iterant.task("mazes")
    with pytest.raises(UsageError, match="has 12 iterations, asked for 13; ask for at most 12"):
        evaluate_batch(net, task, batch, steps=13)
    with pytest.raises(UsageError, match="at most 12"):
        evaluate(net, task, size=5, count=2, max_steps=1000)
    assert evaluate(net, task, size=5, count=2).steps == tuple(range(1, 13))
    assert resolve_steps(net, 99, cut=True) == 12


@pytest.mark.parametrize(
    "options",
    [
        *({"steps": steps} for steps in (0, -1, True, 2.5)),
        *({"at": at} for at in ([], [0], [-3, 4], [STEPS + 1])),
        {"batch_size": 0},
    ],
    ids=str,
)
def test_invalid_arguments(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError) as caught:
        evaluate_batch(exact_prefix_sums(), TASK, BATCH, **{"steps": STEPS, **options})
    assert "\n" not in str(caught.value)
    for size, count in ((0, 2), (BITS, 0)):
        with pytest.raises(TaskError):
            evaluate(exact_prefix_sums(), TASK, size=size, count=count, max_steps=3)


class DeviceReads(TorchFunctionMode):
    """Counts how often a program reads values of a tensor, which waits for a GPU."""

    READS = frozenset({Tensor.cpu, Tensor.item, Tensor.tolist, Tensor.numpy, Tensor.nonzero,
                       Tensor.__bool__, Tensor.__int__, Tensor.__float__})  # fmt: skip
    count = 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += func in self.READS
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("rule", [None, Fixed(50), MostConfident()], ids=["-", "fixed", "sure"])
def test_no_synchronisation_at_every_iteration(
    rule: Rule | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    # On a CPU `is_finite` reads values; on a GPU it does not.
    monkeypatch.setattr(evaluation, "is_finite", lambda f: f.flatten(1).isfinite().all(dim=1))
    batch, asked = TASK.sample(40, size=10, seed=1), []
    for steps in (51, 60, 200):
        with DeviceReads() as reads:
            evaluate_batch(exact_prefix_sums(), TASK, batch, steps=steps, rule=rule)
        asked.append(reads.count)
    assert 0 < asked[0] < 30
    assert asked[1] == asked[2] <= asked[0]


@pytest.mark.parametrize(("bound", "most"), [("POSITIONS_AT_ONCE", 7), ("_FEATURES_AT_ONCE", 3)])
def test_batches_are_bounded_by_positions_and_by_features(
    bound: str, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = []

    class Counting(ByHand):  # two features per position
        def step(self, features: Tensor, memory: Tensor | None, index: int) -> Tensor:
            sizes.append(len(features))
            return super().step(features, memory, index)

    monkeypatch.setattr(evaluation, bound, 7 * BITS)
    evaluate_batch(Counting(), TASK, BATCH, steps=1)
    assert sum(sizes) == COUNT
    assert max(sizes) == most


@pytest.mark.parametrize(
    ("rule", "reads"),
    [(StableAnswer(2), True), (MostConfident(), True), (Resting(), False), (Fixed(), False)],
    ids=str,
)
def test_a_rule_that_decodes_every_answer_costs_every_answer(rule: Rule, reads: bool) -> None:
    net, x = small_net("prefix-sums", "dt-recall"), small_batch("prefix-sums").inputs[:1]
    plain, ruled = operations(net, x), operations(net, x, rule)
    answer = ruled.step - plain.step
    assert (answer > 0) == reads
    assert ruled.once == plain.once - answer


def curve_of(*solved: int, taken: int | None = None) -> Curve:
    """Of eight problems, one of which takes that many iterations."""
    steps, right_at = len(solved), torch.arange(8) < torch.tensor(solved)[:, None]
    steps_taken = torch.tensor([taken or steps] + [steps] * 7)
    return Curve(tuple(range(1, steps + 1)), right_at, steps_taken, seconds=0.25)


@pytest.mark.parametrize("count", [1, 2, 7, 100, 1000])
def test_wilson_equals_scipys_interval(count: int) -> None:
    for solved in {0, 1, count // 2, count - 1, count}:
        low, high = wilson(torch.tensor(solved), count).tolist()
        assert 0 <= low <= solved / count <= high <= 1
        theirs = stats.binomtest(solved, count).proportion_ci(method="wilson")
        assert (low, high) == pytest.approx((theirs.low, theirs.high), abs=1e-12)


def test_peak_end_and_lost_accuracy() -> None:
    curve = curve_of(0, 6, 8, 8, 5)
    assert (curve.peak, curve.end, curve.lost) == ((3, 1.0), 5 / 8, 3 / 8)
    assert curve_of(1, 2, 2).lost == 0
    assert curve.interval.shape == (5, 2)
    assert repr(curve) == "Curve(8 problems: 100.0% solved after 3 iterations, 62.5% after 5)"


def test_curve_as_json() -> None:
    curve = curve_of(0, 8, 6)
    figures = json.loads(json.dumps(curve.described()))
    for name, step, accuracy in (("peak", 2, 1.0), ("end", 3, 0.75)):
        interval = curve.interval[step - 1].tolist()
        assert figures[name] == {"step": step, "accuracy": accuracy, "interval": interval}
    assert (figures["lost"], figures["solved"], figures["not finite"]) == (0.25, [0, 8, 6], 0)
    assert figures.keys().isdisjoint({"steps", "iterations of each"}), "all took the same"
    halted = replace(curve_of(0, 8, 6, taken=1), steps=(5, 6, 10)).described()
    assert (halted["iterations of each"], halted["steps"]) == ([1] + [3] * 7, [5, 6, 10])
