"""The replay pool: training from states that are hundreds of iterations old.

    >>> pool = ReplayPool(Recipe(objective="pool", pool_slots=4096, pool_new_fraction=0.3))

The pool's slots hold problems with their present states. An optimizer step draws a batch of slots,
puts new problems into some of them, corrupts the states of others, runs k more iterations with
gradients, takes the loss and writes the states back. It needs neither a prefix without gradients
nor a full unroll, and trains on states that an unroll never reaches.

Corruptions (zeros, noise, another slot's state) teach a network to recover from any state:
far from the ends of a large problem, states arise that no small problem leads to by itself.

Shapes: B batch, W width, *S space.
"""

from __future__ import annotations

import torch
from torch import Tensor

from iterant.engine import State
from iterant.errors import RecipeError
from iterant.nets.protocol import Net, readout_of
from iterant.rng import StepRng
from iterant.training.data import to_device
from iterant.training.distributed import ALONE, ProcessGroup
from iterant.training.objectives import Objective, Segment, Unroll
from iterant.training.recipe import Recipe

_NOISES = 32
"""Number of noise tensors, drawn once per run: drawing new ones would cost more than the step."""


class ReplayPool(Objective):
    """The objective, configured by the recipe's fields ``pool_…``.

    Its slots are created at the first step and are part of the checkpoint.
    """

    def __init__(self, recipe: Recipe, processes: ProcessGroup = ALONE) -> None:
        super().__init__(recipe, processes)
        self.longest = recipe.pool_longest or recipe.iterations
        self.slots: dict[str, Tensor] = {}
        """One row per slot: inputs, targets, features, filled (False: the next iteration starts at
        the projection) and, with ``pool_until_solved``, solved (was the last answer right?)"""
        self._noise: Tensor | None = None
        if recipe.pool_new_fraction == 0:
            raise RecipeError("pool_new_fraction = 0 never sees a new problem; try 0.3")
        if recipe.batch_size > recipe.pool_slots:
            raise RecipeError(
                f"a batch of {recipe.batch_size} does not fit a pool of {recipe.pool_slots} slots"
            )
        if recipe.pool_shortest > self.longest:
            raise RecipeError(
                "a segment needs pool_shortest <= pool_longest, "
                f"got {recipe.pool_shortest} and {self.longest}"
            )

    @property
    def new_problems(self) -> int:
        """The share ``pool_new_fraction`` of the batch, at least one problem."""
        return max(1, round(self.recipe.batch_size * self.recipe.pool_new_fraction))

    def run(self, unroll: Unroll, inputs: Tensor, targets: Tensor, rng: StepRng) -> Tensor:
        recipe, fresh = self.recipe, len(inputs)
        if not self.slots:
            self._create(unroll.net, inputs, targets)
        pool = self.slots
        slots = torch.from_numpy(rng.choose(recipe.batch_size, recipe.pool_slots, "slots"))
        rows = to_device(slots, inputs.device)  # (B,); new problems go into the first ones
        # The last of the new problems are used once: their slots get their old content back.
        once = rows[round(fresh * recipe.pool_insert_fraction) : fresh]
        previous = {name: column[once] for name, column in pool.items()} if len(once) else {}
        self._insert(rows[:fresh], inputs, targets)
        features = self._corrupted(rows, rng)
        shard = self.processes.shard(rows)
        k = rng.integer(recipe.pool_shortest, self.longest, "stretch")
        weights = (1 / k,) * k if recipe.pool_all_losses else ()
        result = unroll.forward_backward(
            pool["inputs"][shard],
            pool["targets"][shard],
            Segment(k, weights=weights, change_penalty=recipe.pool_change_penalty),
            state=State(self.processes.shard(features)),
            restart=~pool["filled"][shard],
            noise=self.processes.shard(self._step_noise(rows, rng)) if recipe.pool_noise else None,
        )
        end = self.processes.gather(result.states[-1].features)
        pool["features"][rows] = end.to(pool["features"].dtype)
        pool["filled"].index_fill_(0, rows, True)
        if "solved" in pool:
            pool["solved"][rows] = self._solved(unroll.net, rows)
        for name, column in previous.items():
            pool[name][once] = column
        return result.loss

    @torch.no_grad()
    def _create(self, net: Net, inputs: Tensor, targets: Tensor) -> None:
        """Fill the slots with the first step's problems, repeated, without states."""
        count = self.recipe.pool_slots
        index = torch.arange(count, device=inputs.device) % len(inputs)
        features = net.start(inputs[:1])
        self.slots = {
            "inputs": inputs[index],
            "targets": targets[index],
            "features": features.new_zeros(count, *features.shape[1:]),
            "filled": torch.zeros_like(index, dtype=torch.bool),
        }
        if self.recipe.pool_until_solved:
            self.slots["solved"] = torch.ones_like(index, dtype=torch.bool)

    def _insert(self, rows: Tensor, inputs: Tensor, targets: Tensor) -> None:
        """Put new problems into these slots; with ``pool_until_solved`` only where one is solved.

        The last share ``pool_stale_fraction`` of them starts from the state in its slot.
        """
        restart = rows[: round(len(rows) * (1 - self.recipe.pool_stale_fraction))]
        self.slots["filled"].index_fill_(0, restart, False)
        for name, new in (("inputs", inputs), ("targets", targets)):
            column = self.slots[name]
            if "solved" in self.slots:  # torch.where, because indexing by a mask synchronises
                replace = self.slots["solved"][rows].view(-1, *[1] * (column.dim() - 1))
                new = torch.where(replace, new, column[rows])
            column[rows] = new

    def _corrupted(self, rows: Tensor, rng: StepRng) -> Tensor:
        """(B, W, *S): the states of these slots, some of them corrupted."""
        features, recipe = self.slots["features"][rows], self.recipe
        if not recipe.pool_corrupt_fraction:
            return features
        generator, device = rng.generator("damage"), features.device
        # Everything is drawn for all rows, on the CPU: the same draws on every device.
        count = len(rows)
        hit = torch.rand(count, generator=generator) < recipe.pool_corrupt_fraction
        kind = torch.randint(3, (count,), generator=generator).where(hit, -1)
        other = torch.randint(recipe.pool_slots, (count,), generator=generator)
        which_noise = torch.randint(_NOISES, (count,), generator=generator)
        noise = self._unit_noise(rng)[to_device(which_noise, device)]
        another = self.slots["features"][to_device(other, device)]
        kind = to_device(kind, device).view(-1, *[1] * (features.dim() - 1))
        for number, corrupted in enumerate((torch.zeros_like(features), noise, another)):
            features = torch.where(kind == number, corrupted, features)
        return features

    def _step_noise(self, rows: Tensor, rng: StepRng) -> Tensor:
        """(B, W, *S): noise for every iteration of this segment."""
        generator, features = rng.generator("shake"), self.slots["features"]
        which = torch.randint(_NOISES, (len(rows),), generator=generator)
        shifts = [int(torch.randint(side, (), generator=generator)) for side in features.shape[2:]]
        unit = self._unit_noise(rng)[to_device(which, features.device)]
        noise = self.recipe.pool_noise * unit.roll(shifts, tuple(range(2, unit.dim())))
        if not self.recipe.pool_noise_varied:
            return noise
        strength = torch.rand(len(rows), generator=generator, dtype=noise.dtype)
        return noise * to_device(strength, noise.device).view(-1, *[1] * (noise.dim() - 1))

    def _unit_noise(self, rng: StepRng) -> Tensor:
        """(32, W, *S): unit Gaussian noise."""
        if self._noise is None:
            features = self.slots["features"]
            generator = StepRng(rng.seed, 0).generator("noise")
            shape = (_NOISES, *features.shape[1:])
            self._noise = torch.randn(shape, generator=generator).to(features)
        return self._noise

    @torch.no_grad()
    def _solved(self, net: Net, rows: Tensor) -> Tensor:
        """(rows,) bool: whether the states of these slots decode to the right answer."""
        inputs, targets, features = (
            self.slots[name][rows] for name in ("inputs", "targets", "features")
        )
        right = readout_of(net).predict(net.answer(features), inputs) == targets
        return right.flatten(1).all(dim=1)

    def tensors(self) -> dict[str, Tensor]:
        return self.slots

    def restore(self, tensors: dict[str, Tensor]) -> None:
        """Restore the slots of a checkpoint; without any, start with an empty pool."""
        self.slots = tensors
