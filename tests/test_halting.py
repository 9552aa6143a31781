"""When thinking stops: known moments on a hand-built network, and the laws on real ones."""

from __future__ import annotations

import pytest
import torch
from thinkers import PAIRS, Ticking, small_batch, small_net
from torch import Tensor

from iterant.engine import Thought, think
from iterant.errors import NetError, UsageError
from iterant.halting import (
    Fixed,
    MostConfident,
    Resting,
    Rule,
    SettledFeatures,
    StableAnswer,
    confidence,
    until,
)
from iterant.nets import depth_of
from iterant.solving import solve

RULES: list[Rule] = [
    Fixed(7),
    StableAnswer(patience=2),
    SettledFeatures(0.02),
    MostConfident(),
    Resting(0.02, 5),
]


def ticks(*stops: int) -> Tensor:
    """One sample a number: it ticks so many times, then rests."""
    return torch.tensor(stops, dtype=torch.float32).view(-1, 1, 1)


def test_a_stable_answer_stops_each_sample_by_itself() -> None:
    answer = solve(Ticking(), ticks(2, 5, 100), max_steps=20, rule=StableAnswer(patience=3))
    # Unchanged for 3 further iterations: seen first at iteration 2 (5), done at 5 (8).
    assert answer.steps.tolist() == [5, 8, 20]
    assert answer.settled.tolist() == [True, True, False]
    assert answer.prediction.flatten().tolist() == [0, 1, 0]


def test_settled_features_stop_when_they_rest() -> None:
    answer = solve(Ticking(), ticks(2, 5, 100), max_steps=20, rule=SettledFeatures(1e-6))
    assert answer.steps.tolist() == [3, 6, 20]
    assert answer.settled.tolist() == [True, True, False]


def test_rest_is_where_the_part_that_moves_most_stands_still() -> None:
    answer = solve(Ticking(), ticks(2, 5, 100), max_steps=20, rule=Resting(1e-4))
    assert answer.steps.tolist() == [3, 6, 20]
    assert answer.settled.tolist() == [True, True, False]
    # One of a thousand places ticks on: hardly a hundredth of the norm, and yet no rest.
    many = torch.full((1, 1, 1000), 50.0)
    many[..., 0] = 60
    begin = {"max_steps": 90, "rule": Resting(1e-2)}
    assert solve(Ticking(), many, **begin).steps.tolist() == [61]  # type: ignore[arg-type]
    loose = solve(Ticking(), many, max_steps=90, rule=SettledFeatures(1e-2))
    assert loose.steps.tolist() == [51]


class Blinking(Ticking):
    """Answers the same for ever, and never rests."""

    def step(self, features: Tensor, memory: Tensor | None, index: int) -> Tensor:
        return 1 - features

    def answer(self, features: Tensor) -> Tensor:
        return torch.zeros_like(features).expand(-1, 2, -1)


def test_a_network_that_never_rests_is_stopped_by_its_patience() -> None:
    answer = solve(Blinking(), ticks(1, 1), max_steps=90, rule=Resting(1e-4, patience=12))
    # Looked at after 8, 16 and 24 iterations: the same for two looks.
    assert answer.steps.tolist() == [24, 24]
    assert answer.settled.tolist() == [True, True]
    # Longer patience looks less often: every 20 iterations, 32 of which are the same.
    long = solve(Blinking(), ticks(1), max_steps=900, rule=Resting(1e-4, patience=640))
    assert long.steps.tolist() == [33 * 20]


def test_a_fixed_budget_is_kept() -> None:
    answer = solve(Ticking(), ticks(2, 100), max_steps=20, rule=Fixed(6))
    assert answer.steps.tolist() == [6, 6]
    assert answer.settled.tolist() == [True, True]
    endless = solve(Ticking(), ticks(2, 100), max_steps=9, rule=Fixed())
    assert endless.steps.tolist() == [9, 9]
    assert endless.settled.tolist() == [False, False]


class Doubting(Ticking):
    """Surer at iterations 2 and 4 than at any other, equally sure at both."""

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
    for sample in range(len(batch)):
        total = 0.0
        for row in range(batch.inputs.shape[2]):
            for column in range(batch.inputs.shape[3]):
                if batch.inputs[sample, :, row, column].sum() > 0:
                    total += probability[sample, :, row, column].max().item()
        assert confidence(thought)[sample].item() == pytest.approx(total, rel=1e-12)


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


def test_until_ends_when_every_sample_has_been_done_once() -> None:
    steps = [t.step for t in until(StableAnswer(2), think(Ticking(), ticks(1, 6), steps=50))]
    assert steps == list(range(1, 9))


def test_halted_samples_leave_the_batch() -> None:
    sizes = []

    class Counting(Ticking):
        def step(self, features: Tensor, memory: Tensor | None, index: int) -> Tensor:
            sizes.append(len(features))
            return super().step(features, memory, index)

    answer = solve(Counting(), ticks(1, 2, 30), max_steps=50, rule=SettledFeatures(1e-6))
    assert sum(sizes) == int(answer.steps.sum()) == 2 + 3 + 31


def test_a_network_of_fixed_depth_is_not_asked_for_more() -> None:
    batch = small_batch("mazes")
    answer = solve(small_net("mazes", "ff"), batch.inputs, max_steps=1000, rule=Fixed())
    assert set(answer.steps.tolist()) == {12}


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: StableAnswer(0), "patience must be 1 or more, got 0"),
        (lambda: SettledFeatures(0.0), "above 0, got 0.0"),
        (lambda: Resting(0.0), "above 0, got 0.0"),
        (lambda: Resting(patience=0), "1 or more, got 0"),
        (lambda: SettledFeatures(float("nan")), "above 0, got nan"),
        (lambda: Fixed(0), "1 or more, got 0"),
    ],
)
def test_rules_that_make_no_sense_are_refused(make: object, text: str) -> None:
    assert callable(make)
    with pytest.raises(UsageError, match=text):
        make()


def test_no_iterations_are_refused() -> None:
    with pytest.raises(NetError, match="max_steps must be a whole number of 1 or more, got 0"):
        solve(Ticking(), ticks(1), max_steps=0)


@pytest.mark.parametrize("rule", [*RULES, Resting(0.02, 16)], ids=str)
def test_a_watch_that_goes_on_with_some_forgets_the_others(rule: Rule) -> None:
    """After `keep` it says what it would have said, had the others never been there."""
    net, x = Ticking(), ticks(3, 40, 11, 40)
    rows = torch.tensor([False, True, True, False])
    watch, alone = rule.watch(), rule.watch()
    for thought in think(net, x, steps=9):
        watch.see(thought)
    for other in think(net, x[rows], steps=9):
        alone.see(other)
    watch.keep(rows)
    state = thought.state.rows(rows)
    for thought in think(net, x[rows], steps=15, state=state):
        assert torch.equal(watch.see(thought), alone.see(thought)), thought.step
        for ours, theirs in zip(watch.answer(thought), alone.answer(thought), strict=True):
            assert torch.equal(ours, theirs), thought.step
