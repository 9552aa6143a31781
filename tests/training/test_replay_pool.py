"""The replay pool: which slots it draws, corrupts, trains on and writes back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest
import restated
import torch
from scipy import stats
from small_networks import small_net
from torch import Tensor

import iterant
from iterant.engine import State
from iterant.errors import RecipeError
from iterant.nets.fast import fused
from iterant.rng import StepRng
from iterant.tasks.protocol import Batch
from iterant.training.objectives import ReplayPool, Segment, StepResult, Unroll
from iterant.training.recipe import Recipe

BATCH, SLOTS = 8, 24
NET = small_net("prefix-sums", "dt-recall")
Slots = dict[str, Tensor]


class RecordingUnroll(Unroll):
    """Records its last call; an idle one returns random states instead of iterating."""

    def __init__(self, *, idle: bool = False) -> None:
        net = small_net("prefix-sums", "dt-recall")
        super().__init__(fused(net))
        self.idle, self.calls = idle, 0
        self.call: Any = None

    def forward_backward(
        self, inputs: Tensor, targets: Tensor, segment: Segment, **options: Any
    ) -> StepResult:
        features, restart = options["state"].features.clone(), options["restart"].clone()
        if self.idle:
            self.calls += 1  # so that no two states are ever equal
            generator = torch.Generator().manual_seed(self.calls)
            end = torch.rand(features.shape, generator=generator).double()
            result = StepResult(torch.zeros(()), [State(end)])
        else:
            result = super().forward_backward(inputs, targets, segment, **options)
        start = torch.where(restart.view(-1, 1, 1), NET.start(inputs), features)
        self.call = SimpleNamespace(
            inputs=inputs.clone(), targets=targets, steps=segment.steps, features=features,
            restart=restart, start=start, noise=options["noise"], loss=result.loss,
            end=result.states[-1].features,
        )  # fmt: skip
        return result


def small(**changes: Any) -> ReplayPool:
    fields = {"slots": SLOTS, "new_fraction": 0.25, "corrupt_fraction": 0.5, "shortest": 2,
              "longest": 4, **changes}  # fmt: skip
    pool: dict[str, Any] = {f"pool_{name}": value for name, value in fields.items()}
    return ReplayPool(Recipe(batch_size=BATCH, **pool))


def pool_steps(
    pool: ReplayPool, count: int, seed: int = 2, *, idle: bool = False
) -> Iterator[tuple[Batch, Tensor, Slots, Any, Slots]]:
    """Run steps; yields each step's new problems, slots, pool before, call and pool after."""
    task, unroll, takes = iterant.task("prefix-sums"), RecordingUnroll(idle=idle), pool.new_problems
    for number in range(count):
        fresh = task.sample(takes, size=5, seed=9, first=number * takes)
        rng = StepRng(seed, number)
        fresh = Batch(fresh.inputs.double(), fresh.targets)
        before = {name: value.clone() for name, value in pool.slots.items()}
        pool.run(unroll, fresh.inputs, fresh.targets, rng)
        rows = torch.from_numpy(rng.choose(BATCH, SLOTS, "slots"))
        yield fresh, rows, before, unroll.call, pool.slots


def test_slots_hold_new_problems_and_final_states() -> None:
    drawn: set[int] = set()
    for fresh, rows, before, call, after in pool_steps(small(), 10):
        drawn |= set(rows.tolist())
        assert torch.equal(call.inputs[:2], fresh.inputs)
        assert torch.equal(call.targets[:2], fresh.targets)
        assert bool(call.restart[:2].all())
        assert torch.equal(after["inputs"][rows], call.inputs)
        assert torch.equal(after["features"][rows], call.end)
        assert set(after["filled"].nonzero().flatten().tolist()) == drawn
        if before:
            assert torch.equal(call.inputs[2:], before["inputs"][rows[2:]])
            assert torch.equal(call.restart[2:], ~before["filled"][rows[2:]])
            outside = torch.ones(SLOTS, dtype=torch.bool)
            outside[rows] = False
            for name, value in before.items():
                assert torch.equal(value[outside], after[name][outside]), name


def test_new_problems_used_once_do_not_enter_the_pool() -> None:
    pool = small(new_fraction=0.5, insert_fraction=0.25)
    for fresh, rows, before, call, after in pool_steps(pool, 8):
        assert torch.equal(call.inputs[:4], fresh.inputs)
        assert bool(call.restart[:4].all())
        for name, value in before.items():  # one of the four stays
            assert torch.equal(after[name][rows[1:4]], value[rows[1:4]]), name
        if before:
            assert torch.equal(after["inputs"][rows[0]], fresh.inputs[0])
            assert torch.equal(after["features"][rows[:1]], call.end[:1])
            assert torch.equal(after["features"][rows[4:]], call.end[4:])


def test_stale_problems_start_from_the_state_of_another() -> None:
    fractions = {"new": 0.5, "insert": 0.25, "stale": 0.5, "corrupt": 0.0}
    pool, swapped = small(**{f"{name}_fraction": x for name, x in fractions.items()}), 0
    for fresh, rows, before, call, _ in pool_steps(pool, 12):
        assert torch.equal(call.inputs[:4], fresh.inputs)
        assert bool(call.restart[:2].all())
        if before:
            assert torch.equal(call.restart[2:], ~before["filled"][rows[2:]])
            assert torch.equal(call.features[2:4], before["features"][rows[2:4]])
            swapped += int(before["filled"][rows[2:4]].sum())
    assert swapped


