"""Halting rules: known steps of hand-built networks, and laws of the others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from small_networks import PAIRS, Ticking, small_batch, small_net
from torch import Tensor

import iterant
from iterant.engine import Thought, think
from iterant.errors import UsageError
from iterant.halting import (
    ExactRest,
    Fixed,
    MostConfident,
    Resting,
    Rule,
    RuleState,
    StableAnswer,
    confidence,
)
from iterant.nets import depth_of
from iterant.solving import solve

RULES: list[Rule] = [Fixed(7), StableAnswer(patience=2), Resting(0.02), MostConfident()]


def ticks(*stops: int) -> Tensor:
    """One sample per number: its features count up to it, then rest."""
    return torch.tensor(stops, dtype=torch.float32).view(-1, 1, 1)


def test_a_stable_answer_stops_each_sample() -> None:
    answer = solve(Ticking(), ticks(2, 5, 100), max_steps=20, rule=StableAnswer(patience=3))
    # Unchanged for 3 further iterations: seen first at iteration 2 (5), done at 5 (8).
    assert answer.steps.tolist() == [5, 8, 20]
    assert answer.stopped_by == ("stable answer", "stable answer", "budget")
    assert not answer.settled.any(), "an answer that stays the same may change later"
    assert answer.prediction.flatten().tolist() == [0, 1, 0]


def test_rest_is_decided_by_the_largest_change() -> None:
    answer = solve(Ticking(), ticks(2, 5, 100), max_steps=30, rule=Resting(1e-4))
    # Nothing changes in the 16 iterations after the last change.
    assert answer.steps.tolist() == [2 + 16, 5 + 16, 30]
    assert answer.settled.tolist() == [True, True, False]
    assert answer.stopped_by == ("settled", "settled", "budget")
    # One of a thousand positions still changes: a hundredth of the norm, and no rest.
    many = torch.full((1, 1, 1000), 50.0)
    many[..., 0] = 60
    assert solve(Ticking(), many, max_steps=90, rule=Resting(1e-2)).steps.tolist() == [60 + 16]


class FirstOne(RuleState):
    """A user-defined rule: stop at the first answer that is 1 somewhere."""

    def start(self) -> RuleState:
        return self

    def update(self, thought: Thought) -> Any:
        return thought.prediction.flatten(1).any(dim=1)


def test_a_user_defined_rule() -> None:
    answer = solve(Ticking(), ticks(0, 5, 100), max_steps=4, rule=FirstOne())
    assert answer.steps.tolist() == [4, 1, 1]
    assert answer.stopped_by == ("budget", "FirstOne", "FirstOne")


def test_a_rule_must_start_with_a_state() -> None:
    class Stateless:
        def start(self) -> Any:
            return self

    with pytest.raises(UsageError, match="gave Stateless, not a subclass"):
        solve(Ticking(), ticks(1), rule=Stateless())


@pytest.mark.parametrize("met", [True, torch.tensor(True), torch.ones(2), torch.ones(3).bool()])
def test_a_rule_must_give_a_bool_for_each_sample(met: object) -> None:
    class Wrong(FirstOne):
        def update(self, thought: Thought) -> Any:
            return met

    with pytest.raises(UsageError, match=r"update\(\) of Wrong gave .*a tensor of 2 bools"):
        solve(Ticking(), ticks(1, 2), max_steps=4, rule=Wrong())


class Stepping(Ticking):
    """A network whose iteration is a function of features, memory and index."""

    def __init__(self, function: Callable[[Tensor, Tensor, int], Tensor]) -> None:
        super().__init__()
        self.function = function

    def step(self, features: Tensor, memory: Tensor | None, index: int) -> Tensor:
        assert memory is not None
        return self.function(features, memory, index)


def test_overwritten_features_are_not_mistaken_for_rest() -> None:
    """A network that writes its features into the same tensor, which the protocol forbids."""
    net = Stepping(lambda features, memory, _: features.copy_(torch.minimum(features + 1, memory)))
    answer = solve(net, ticks(60, 60), max_steps=200)
    assert answer.settled.all()
    assert answer.steps.min() > 60


def test_exact_rest_is_for_networks_that_report_their_changes() -> None:
    net: Any = Ticking()
    for change in (None, "of another meaning"):
        net.last_change = change
        assert solve(net, ticks(2, 5), max_steps=9, rule=ExactRest()).stopped_by == ("budget",) * 2
    mazes, inputs = iterant.load("mazes"), iterant.task("mazes").sample(3, size=9).inputs
    answer = solve(mazes, inputs, rule=ExactRest())
    assert answer.settled.all()
    assert torch.equal(answer.prediction, solve(mazes, inputs, rule=Fixed(500)).prediction)
    assert (answer.steps < solve(mazes, inputs).steps).all(), "not 16 iterations without a change"


@pytest.mark.parametrize(
    ("rests", "function"),
    [
        (True, lambda features, *_: features + 1e-6),
        # Each iteration moves by less than the tolerance, sixteen of them by more.
        (False, lambda features, *_: features + 2e-5),
        (False, lambda features, *_: features + 0.7e-5),
        (True, lambda features, *_: features + 0.6e-5),
        (False, lambda features, *_: features * torch.nan),
        (False, lambda features, *_: features + torch.inf),
        # A state that returns once is not in a cycle.
        (False, lambda features, _, i: torch.full_like(features, 5 if i in (15, 18) else i + 10)),
    ],
)
def test_what_counts_as_rest(rests: bool, function: Any) -> None:
    answer = solve(Stepping(function), ticks(1).double(), max_steps=200, rule=Resting(1e-4))
    assert answer.stopped_by == (("settled",) if rests else ("budget",))


class Cycling(Ticking):
    """Cycles through ``period`` states; answers 1 in those that are listed."""

    def __init__(self, period: int, ones: tuple[int, ...] = ()) -> None:
        super().__init__()
        self.period, self.ones = period, ones

    def step(self, features: Tensor, memory: Tensor | None, index: int) -> Tensor:
        return (features + 1) % self.period

    def answer(self, features: Tensor) -> Tensor:
        one = torch.isin(features[:, 0], torch.tensor(self.ones, dtype=features.dtype)).float()
        return torch.stack([1 - one, one], dim=1)


@pytest.mark.parametrize(
    ("period", "ones", "settled"),
    [
        *((period, (), True) for period in (2, 3, 7, 16)),
        *((period, (), False) for period in (17, 64)),  # too long
        *((period, (period - 1,), False) for period in (2, 7, 16)),  # its answers differ
    ],
)
def test_a_short_cycle_whose_answers_agree_is_settled(
    period: int, ones: tuple[int, ...], settled: bool
) -> None:
    answer = solve(Cycling(period, ones), ticks(1, 1), max_steps=400)
    # Compared with the state after iteration 16 for 32 iterations.
    assert answer.steps.tolist() == [48 if settled else 400] * 2
    assert answer.settled.tolist() == [settled] * 2


def test_a_cycle_that_begins_late_is_found() -> None:
    late = Stepping(lambda features, _, i: (features + 2) % 6 if i > 500 else features + 2)
    answer = solve(late, ticks(1), max_steps=1000)
    assert answer.settled.all()
    assert 532 < int(answer.steps[0]) < 532 + 200


def test_one_sample_cycles_while_another_moves_on() -> None:
    def either(features: Tensor, memory: Tensor, _: int) -> Tensor:
        return torch.where(memory > 1, features + 2, (features + 2) % 4)

    answer = solve(Stepping(either), ticks(1, 9), max_steps=200)
    assert answer.stopped_by == ("settled", "budget")
    assert answer.steps.tolist() == [48, 200]


def test_a_network_of_fixed_depth_runs_all_its_layers_and_is_not_settled() -> None:
    net: Any = Stepping(lambda features, _, index: features + (index == 39))  # the last layer
    net.depth = 40
    for rule in (None, Resting(), Fixed()):
        answer = solve(net, ticks(1), rule=rule)
        assert answer.steps.tolist() == [40]
        assert answer.prediction.flatten().tolist() == [1]
        assert answer.stopped_by == ("last layer",)
    assert solve(net, ticks(1), max_steps=7).stopped_by == ("budget",)


def test_a_fixed_number_of_iterations() -> None:
    for rule, steps, reason in ((Fixed(6), 6, "fixed iterations"), (Fixed(), 9, "budget")):
        answer = solve(Ticking(), ticks(2, 100), max_steps=9, rule=rule)
        assert answer.steps.tolist() == [steps] * 2
        assert answer.stopped_by == (reason,) * 2
        assert not answer.settled.any()


class Doubting(Ticking):
    """Most confident at iterations 2 and 4, equally at both."""

    def answer(self, features: Tensor) -> Tensor:
        sure = torch.where((features == 2) | (features == 4), 3.0, 1.0)[:, 0]
        sign = torch.where(features[:, 0] == 2, -1.0, 1.0)
        return torch.stack([torch.zeros_like(sure), sure * sign], dim=1)


def test_the_most_confident_iteration_answers_the_later_on_a_tie() -> None:
    answer = solve(Doubting(), ticks(100, 3), max_steps=9, rule=MostConfident())
    assert answer.answered_at.tolist() == [4, 2]
    assert answer.prediction.flatten().tolist() == [1, 0]
    assert answer.steps.tolist() == [9, 9]


def test_confidence_counts_open_positions_only() -> None:
    batch, net = small_batch("mazes"), small_net("mazes", "dt-recall")
    with torch.no_grad():
        thought = next(think(net, batch.inputs, steps=1))
    probability = thought.logits.softmax(dim=1)
    for sample, inputs in enumerate(batch.inputs):
        total = 0.0
        for row, column in (inputs.sum(dim=0) > 0).nonzero().tolist():
            total += probability[sample, :, row, column].max().item()
        assert confidence(thought)[sample].item() == pytest.approx(total, rel=1e-12)


def test_confidence_in_half_precision() -> None:
    """As a sum in float16, that of 100,000 positions would be infinite at every iteration."""
    thought = next(think(Ticking(), torch.ones(1, 1, 100_000).half(), steps=1))
    assert confidence(thought).item() == pytest.approx(73_106, rel=1e-4)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: type(rule).__name__)
@pytest.mark.parametrize(("problem", "variant"), PAIRS)
def test_a_halted_sample_has_the_answer_of_that_step(
    problem: str, variant: str, rule: Rule
) -> None:
    net, batch = small_net(problem, variant), small_batch(problem)
    budget = depth_of(net) or 40
    answer = solve(net, batch.inputs, max_steps=budget, rule=rule)
    with torch.no_grad():
        thoughts: list[Thought] = list(think(net, batch.inputs, steps=budget))
    for sample in range(len(batch)):
        step = int(answer.answered_at[sample])
        assert 1 <= step <= answer.steps[sample] <= budget
        assert torch.equal(answer.prediction[sample], thoughts[step - 1].prediction[sample])


def test_halted_samples_leave_the_batch() -> None:
    sizes = []

    def tick(features: Tensor, memory: Tensor, _: int) -> Tensor:
        sizes.append(len(features))
        return torch.minimum(features + 1, memory)

    answer = solve(Stepping(tick), ticks(1, 2, 30), max_steps=50, rule=Resting(1e-6))
    assert sum(sizes) == int(answer.steps.sum()) == 17 + 18 + 46


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: StableAnswer(0), "patience must be 1 or more, got 0"),
        (lambda: Resting(0.0), "above 0, got 0.0"),
        (lambda: Resting(1000.0), "at most 0.1 .* got 1000"),  # anything would be at rest
        (lambda: Resting(float("nan")), "above 0, got nan"),
        (lambda: Fixed(0), "1 or more, got 0"),
        (lambda: solve(Ticking(), ticks(1), max_steps=0), "1 or more, got 0"),
    ],
)
def test_wrong_values(make: Callable[[], object], text: str) -> None:
    with pytest.raises(UsageError, match=text):
        make()
