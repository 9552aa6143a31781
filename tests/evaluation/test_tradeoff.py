"""Many rules in one run give what each gives alone."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from exact import exact_prefix_sums, poisoned, two_cycle
from thinkers import PAIRS, small_batch, small_net

import iterant
from iterant.evaluation import RULES, evaluate_batch, operations, tradeoff
from iterant.halting import Fixed, MostConfident, Resting, Rule, StableAnswer
from iterant.nets import Net, depth_of
from iterant.tasks.prefix_sums import PrefixSums
from iterant.tasks.protocol import Batch, Task

SUMS = PrefixSums()


def compare(net: Net, task: Task, batch: Batch, steps: int, portion: int) -> None:
    """Alone, a rule lets problems leave the batch; in float64 this changes nothing."""
    tradeoffs = tradeoff(net, task, batch, steps=steps, portion=portion)
    assert [rule for rule, _ in tradeoffs] == list(RULES)
    for rule, curve in tradeoffs:
        alone = evaluate_batch(net, task, batch, steps=steps, at=[steps], rule=rule, cost=True)
        figures, expected = curve.described(), alone.described()
        for name in ("seconds", "change at the end", "any right answer at the end"):
            expected.pop(name, None)  # not measured for each rule
            figures.pop(name, None)
        assert figures == expected


@pytest.mark.parametrize("make", [exact_prefix_sums, two_cycle, lambda: poisoned(4)])
def test_every_rule_gives_what_it_gives_alone(make: Callable[[], Net]) -> None:
    compare(make(), SUMS, SUMS.sample(40, size=10, seed=1), steps=70, portion=17)


@pytest.mark.parametrize(("problem", "variant"), PAIRS)
def test_every_network_under_every_rule(problem: str, variant: str) -> None:
    net, batch = small_net(problem, variant), small_batch(problem)
    last = iterant.last(iterant.think(net, batch.inputs, steps=depth_of(net) or 30))
    batch = Batch(batch.inputs, last.prediction, batch.extras)  # so that some are solved
    compare(net, iterant.task(problem), batch, steps=depth_of(net) or 30, portion=3)


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