def test_until_solved_keeps_a_problem_until_it_is_solved() -> None:
    kept = 0
    for fresh, rows, before, call, after in pool_steps(small(until_solved=True), 40):
        right = NET.answer(after["features"][rows]).argmax(dim=1) == after["targets"][rows]
        assert torch.equal(after["solved"][rows], right.all(dim=1))
        if not before:
            continue
        for place, slot in enumerate(rows[:2].tolist()):
            new = bool(before["solved"][slot])
            kept += not new
            for name, now in (("inputs", call.inputs), ("targets", call.targets)):
                wanted = getattr(fresh, name)[place] if new else before[name][slot]
                assert torch.equal(now[place], wanted)
    assert kept > 10


def corruptions(pool: ReplayPool, count: int) -> tuple[Counter[str], list[Tensor]]:
    """How the states of many steps were corrupted, judged by the states alone."""
    kinds: Counter[str] = Counter()
    noises: list[Tensor] = []
    for _, rows, before, call, _ in pool_steps(pool, count, idle=True):
        if not before or not bool(before["filled"].all()):
            continue
        for place in range(pool.new_problems, BATCH):
            state = call.features[place]
            same = [s for s in range(SLOTS) if torch.equal(before["features"][s], state)]
            if same:
                kinds["none" if int(rows[place]) in same else "another"] += 1
            else:
                kinds["noise" if state.any() else "zeros"] += 1
                noises.append(state)
    return kinds, [noise for noise in noises if noise.any()]


def test_share_and_kinds_of_corruption() -> None:
    kinds, noises = corruptions(small(corrupt_fraction=0.6), 260)
    total = kinds.total()
    assert total > 1200
    # Another slot is the slot itself once in SLOTS times.
    share = 0.6 * (1 - 1 / (3 * SLOTS))
    assert stats.binomtest(total - kinds["none"], total, share).pvalue > 1e-3
    observed = [kinds["zeros"], kinds["noise"], kinds["another"] * SLOTS / (SLOTS - 1)]
    assert stats.chisquare(observed, [sum(observed) / 3] * 3).pvalue > 1e-3
    different = torch.tensor(sorted({tuple(noise.flatten().tolist()) for noise in noises}))
    assert len(different) > 20
    assert stats.kstest(different.flatten().numpy(), "norm").pvalue > 1e-3


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"new_fraction": 0.0}, "never sees a new problem"),
        ({"shortest": 5, "longest": 4}, "pool_shortest <= pool_longest"),
        ({"slots": 7}, "a batch of 8 does not fit a pool of 7 slots"),
    ],
)
def test_bad_settings_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(RecipeError, match=message):
        small(**changes)


def test_k_is_uniform() -> None:
    drawn = Counter(call.steps for *_, call, _ in pool_steps(small(), 600, idle=True))
    assert set(drawn) == {2, 3, 4}
    assert stats.chisquare(list(drawn.values())).pvalue > 1e-3


@pytest.mark.parametrize("every", [False, True])
@pytest.mark.parametrize("penalty", [0.0, 0.7])
def test_losses_and_gradients_equal_the_definition(every: bool, penalty: float) -> None:
    pool = small(all_losses=every, change_penalty=penalty)
    unroll, net = RecordingUnroll(), NET
    mine = restated.parameters(getattr(unroll.net, "net", unroll.net))
    batch = iterant.task("prefix-sums").sample(2, size=5, seed=9)
    for number in range(4):
        pool.run(unroll, batch.inputs.double(), batch.targets, StepRng(2, number))
        call, rows = unroll.call, unroll.call.restart.view(-1, 1, 1)
        path = [torch.where(rows, net.start(call.inputs), call.features)]
        for _ in range(call.steps):
            path.append(restated.unrolled(net, call.inputs, path[-1], 1))
        ends = path[1:] if every else path[-1:]
        losses = [restated.loss_of(net, end, call.inputs, call.targets) for end in ends]
        changes = [(after - before).abs().mean() for before, after in pairwise(path)]
        wanted = torch.stack(losses).mean() + penalty * torch.stack(changes).mean()
        theirs = restated.gradients_of(wanted, restated.parameters(net))
        torch.testing.assert_close(call.loss, wanted.detach(), rtol=1e-12, atol=1e-12)
        restated.assert_same([w.grad for w in mine if w.grad is not None], theirs, 1e-12)
        restated.assert_same([call.end], [path[-1].detach()], 1e-12)
        assert bool(theirs[0].any())  # the fresh rows alone train the projection
        for weight in mine:
            weight.grad = None


def test_noise_is_added_before_every_iteration() -> None:
    seen = []
    for *_, call, _ in pool_steps(small(noise=0.3), 5):
        features = call.start
        for _ in range(call.steps):
            features = restated.unrolled(NET, call.inputs, features + call.noise, 1)
        restated.assert_same([call.end], [features.detach()], 1e-12)
        seen.append(call.noise)
    assert 0.25 < torch.stack(seen).std() < 0.35
    assert not torch.equal(seen[0], seen[1])
    assert all(call.noise is None for *_, call, _ in pool_steps(small(), 2))


def test_varied_noise_has_one_strength_per_problem() -> None:
    shares = []
    for (*_, one, _), (*_, other, _) in zip(
        pool_steps(small(noise=0.5), 40),
        pool_steps(small(noise=0.5, noise_varied=True), 40),
        strict=True,
    ):
        share = (other.noise / one.noise).flatten(1)
        torch.testing.assert_close(share, share[:, :1].expand_as(share))
        shares.append(share[:, 0])
    assert stats.kstest(torch.cat(shares).numpy(), "uniform").pvalue > 1e-3
