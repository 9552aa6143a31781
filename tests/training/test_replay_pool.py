"""The replay pool: which slots it draws, corrupts, trains on and writes back."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest
import restated
import torch
from scipy import stats
from test_objectives import tiny
from torch import Tensor

import iterant
from iterant import registry
from iterant.engine import State
from iterant.errors import RecipeError
from iterant.nets.fast.deep_thinking import Fused, can_fuse
from iterant.nets.readout import TwoBest
from iterant.training.distributed import ProcessGroup
from iterant.training.objectives import Segment, StepResult, Update
from iterant.training.recipe import Recipe
from iterant.training.replay_pool import (
    JITTER,
    Corruption,
    ReplayPool,
    Slots,
    another,
    disc,
    jitter,
    noise,
    zeros,
)
from iterant.training.rng import StepRng
from iterant.training.unroll import EagerUnroll


@dataclass
class Call:
    """The arguments of a call of `forward_backward`, and its result."""

    inputs: Tensor
    targets: Tensor
    steps: int
    state: State
    restart: Tensor
    noise: Tensor | None = None
    result: StepResult | None = None


class RecordingUnroll(EagerUnroll):
    """Records its calls; an idle one returns random states instead of iterating."""

    idle = False
    turn = 0
    call: Call | None = None

    def forward_no_grad(self, inputs: Tensor, state: State | None, steps: int) -> State:
        raise AssertionError("the pool needs no prefix")

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
        assert state is not None
        assert restart is not None
        assert segment.weight == 1
        assert segment.each == ()
        self.call = Call(
            inputs.clone(), targets, segment.steps, State(state.features.clone()), restart.clone(),
            noise,
        )  # fmt: skip
        if self.idle:
            self.turn += 1  # so that no two states are ever equal
            generator = torch.Generator().manual_seed(self.turn)
            features = torch.rand(state.features.shape, generator=generator).double()
            result = StepResult(torch.zeros(()), State(features))
        else:
            result = super().forward_backward(
                inputs, targets, segment, state=state, restart=restart, noise=noise
            )
        self.call.result = result
        return result


BATCH, SLOTS = 8, 24


def recorder(*, idle: bool = False) -> RecordingUnroll:
    net = tiny()
    unroll = RecordingUnroll(Fused(net) if can_fuse(net) else net)
    unroll.idle = idle
    return unroll


def copied(slots: Slots | None) -> Slots | None:
    return slots and Slots(**{name: value.clone() for name, value in there(slots).items()})


def there(slots: Slots) -> dict[str, Tensor]:
    return {name: value for name, value in vars(slots).items() if value is not None}


def updates(
    pool: ReplayPool, unroll: RecordingUnroll, count: int, seed: int = 2
) -> Iterator[tuple[Update, Tensor, Slots | None, Call, Slots]]:
    """Run steps; yields each step's new problems, slots, pool before, call and pool after."""
    task = iterant.task("prefix-sums")
    takes = pool.takes(pool.batch)
    for number in range(count):
        fresh = task.sample(takes, size=5, seed=9, first=number * takes)
        rng = StepRng(seed, number)
        update = Update(fresh.inputs.double(), fresh.targets, rng, ProcessGroup())
        before = copied(pool.content)
        pool.run(unroll, update)
        rows = torch.from_numpy(rng.choose(pool.batch, pool.slots, "slots"))
        after = copied(pool.content)
        assert unroll.call is not None
        assert after is not None
        yield update, rows, before, unroll.call, after


def small(**changes: float) -> ReplayPool:
    known = {"fresh": 0.25, "damage": 0.5, "shortest": 2, "longest": 4, **changes}
    return ReplayPool(BATCH, SLOTS, **known)  # type: ignore[arg-type]


