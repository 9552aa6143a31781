"""The loop of a run: updates, validation, checkpoints, and every way of ending well.

    >>> run = train("prefix-sums", recipe="quick", seed=0, out="runs/s0")

Whatever decides an update is a function of the recipe, the seed and the update's number, so that a
run resumed from a checkpoint goes on as if it had never stopped: bit for bit on the CPU.

What a run writes down: how checkpoints are kept, and figures as their metadata hold them.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from typing import Any

import torch

from iterant import registry
from iterant.errors import RunError, TrainingStopped, UsageError
from iterant.io import RunFolder
from iterant.io.checkpoint import SMALLEST_SHARD_MB
from iterant.tasks.protocol import Task
from iterant.training.build import build_network
from iterant.training.data import TrainingSet
from iterant.training.distributed import ProcessGroup
from iterant.training.interrupts import Clock, LossGuard, Signals
from iterant.training.logging import Report, Reporter
from iterant.training.optim import lr_factor
from iterant.training.recipe import Recipe
from iterant.training.replay_pool import ReplayPool
from iterant.training.rng import Shuffle, StepRng
from iterant.training.trainer import Trainer
from iterant.training.validation import Figures, Validator, finite


@dataclass(frozen=True)
class CheckpointOptions:
    """How checkpoints are written."""

    shard_mb: float | None = None
    """Largest size of a file, in millions of bytes"""
    pool: bool = True
    """Whether the replay pool is part of them; without it a resumed run differs"""

    def __post_init__(self) -> None:
        """Refuse a size now rather than at the first checkpoint."""
        if self.shard_mb is not None and not SMALLEST_SHARD_MB <= self.shard_mb < math.inf:
            raise UsageError(
                f"shard size must be at least {SMALLEST_SHARD_MB} MB, got {self.shard_mb}; try 15"
            )


def or_null(value: float) -> float | None:
    """The value as a checkpoint's metadata holds it: features that explode have no figures."""
    return value if math.isfinite(value) else None


_LOOKS = 20
"""How often the loss is read within an epoch (reading waits for the device)."""
_APART = 20
"""Updates from one look to the next on a GPU, at least: a look empties the queue of its work."""
_TRIES, _ENOUGH = 3, 1000
"""How often a run begins, and how many updates it has had, before it is given up as stuck."""


