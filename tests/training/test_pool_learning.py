"""What a replay pool learns from: losses, gradients, and what a checkpoint gives back."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest
import restated
import torch
from scipy import stats
from test_objectives import tiny
from watched_pool import BATCH, hands_of, small, there, updates

import iterant
from iterant.engine import State
from iterant.training.distributed import ProcessGroup
from iterant.training.objectives import Segment, Update
from iterant.training.rng import StepRng
from iterant.training.unroll import EagerUnroll


class TestLearning:
    def test_k_is_uniform(self) -> None:
        drawn = Counter(asked.steps for *_, asked, _ in updates(small(), hands_of(idle=True), 600))
        assert set(drawn) == {2, 3, 4}
        assert stats.chisquare(list(drawn.values())).pvalue > 1e-3

    def test_losses_and_gradients_are_those_of_the_definition(self) -> None:
        pool, unroll = small(), hands_of()
        net = tiny()
        mine = restated.parameters(getattr(unroll.net, "net", unroll.net))
        for number, (*_, asked, _) in enumerate(updates(pool, unroll, 6)):
            rows = [
                net.start(asked.inputs[i : i + 1])
                if asked.restart[i]
                else asked.state.features[i : i + 1]
                for i in range(BATCH)
            ]
            end = restated.unrolled(net, asked.inputs, torch.cat(rows), asked.steps)
            wanted = restated.loss_of(net, end, asked.inputs, asked.targets)
            theirs = restated.gradients_of(wanted, restated.parameters(net))
            assert asked.learned is not None
            torch.testing.assert_close(asked.learned.loss, wanted.detach(), rtol=1e-12, atol=1e-12)
            ours = [weight.grad for weight in mine if weight.grad is not None]
            restated.assert_same(ours, theirs, 1e-12)
            restated.assert_same([asked.learned.end.features], [end.detach()], 1e-12)
            for weight in mine:
                weight.grad = None
            assert bool(asked.restart.any()), number
            # The fresh rows alone teach the projection.
            assert bool(theirs[0].any())

    def test_restless_features_cost(self) -> None:
        calm, pool = small(), small(settle=0.7)
        for (*_, asked, _), (*_, other, _) in zip(
            updates(pool, hands_of(), 3), updates(calm, hands_of(), 3), strict=True
        ):
            net, features = tiny(), other.state.features
            rows = other.restart.view(-1, 1, 1)
            path = [torch.where(rows, net.start(other.inputs), features)]
            for _ in range(other.steps):
                path.append(restated.unrolled(net, other.inputs, path[-1], 1))
            changes = sum(float((b - a).detach().abs().sum()) for a, b in pairwise(path))
            mean = changes / (other.steps * path[0].numel())
            assert asked.learned is not None
            assert other.learned is not None
            assert mean > 0.01
            difference = float(asked.learned.loss - other.learned.loss)
            assert difference == pytest.approx(0.7 * mean, rel=1e-10)

    def test_shaking_adds_noise_before_every_iteration(self) -> None:
        seen = []
        for *_, asked, _ in updates(small(shake=0.3), hands_of(), 5):
            assert asked.noise is not None
            net, noise = tiny(), asked.noise
            rows = asked.restart.view(-1, 1, 1)
            features = torch.where(rows, net.start(asked.inputs), asked.state.features)
            for _ in range(asked.steps):
                features = restated.unrolled(net, asked.inputs, features + noise, 1)
            assert asked.learned is not None
            restated.assert_same([asked.learned.end.features], [features.detach()], 1e-12)
            seen.append(noise)
        assert 0.25 < torch.stack(seen).std() < 0.35
        assert not torch.equal(seen[0], seen[1])
        assert all(asked.noise is None for *_, asked, _ in updates(small(), hands_of(), 2))

    def test_varied_every_problem_is_shaken_by_a_strength_of_its_own(self) -> None:
        alike, varied = small(shake=0.5), small(shake=0.5, varied=True)
        shares = []
        for (*_, one, _), (*_, other, _) in zip(
            updates(alike, hands_of(), 40), updates(varied, hands_of(), 40), strict=True
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

    def test_a_loss_after_every_iteration_is_the_mean_of_them_all(self) -> None:
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

    def test_rows_that_go_on_teach_the_projection_nothing(self) -> None:
        net, unroll = tiny(), hands_of()
        pool = small()
        for *_, asked, _ in updates(pool, unroll, 4):
            going_on = State(asked.state.features[~asked.restart])
        weights = restated.parameters(net)
        EagerUnroll(net).forward_backward(
            asked.inputs[~asked.restart],
            asked.targets[~asked.restart],
            Segment(3),
            state=going_on,
            restart=torch.zeros(len(going_on.features), dtype=torch.bool),
        )
        projection = weights[0].grad
        assert projection is None or not projection.any()

    def test_chance_is_the_moments_alone(self) -> None:
        first = [asked.state.features for *_, asked, _ in updates(small(), hands_of(), 5)]
        again = [asked.state.features for *_, asked, _ in updates(small(), hands_of(), 5)]
        other = [asked.state.features for *_, asked, _ in updates(small(), hands_of(), 5, seed=3)]
        assert all(map(torch.equal, first, again))
        assert not all(map(torch.equal, first, other))

    def test_a_pool_taken_over_goes_on_alike(self) -> None:
        pool, unroll = small(), hands_of()
        whole = [after for *_, after in updates(pool, unroll, 8)]
        broken = small()
        for _ in updates(broken, hands_of(), 4):
            pass
        successor = small()
        successor.restore({name: value.clone() for name, value in broken.tensors().items()})
        task = iterant.task("prefix-sums")
        for number in range(4, 8):
            fresh = task.sample(2, size=5, seed=9, first=number * 2)
            update = Update(
                fresh.inputs.double(), fresh.targets, StepRng(2, number), ProcessGroup()
            )
            successor.run(hands_of(), update)
        assert successor.held is not None
        for name, value in there(whole[-1]).items():
            assert torch.equal(vars(successor.held)[name], value), name