class TestSlots:
    def test_slots_are_drawn_uniformly_without_replacement(self) -> None:
        seen: Counter[int] = Counter()
        for number in range(600):
            rows = StepRng(4, number).choose(BATCH, SLOTS, "slots").tolist()
            assert len(set(rows)) == BATCH
            seen.update(rows)
        assert stats.chisquare([seen[slot] for slot in range(SLOTS)]).pvalue > 1e-3

    def test_new_problems_replace_the_fresh_share(self) -> None:
        pool = small()
        assert pool.takes(BATCH) == 2
        for update, rows, before, call, after in updates(pool, recorder(idle=True), 8):
            assert torch.equal(call.inputs[:2], update.inputs)
            assert torch.equal(call.targets[:2], update.targets)
            assert bool(call.restart[:2].all())
            if before is not None:
                assert torch.equal(call.inputs[2:], before.inputs[rows[2:]])
                assert torch.equal(call.restart[2:], ~before.filled[rows[2:]])
            assert torch.equal(after.inputs[rows], call.inputs)

    def test_new_problems_used_once_do_not_enter_the_pool(self) -> None:
        pool = small(fresh=0.5, stay=0.25)
        assert pool.takes(BATCH) == 4
        for update, rows, before, call, after in updates(pool, recorder(), 8):
            assert torch.equal(call.inputs[:4], update.inputs)
            assert bool(call.restart[:4].all())
            if before is None:
                continue
            for name, value in there(before).items():  # one of the four stays
                assert torch.equal(vars(after)[name][rows[1:4]], value[rows[1:4]]), name
            assert torch.equal(after.inputs[rows[0]], update.inputs[0])
            assert call.result is not None
            ends = call.result.end.features
            assert torch.equal(after.features[rows[:1]], ends[:1])
            assert torch.equal(after.features[rows[4:]], ends[4:])

    def test_swapped_problems_start_from_the_state_of_another(self) -> None:
        pool = small(fresh=0.5, stay=0.25, swap=0.5, damage=0.0)
        swapped = 0
        for update, rows, before, call, _ in updates(pool, recorder(), 12):
            assert torch.equal(call.inputs[:4], update.inputs)
            assert bool(call.restart[:2].all())
            if before is None:
                continue
            assert torch.equal(call.restart[2:], ~before.filled[rows[2:]])
            assert call.state is not None
            assert torch.equal(call.state.features[2:4], before.features[rows[2:4]])
            swapped += int(before.filled[rows[2:4]].sum())
        assert swapped

    def test_at_least_one_problem_is_fresh(self) -> None:
        assert ReplayPool(10, 10, fresh=0.01).takes(10) == 1

    def test_other_slots_do_not_change(self) -> None:
        for _, rows, before, _, after in updates(small(), recorder(), 6):
            if before is None:
                continue
            outside = torch.ones(SLOTS, dtype=torch.bool)
            outside[rows] = False
            for name, value in there(before).items():
                assert torch.equal(value[outside], vars(after)[name][outside]), name

    def test_slots_of_the_batch_hold_the_final_states(self) -> None:
        choose: set[int] = set()
        for _, rows, _, call, after in updates(small(), recorder(), 10):
            choose |= set(rows.tolist())
            assert set(after.filled.nonzero().flatten().tolist()) == choose
            assert call.result is not None
            assert torch.equal(after.features[rows], call.result.end.features)

    def test_initial_slots_hold_valid_problems(self) -> None:
        (update, _, _, _, after), *_ = list(updates(small(), recorder(), 1))
        given = {tuple(row.flatten().tolist()) for row in update.inputs}
        assert {tuple(row.flatten().tolist()) for row in after.inputs} == given
        answers = (after.inputs[:, 0] > 0).long().cumsum(dim=1) % 2
        assert torch.equal(after.targets, answers)


class TestHard:
    def test_hard_keeps_a_problem_until_it_is_solved(self) -> None:
        pool, kept = small(hard=True), 0
        for update, rows, before, call, after in updates(pool, recorder(), 40):
            net = tiny()
            assert after.solved is not None
            right = net.answer(after.features[rows]).argmax(dim=1) == after.targets[rows]
            assert torch.equal(after.solved[rows], right.all(dim=1))
            assert bool(call.restart[:2].all())
            if before is None:
                continue
            assert before.solved is not None
            for place in range(2):
                slot = int(rows[place])
                new = bool(before.solved[slot])
                kept += not new
                for given, old, now in (
                    (update.inputs, before.inputs, call.inputs),
                    (update.targets, before.targets, call.targets),
                ):
                    assert torch.equal(now[place], given[place] if new else old[slot])
        assert kept > 10

    def test_hard_uses_the_networks_readout(self) -> None:
        """The two best cells are right although class 0 is likelier everywhere."""
        targets = torch.tensor([[1, 0, 1, 0], [0, 0, 1, 1]])
        scores = torch.tensor([[-1.0, -9.0, -2.0, -9.0], [5.0, 5.0, -1.0, -1.0]])

        class FixedAnswer:
            net: Any = SimpleNamespace(
                readout=TwoBest(), answer=lambda features: features,
                start=lambda inputs: inputs.new_zeros(len(inputs), 2, 4),
            )  # fmt: skip

            def forward_backward(self, *given: Any, **how: Any) -> StepResult:
                return StepResult(torch.zeros(()), State(torch.stack([scores * 0, scores], dim=1)))

        unroll: Any = FixedAnswer()
        pool = ReplayPool(2, 2, fresh=1.0, damage=0.0, shortest=1, longest=1, hard=True)
        pool.run(unroll, Update(torch.zeros(2, 1, 4), targets, StepRng(0, 0), ProcessGroup()))
        assert pool.content is not None
        assert pool.content.solved is not None
        first = (pool.content.targets == targets[0]).all(dim=1)
        assert torch.equal(pool.content.solved, first)

    def test_hard_treats_unused_slots_as_solved(self) -> None:
        (_, rows, _, _, after), *_ = list(updates(small(hard=True), recorder(), 1))
        assert after.solved is not None
        outside = torch.ones(SLOTS, dtype=torch.bool)
        outside[rows] = False
        assert bool(after.solved[outside].all())