class Loop:
    """One run from where it stands to its end."""

    def __init__(
        self,
        task: Task,
        recipe: Recipe,
        seed: int,
        trainer: Trainer,
        problems: TrainingSet,
        *,
        folder: RunFolder | None,
        reporter: Reporter,
        checkpoints: CheckpointOptions,
        processes: ProcessGroup,
    ) -> None:
        """Everything a run needs; only the crew's first process has a folder."""
        self.recipe, self.seed, self.trainer, self.problems = recipe, seed, trainer, problems
        self.spec, self.tries = task.spec, 1
        self.folder, self.reporter, self.checkpoints, self.processes = (
            folder,
            reporter,
            checkpoints,
            processes,
        )
        self.per_epoch = len(problems) // recipe.batch
        self.total = self.per_epoch * recipe.epochs
        apart = _APART if trainer.device.type == "cuda" else 1
        self.looks_every = max(apart, self.per_epoch // _LOOKS)
        self.takes = trainer.objective.takes(recipe.batch)
        self.order = Shuffle(len(problems), seed)
        self.validator = Validator(task, recipe, problems.held_out)
        self.figures: Figures = {}
        self.watched: set[str] = set()
        self.best: dict[str, Any] = {}
        self.unsaved: dict[str, torch.Tensor] | None = None
        self.losses: list[torch.Tensor] = []
        self.read: list[float] = []
        self.shown: Report | None = None
        self.guard = LossGuard(forgiving=trainer.loss_scale is not None)
        self.seen, self.since, self.saved = 0, 0.0, -1

    @property
    def update(self) -> int:
        """Updates done."""
        return self.trainer.updates

    def steps(self, clock: Clock, signals: Signals) -> Generator[None, None, str]:
        """Go on to the last update or to the first reason to stop; returns which.

        Yields after every update, so that several runs can take turns.
        """
        self.seen, self.since = self.update, clock.elapsed
        while self.update < self.total:
            reason = self._reason_to_stop(clock, signals)
            if reason is not None:
                self.save()
                return reason
            begun, place = clock.elapsed, (self.update + 1) % self.per_epoch
            self._one_update()
            if place % self.looks_every == 0:
                self._look(clock)
            if place == 0:
                self._end_of_epoch(self.update // self.per_epoch)
                if not self.update:  # begun again
                    self.seen, self.since = 0, clock.elapsed
            clock.took(clock.elapsed - begun)
            yield
        if self.saved != self.update:
            self.save()
        return "finished"

    def _one_update(self) -> None:
        number = self.update
        rows = self.order.take(number * self.takes, self.takes)
        rng = StepRng(self.seed, number)
        inputs, targets = self.problems.rows(rows, rng)
        factor = lr_factor(self.recipe, number, self.per_epoch)
        self.losses.append(self.trainer.update(inputs, targets, rng, factor).clone())

    def _reason_to_stop(self, clock: Clock, signals: Signals) -> str | None:
        """The first reason to stop; all processes leave together."""
        if self.processes.any_process(signals.raised is not None):
            return f"stopped by {signals.raised or 'another process'}"
        return "stopped at the time limit" if self.processes.any_process(clock.over) else None

    def _look(self, clock: Clock) -> None:
        """Log and show the losses since the last look."""
        self._read_losses()
        if not self.read:
            return
        mean = math.fsum(self.read) / len(self.read)
        self.read.clear()
        now = clock.elapsed
        pace = (self.update - self.seen) / max(now - self.since, 1e-9)
        report = self.shown = self.report(mean, pace)
        self.reporter.show(report)
        self._log({"kind": "train", "loss": report.loss, "rate": report.rate,
                   "updates_per_second": pace})  # fmt: skip

    def _read_losses(self) -> None:
        """Fetch the losses from the device, the mean over all processes, and check them."""
        if not self.losses:
            return
        losses = torch.stack(self.losses).double()
        self.losses.clear()
        self.processes.average([losses])
        values = losses.tolist()
        for number, loss in enumerate(values, start=self.update - len(values) + 1):
            self.guard.see(number, loss)
        self.read += values

    def report(self, loss: float, pace: float) -> Report:
        """Where the run stands."""
        factor = lr_factor(self.recipe, max(0, self.update - 1), self.per_epoch)
        return Report(
            update=self.update,
            updates=self.total,
            epoch=self.update // self.per_epoch,
            epochs=self.recipe.epochs,
            loss=loss,
            rate=self.recipe.rate * factor,
            updates_per_second=pace,
            seconds_left=(self.total - self.update) / max(pace, 1e-9),
            figures=dict(self.figures),
            monitoring=tuple(sorted(self.watched)),
        )

    def _end_of_epoch(self, epoch: int) -> None:
        """Validate, watch and save, as often as the recipe says, and at the very end."""
        recipe, final = self.recipe, epoch == self.recipe.epochs
        fresh: Figures = {}
        self._check_weights()
        if epoch % recipe.validate_every == 0 or final:
            fresh |= self._judge("validation", self.validator.validate)
        if recipe.watch_every and (epoch % recipe.watch_every == 0 or final):
            watched = self._judge("watch", self.validator.watch)
            self.watched |= watched.keys()
            fresh |= watched
        self._keep_best(epoch, fresh)
        if final and self._failed(fresh):
            self._begin_again(fresh)
            return
        if fresh and self.shown is not None:
            self.reporter.show(replace(self.shown, figures=dict(self.figures),
                                       monitoring=tuple(sorted(self.watched)),
                                       fresh=tuple(fresh)))  # fmt: skip
        if epoch % recipe.checkpoint_every == 0 or final:
            self.save()

    def _failed(self, fresh: Figures) -> bool:
        """Whether the run ends below what its recipe asks for, and may try again; all agree."""
        reached = fresh.get("validation", math.inf)
        low = self.processes.any_process(reached < self.recipe.again_below)
        return low and self.tries < _TRIES and self.total >= _ENOUGH

    def _begin_again(self, fresh: Figures) -> None:
        """Train from the beginning with other weights; problems and noise are the same."""
        reached, asked = 100 * fresh.get("validation", math.nan), 100 * self.recipe.again_below
        self.reporter.note(f"validation {reached:.2f} % at the end, {asked:g} % wanted: begins "
                           f"again, other weights, try {self.tries + 1} of {_TRIES}")  # fmt: skip
        seed = StepRng(self.seed, self.tries).integer(0, 2**31 - 1, "weights")
        net, _ = build_network(self.recipe, self.spec, seed)
        self.trainer = Trainer(net, self.recipe, self.trainer.device, self.processes)
        self.tries += 1
        self.guard = LossGuard(forgiving=self.trainer.loss_scale is not None)
        self.losses, self.read = [], []
        self.save()
        if self.folder is not None:
            self.folder.rewind_metrics(0)
        self._log({"kind": "again", "try": self.tries, "figures": fresh})

    def _judge(self, kind: str, look: Callable[[Any], Figures]) -> Figures:
        """Figures of the network to be judged; the first process looks, the others wait."""
        if self.processes.rank:
            return {}
        begun = time.monotonic()
        with self.trainer.averaged() as net:
            figures = look(net)
        self.figures |= figures
        self._log({"kind": kind, "monitoring": kind != "validation", "figures": figures,
                   "seconds": time.monotonic() - begun})  # fmt: skip
        return figures

    def _keep_best(self, epoch: int, fresh: Figures) -> None:
        """Keep the weights that the recipe's way of choosing calls better than the best so far."""
        found = registry.find("choose", self.recipe.choose)(fresh, self.best)
        if found is None:
            return
        self.best = {**found, "epoch": epoch, "step": self.update}
        if self.folder is not None:
            self.unsaved = {name: weight.clone() for name, weight in self.trainer.judged().items()}

    def save(self) -> None:
        """Write the checkpoint from which the run can go on; refuse to write one that is NaN."""
        self._read_losses()
        self._check_weights()
        self.saved = self.update
        if self.folder is None:
            return
        if self.unsaved is not None:
            self.folder.save("best", self.unsaved, self.best, self.checkpoints.shard_mb)
            self.unsaved = None
        if self.trainer.average is not None:
            self.folder.save("averaged", self.trainer.judged(), {"step": self.update},
                             self.checkpoints.shard_mb)  # fmt: skip
        self.folder.save(
            "last",
            self.trainer.tensors(pool=self.checkpoints.pool),
            {"step": self.update, "seed": self.seed, "tries": self.tries, "best": self.best,
             "figures": {name: or_null(value) for name, value in self.figures.items()},
             "watched": sorted(self.watched), "losses": self.read,
             "first_loss": self.guard.first, "losses_above": self.guard.above,
             "pool": self.checkpoints.pool or not isinstance(self.trainer.objective, ReplayPool)},
            self.checkpoints.shard_mb,
        )  # fmt: skip
        self.guard.saved = True
        self.folder.set_status("running", step=self.update, steps=self.total, best=self.best)

    def _check_weights(self) -> None:
        if not finite(self.trainer.module):
            raise TrainingStopped(
                f"a weight became NaN or infinite by update {self.update}; {self.guard.advice}"
            )

    def resume(self, source: RunFolder) -> None:
        """Go on from a run's last checkpoint; one that was killed before its first begins anew."""
        if not source.has("last"):
            self.reporter.note("this run has no checkpoint yet; it begins anew")
        else:
            tensors, metadata = source.load("last")
            try:
                self._take_over(tensors, metadata)
            except (KeyError, RuntimeError, TypeError, ValueError) as error:
                first = str(error).strip().splitlines()[0]
                raise RunError(
                    f"the last checkpoint of {source.path} does not fit its recipe ({first}); "
                    "use the version of iterant that wrote it"
                ) from error
        if self.folder is not None:
            self.folder.rewind_metrics(self.update)

    def _take_over(self, tensors: dict[str, torch.Tensor], metadata: dict[str, Any]) -> None:
        self.trainer.restore(tensors, metadata["step"])
        self.best, self.watched = dict(metadata["best"]), set(metadata["watched"])
        self.tries = metadata.get("tries", 1)
        self.figures = {
            name: math.nan if value is None else value
            for name, value in metadata["figures"].items()
        }
        self.read, self.saved = list(metadata["losses"]), self.update
        self.guard.first, self.guard.saved = metadata["first_loss"], True
        self.guard.above = metadata.get("losses_above", 0)
        if not metadata["pool"]:
            self.reporter.note(
                "the checkpoint was saved without its replay pool (--drop-pool), which begins "
                "anew: from here on the run differs from an unbroken one"
            )

    def _log(self, record: dict[str, Any]) -> None:
        if self.folder is not None:
            epoch = self.update / self.per_epoch
            self.folder.log({"step": self.update, "epoch": round(epoch, 4), **record})
