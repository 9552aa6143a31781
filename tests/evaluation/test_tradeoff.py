"""Many rules in one run give what each gives alone; what compaction changes."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from exact import ByHand, exact_prefix_sums, poisoned, two_cycle
from thinkers import PAIRS, small_batch, small_net
from torch import Tensor

from iterant.errors import UsageError
from iterant.evaluation import RULES, compaction, evaluate_batch, operations, tradeoff
from iterant.halting import Fixed, MostConfident, Resting, Rule, StableAnswer
from iterant.nets import depth_of
from iterant.tasks.prefix_sums import PrefixSums

TASK = PrefixSums()
BITS, COUNT, STEPS = 10, 40, 70
BATCH = TASK.sample(COUNT, size=BITS, seed=1)


@pytest.mark.parametrize(("problem", "variant"), PAIRS)
def test_compaction_changes_nothing_in_float64(problem: str, variant: str) -> None:
    net, batch = small_net(problem, variant), small_batch(problem)
    budget = depth_of(net) or 30
    for rule in (Fixed(7), StableAnswer(2), Resting(0.02), MostConfident()):
        assert compaction(net, batch, rule, steps=budget) == (0, 0)


def test_differing_answers_are_counted() -> None:
    class Crowded(ByHand):
        """Says the opposite once it is alone: compaction changes its answers."""

        def answer(self, features: Tensor) -> Tensor:
            return super().answer(features).flip(1) if len(features) == 1 else features

    # With a patience of 2 the first stops after iteration 3. The second then thinks alone: it
    # shows 1100000 from iteration 4 on and stops at 6, in company it shows the truth until 9.
    batch = TASK.encode("0000000"), TASK.encode("0010000")
    both = type(BATCH)(
        torch.cat([one.inputs for one in batch]), torch.cat([one.targets for one in batch])
    )
    assert compaction(Crowded(), both, StableAnswer(1), steps=9)[0] == 0, "both stop together"
    assert compaction(Crowded(), both, StableAnswer(2), steps=9) == (1, 1)


@pytest.mark.parametrize("make", [exact_prefix_sums, two_cycle, lambda: poisoned(4)])
def test_every_rule_gives_what_it_gives_alone(make: Callable[[], ByHand]) -> None:
    net = make()
    tradeoffs = tradeoff(net, TASK, BATCH, steps=STEPS, portion=17)
    assert [rule for rule, _ in tradeoffs] == list(RULES)
    for rule, curve in tradeoffs:
        alone = evaluate_batch(net, TASK, BATCH, steps=STEPS, at=[STEPS], rule=rule, cost=True)
        figures, expected = curve.described(), alone.described()
        for name in ("seconds", "change at the end"):  # not measured for each rule
            del expected[name]
            figures.pop(name, None)
        assert figures == expected


def test_no_rules() -> None:
    with pytest.raises(UsageError):
        tradeoff(exact_prefix_sums(), TASK, BATCH, steps=12, rules=[])


@pytest.mark.parametrize(
    ("rule", "reads"),
    [(StableAnswer(2), True), (MostConfident(), True), (Resting(), False), (Fixed(), False)],
    ids=str,
)
def test_a_rule_that_decodes_every_answer_costs_every_answer(rule: Rule, reads: bool) -> None:
    net, x = small_net("prefix-sums", "dt-recall"), small_batch("prefix-sums").inputs[:1]
    parts, five = operations(net, x, rule), torch.tensor(5.0)
    answers = 5 if reads else 1
    assert float(parts.of(five)) == parts.begin + 5 * parts.step + answers * parts.answer