class TestDamage:
    def kinds(self, pool: ReplayPool, count: int) -> tuple[Counter[str], list[Tensor]]:
        """How the states of many steps were corrupted, judged by the states alone."""
        found: Counter[str] = Counter()
        noises: list[Tensor] = []
        for _, rows, before, call, _ in updates(pool, recorder(idle=True), count):
            if before is None or not bool(before.filled.all()):
                continue
            for place in range(pool.takes(BATCH), BATCH):
                state = call.state.features[place]
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

    def test_share_and_kinds_of_corruption(self) -> None:
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

    def test_no_corruption(self) -> None:
        found, _ = self.kinds(small(damage=0.0), 30)
        assert set(found) == {"as it was"}


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
def test_bad_settings_are_refused(changes: dict[str, float], message: str) -> None:
    with pytest.raises(RecipeError, match=message):
        small(**changes)


def test_a_batch_larger_than_the_pool_is_refused() -> None:
    with pytest.raises(RecipeError, match="does not fit a pool of 4 slots"):
        ReplayPool(batch=5, slots=4)


class TestLearning:
    def test_k_is_uniform(self) -> None:
        drawn = Counter(call.steps for *_, call, _ in updates(small(), recorder(idle=True), 600))
        assert set(drawn) == {2, 3, 4}
        assert stats.chisquare(list(drawn.values())).pvalue > 1e-3

    def test_losses_and_gradients_equal_the_definition(self) -> None:
        pool, unroll = small(), recorder()
        net = tiny()
        mine = restated.parameters(getattr(unroll.net, "net", unroll.net))
        for number, (*_, call, _) in enumerate(updates(pool, unroll, 6)):
            rows = [
                net.start(call.inputs[i : i + 1])
                if call.restart[i]
                else call.state.features[i : i + 1]
                for i in range(BATCH)
            ]
            end = restated.unrolled(net, call.inputs, torch.cat(rows), call.steps)
            wanted = restated.loss_of(net, end, call.inputs, call.targets)
            theirs = restated.gradients_of(wanted, restated.parameters(net))
            assert call.result is not None
            torch.testing.assert_close(call.result.loss, wanted.detach(), rtol=1e-12, atol=1e-12)
            ours = [weight.grad for weight in mine if weight.grad is not None]
            restated.assert_same(ours, theirs, 1e-12)
            restated.assert_same([call.result.end.features], [end.detach()], 1e-12)
            for weight in mine:
                weight.grad = None
            assert bool(call.restart.any()), number
            # The fresh rows alone teach the projection.
            assert bool(theirs[0].any())

    def test_penalty_on_change(self) -> None:
        calm, pool = small(), small(settle=0.7)
        for (*_, call, _), (*_, other, _) in zip(
            updates(pool, recorder(), 3), updates(calm, recorder(), 3), strict=True
        ):
            net, features = tiny(), other.state.features
            rows = other.restart.view(-1, 1, 1)
            path = [torch.where(rows, net.start(other.inputs), features)]
            for _ in range(other.steps):
                path.append(restated.unrolled(net, other.inputs, path[-1], 1))
            changes = sum(float((b - a).detach().abs().sum()) for a, b in pairwise(path))
            mean = changes / (other.steps * path[0].numel())
            assert call.result is not None
            assert other.result is not None
            assert mean > 0.01
            difference = float(call.result.loss - other.result.loss)
            assert difference == pytest.approx(0.7 * mean, rel=1e-10)

    def test_noise_is_added_before_every_iteration(self) -> None:
        seen = []
        for *_, call, _ in updates(small(shake=0.3), recorder(), 5):
            assert call.noise is not None
            net, noise = tiny(), call.noise
            rows = call.restart.view(-1, 1, 1)
            features = torch.where(rows, net.start(call.inputs), call.state.features)
            for _ in range(call.steps):
                features = restated.unrolled(net, call.inputs, features + noise, 1)
            assert call.result is not None
            restated.assert_same([call.result.end.features], [features.detach()], 1e-12)
            seen.append(noise)
        assert 0.25 < torch.stack(seen).std() < 0.35
        assert not torch.equal(seen[0], seen[1])
        assert all(call.noise is None for *_, call, _ in updates(small(), recorder(), 2))

    def test_varied_noise_has_one_strength_per_problem(self) -> None:
        alike, varied = small(shake=0.5), small(shake=0.5, varied=True)
        shares = []
        for (*_, one, _), (*_, other, _) in zip(
            updates(alike, recorder(), 40),
            updates(varied, recorder(), 40),
            strict=True,
        ):
            assert one.noise is not None
            assert other.noise is not None
            share = (other.noise / one.noise).flatten(1)
            torch.testing.assert_close(share, share[:, :1].expand_as(share))
            shares.append(share[:, 0])
        drawn = torch.cat(shares)
        assert 0 <= drawn.min() < 0.1
        assert 0.9 < drawn.max() <= 1
        assert 0.4 < drawn.mean() < 0.6
        assert len(set(drawn.tolist())) == len(drawn)

    def test_loss_after_every_iteration_is_their_mean(self) -> None:
        net, task = tiny(), iterant.task("prefix-sums")
        batch = task.sample(3, size=5, seed=9)
        inputs = batch.inputs.double()
        segment = Segment(4, each=(0.25,) * 4)
        learned = EagerUnroll(net, smoothing=0.1).forward_backward(inputs, batch.targets, segment)
        features = [restated.unrolled(net, inputs, net.start(inputs), k) for k in (1, 2, 3, 4)]
        losses = [restated.loss_of(net, f, inputs, batch.targets, 0.1) for f in features]
        wanted = torch.stack(losses).mean()
        torch.testing.assert_close(learned.loss, wanted.detach(), rtol=1e-12, atol=1e-12)
        weights = restated.parameters(net)
        ours = [weight.grad for weight in weights if weight.grad is not None]
        restated.assert_same(ours, restated.gradients_of(wanted, weights), 1e-12)

    def test_draws_depend_on_the_seed_only(self) -> None:
        first = [call.state.features for *_, call, _ in updates(small(), recorder(), 5)]
        again = [call.state.features for *_, call, _ in updates(small(), recorder(), 5)]
        other = [call.state.features for *_, call, _ in updates(small(), recorder(), 5, seed=3)]
        assert all(map(torch.equal, first, again))
        assert not all(map(torch.equal, first, other))


