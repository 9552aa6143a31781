"""The replay pool: what it draws, what it damages, what it learns from and what it puts back."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from scipy import stats
from test_objectives import tiny
from torch import Tensor
from watched_pool import BATCH, SLOTS, copied, hands_of, small, there, updates

from iterant.engine import State
from iterant.errors import RecipeError
from iterant.nets.readout import TwoBest
from iterant.training.distributed import ProcessGroup
from iterant.training.objectives import StepResult, Update
from iterant.training.replay_pool import ReplayPool
from iterant.training.rng import StepRng


class TestSlots:
    def test_a_batch_takes_different_slots_and_all_alike(self) -> None:
        seen: Counter[int] = Counter()
        for number in range(600):
            rows = StepRng(4, number).choose(BATCH, SLOTS, "slots").tolist()
            assert len(set(rows)) == BATCH
            seen.update(rows)
        assert stats.chisquare([seen[slot] for slot in range(SLOTS)]).pvalue > 1e-3

    def test_the_fresh_share_is_replaced_by_the_new_problems(self) -> None:
        pool = small()
        assert pool.takes(BATCH) == 2
        for update, rows, before, asked, after in updates(pool, hands_of(idle=True), 8):
            assert torch.equal(asked.inputs[:2], update.inputs)
            assert torch.equal(asked.targets[:2], update.targets)
            assert bool(asked.restart[:2].all())
            if before is not None:
                assert torch.equal(asked.inputs[2:], before.inputs[rows[2:]])
                assert torch.equal(asked.restart[2:], ~before.filled[rows[2:]])
            assert torch.equal(after.inputs[rows], asked.inputs)

    def test_those_that_do_not_stay_leave_their_slots_as_they_were(self) -> None:
        pool = small(fresh=0.5, stay=0.25)
        assert pool.takes(BATCH) == 4
        for update, rows, before, asked, after in updates(pool, hands_of(), 8):
            assert torch.equal(asked.inputs[:4], update.inputs)
            assert bool(asked.restart[:4].all())
            if before is None:
                continue
            for name, value in there(before).items():  # one of the four stays
                assert torch.equal(vars(after)[name][rows[1:4]], value[rows[1:4]]), name
            assert torch.equal(after.inputs[rows[0]], update.inputs[0])
            assert asked.learned is not None
            ends = asked.learned.end.features
            assert torch.equal(after.features[rows[:1]], ends[:1])
            assert torch.equal(after.features[rows[4:]], ends[4:])

    def test_swapped_problems_begin_with_the_state_of_another(self) -> None:
        pool = small(fresh=0.5, stay=0.25, swap=0.5, damage=0.0)
        swapped = 0
        for update, rows, before, asked, _ in updates(pool, hands_of(), 12):
            assert torch.equal(asked.inputs[:4], update.inputs)
            assert bool(asked.restart[:2].all())
            if before is None:
                continue
            assert torch.equal(asked.restart[2:], ~before.filled[rows[2:]])
            assert asked.state is not None
            assert torch.equal(asked.state.features[2:4], before.features[rows[2:4]])
            swapped += int(before.filled[rows[2:4]].sum())
        assert swapped

    def test_at_least_one_problem_is_fresh(self) -> None:
        assert ReplayPool(10, 10, fresh=0.01).takes(10) == 1

    def test_slots_outside_the_batch_stay_as_they_are(self) -> None:
        for _, rows, before, _, after in updates(small(), hands_of(), 6):
            if before is None:
                continue
            outside = torch.ones(SLOTS, dtype=torch.bool)
            outside[rows] = False
            for name, value in there(before).items():
                assert torch.equal(value[outside], vars(after)[name][outside]), name

    def test_a_slot_is_filled_exactly_when_its_own_problem_was_thought_about(self) -> None:
        choose: set[int] = set()
        for _, rows, _, asked, after in updates(small(), hands_of(), 10):
            choose |= set(rows.tolist())
            assert set(after.filled.nonzero().flatten().tolist()) == choose
            assert asked.learned is not None
            assert torch.equal(after.features[rows], asked.learned.end.features)

    def test_before_their_first_turn_slots_hold_true_problems(self) -> None:
        (update, _, _, _, after), *_ = list(updates(small(), hands_of(), 1))
        given = {tuple(row.flatten().tolist()) for row in update.inputs}
        assert {tuple(row.flatten().tolist()) for row in after.inputs} == given
        answers = (after.inputs[:, 0] > 0).long().cumsum(dim=1) % 2
        assert torch.equal(after.targets, answers)


class TestHard:
    def test_a_slot_lets_go_of_its_problem_only_when_solved(self) -> None:
        pool, kept = small(hard=True), 0
        for update, rows, before, asked, after in updates(pool, hands_of(), 40):
            net = tiny()
            assert after.solved is not None
            right = net.answer(after.features[rows]).argmax(dim=1) == after.targets[rows]
            assert torch.equal(after.solved[rows], right.all(dim=1))
            assert bool(asked.restart[:2].all())
            if before is None:
                continue
            assert before.solved is not None
            for place in range(2):
                slot = int(rows[place])
                new = bool(before.solved[slot])
                kept += not new
                for given, old, now in (
                    (update.inputs, before.inputs, asked.inputs),
                    (update.targets, before.targets, asked.targets),
                ):
                    assert torch.equal(now[place], given[place] if new else old[slot])
        assert kept > 10

    def test_solved_is_what_the_networks_own_readout_says(self) -> None:
        """Two best squares, though class 0 is likelier everywhere: a move that is found."""
        targets = torch.tensor([[1, 0, 1, 0], [0, 0, 1, 1]])
        scores = torch.tensor([[-1.0, -9.0, -2.0, -9.0], [5.0, 5.0, -1.0, -1.0]])

        class Telling:
            net: Any = SimpleNamespace(
                readout=TwoBest(), answer=lambda features: features,
                start=lambda inputs: inputs.new_zeros(len(inputs), 2, 4),
            )  # fmt: skip

            def forward_backward(self, *given: Any, **how: Any) -> StepResult:
                return StepResult(torch.zeros(()), State(torch.stack([scores * 0, scores], dim=1)))

        unroll: Any = Telling()
        pool = ReplayPool(2, 2, fresh=1.0, damage=0.0, shortest=1, longest=1, hard=True)
        pool.run(unroll, Update(torch.zeros(2, 1, 4), targets, StepRng(0, 0), ProcessGroup()))
        assert pool.held is not None
        assert pool.held.solved is not None
        first = (pool.held.targets == targets[0]).all(dim=1)
        assert torch.equal(pool.held.solved, first)

    def test_slots_never_thought_about_keep_nothing(self) -> None:
        (_, rows, _, _, after), *_ = list(updates(small(hard=True), hands_of(), 1))
        assert after.solved is not None
        outside = torch.ones(SLOTS, dtype=torch.bool)
        outside[rows] = False
        assert bool(after.solved[outside].all())

    def test_a_pool_that_is_not_asked_keeps_no_score(self) -> None:
        pool = small()
        for _ in updates(pool, hands_of(), 2):
            pass
        assert set(pool.tensors()) == {"inputs", "targets", "features", "filled"}


class TestDamage:
    def kinds(self, pool: ReplayPool, count: int) -> tuple[Counter[str], list[Tensor]]:
        """How each old state of many updates was damaged, told by looking at it alone."""
        found: Counter[str] = Counter()
        noises: list[Tensor] = []
        for _, rows, before, asked, _ in updates(pool, hands_of(idle=True), count):
            if before is None or not bool(before.filled.all()):
                continue
            for place in range(pool.takes(BATCH), BATCH):
                state = asked.state.features[place]
                others = [
                    slot for slot in range(SLOTS) if torch.equal(before.features[slot], state)
                ]
                if int(rows[place]) in others:
                    found["as it was"] += 1
                elif others:
                    found["another's"] += 1
                elif not state.any():
                    found["zeros"] += 1
                else:
                    found["noise"] += 1
                    noises.append(state)
        return found, noises

    def test_share_and_kinds(self) -> None:
        pool = small(damage=0.6)
        found, noises = self.kinds(pool, 260)
        total = found.total()
        assert total > 1200
        # Another slot is the slot itself once in SLOTS times.
        share = 0.6 * (1 - 1 / (3 * SLOTS))
        assert stats.binomtest(total - found["as it was"], total, share).pvalue > 1e-3
        observed = [found["zeros"], found["noise"], found["another's"] * SLOTS / (SLOTS - 1)]
        assert stats.chisquare(observed, [sum(observed) / 3] * 3).pvalue > 1e-3
        different = torch.tensor(sorted({tuple(noise.flatten().tolist()) for noise in noises}))
        assert len(different) > 20
        assert stats.kstest(different.flatten().numpy(), "norm").pvalue > 1e-3

    def test_none_where_none_is_asked_for(self) -> None:
        found, _ = self.kinds(small(damage=0.0), 30)
        assert set(found) == {"as it was"}

    def test_all_where_all_is_asked_for(self) -> None:
        found, _ = self.kinds(small(damage=1.0), 60)
        assert found["as it was"] < 0.05 * found.total()

    def test_the_pool_itself_is_not_damaged(self) -> None:
        pool = small(damage=1.0)
        for _ in updates(pool, hands_of(idle=True), 3):
            pass
        before = copied(pool.held)
        pool._corrupted(pool.held, torch.arange(SLOTS), StepRng(2, 50))  # type: ignore[arg-type]
        assert before is not None
        assert pool.held is not None
        assert torch.equal(before.features, pool.held.features)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"fresh": 1.5}, "share from 0 to 1"),
        ({"damage": -0.1}, "share from 0 to 1"),
        ({"fresh": 0.0}, "never sees a new problem"),
        ({"shortest": 5, "longest": 4}, "shortest <= longest"),
        ({"shortest": 0}, "shortest <= longest"),
    ],
)
def test_a_pool_that_cannot_work_is_refused(changes: dict[str, float], message: str) -> None:
    with pytest.raises(RecipeError, match=message):
        small(**changes)


def test_a_batch_larger_than_the_pool_is_refused() -> None:
    with pytest.raises(RecipeError, match="does not fit a pool of 4 slots"):
        ReplayPool(batch=5, slots=4)