def corruption(*sides: int, count: int = 400) -> Corruption:
    generator = torch.Generator().manual_seed(5)
    features, noise_, pool = (
        torch.rand(count, 3, *sides, generator=generator) + shift for shift in (1, 2, 3)
    )
    other = torch.randint(count, (count,), generator=generator)
    return Corruption(features, pool, noise_, other, generator)


def test_kinds_of_corruption() -> None:
    hit = corruption(7)
    assert not zeros(hit).any()
    assert torch.equal(noise(hit), hit.noise)
    assert torch.equal(another(hit), torch.stack([hit.pool[i] for i in hit.other.tolist()]))
    torch.testing.assert_close(jitter(hit) - hit.features, JITTER * hit.noise)


def test_disc_zeroes_a_disc() -> None:
    hit = corruption(13, 13)
    left = disc(hit)
    gone = left == 0
    assert torch.equal(left[~gone], hit.features[~gone])
    assert torch.equal(gone.all(dim=1), gone.any(dim=1))  # all features of a place or none
    radii = []
    for hole in gone[:, 0]:
        rows, columns = hole.nonzero(as_tuple=True)
        if len(rows) == 0:
            continue
        inside = [rows.min() > 0, rows.max() < 12, columns.min() > 0, columns.max() < 12]
        if all(map(bool, inside)):
            # A round hole about its middle: no place of it is farther off than one that stayed
            # is near, but for the places that a circle of that centre cuts.
            middle = torch.stack([rows.float().mean(), columns.float().mean()])
            radii.append(math.sqrt(len(rows) / math.pi))
            far = (torch.stack([rows, columns]) - middle[:, None]).norm(dim=0).max()
            assert far < radii[-1] + 1
    assert 0.5 < min(radii) < 1.5
    assert 3.5 < max(radii) < 5.7


def test_disc_in_one_dimension_is_an_interval() -> None:
    for hole in (disc(corruption(32)) == 0)[:, 0]:
        places = hole.nonzero().flatten()
        assert len(places) <= 2 * 0.4 * 32 + 1
        if len(places):
            assert places.max() - places.min() == len(places) - 1


def test_disc_on_short_sides_has_radius_one() -> None:
    assert int((disc(corruption(2)) == 0)[:, 0].sum(dim=1).max()) <= 2


@pytest.mark.parametrize("kinds", [(), ("zero",), "zeros"])
def test_unknown_kinds_are_refused(kinds: object) -> None:
    with pytest.raises(RecipeError, match="zeros"):
        Recipe(pool_damage_kinds=kinds)  # type: ignore[arg-type]


def test_every_kind_is_registered() -> None:
    found = {registry.find("damage", word) for word in registry.known("damage")}
    assert found == {zeros, noise, another, jitter, disc}
