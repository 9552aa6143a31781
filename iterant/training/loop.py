"""The training loop: optimizer steps, validation, checkpoints, and every way a run can end.

    >>> run = train("prefix-sums", recipe="quick", seed=0, out="runs/s0")

Everything that decides an optimizer step is a function of the recipe, the seed and the step's
number, so a run resumed from a checkpoint equals the unbroken run, bit for bit on the CPU.
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
from iterant.training.logging import Progress, Reporter
from iterant.training.optim import lr_factor
from iterant.training.recipe import Recipe
from iterant.training.replay_pool import ReplayPool
from iterant.training.rng import Shuffle, StepRng
from iterant.training.trainer import Trainer
from iterant.training.validation import Figures, Validator, finite

_LOGS_PER_EPOCH = 20
_MIN_LOG_INTERVAL = 20
"""On a GPU, in steps: reading the loss waits for all queued work."""
_TRIES = 3
"""How often a run that ends below ``again_below`` is started."""
_MIN_STEPS = 1000
"""Shorter runs are not restarted."""
PERFECT = "stopped by a perfect validation"
"""Why a run ends whose best weights cannot change: the first of equally good ones are kept."""


@dataclass(frozen=True)
class CheckpointOptions:
    """How checkpoints are written."""

    shard_mb: float | None = None
    """Largest size of a file, in millions of bytes"""
    pool: bool = True
    """Whether they hold the replay pool; without it a resumed run differs"""

    def __post_init__(self) -> None:
        """Check the size now rather than at the first checkpoint."""
        if self.shard_mb is not None and not SMALLEST_SHARD_MB <= self.shard_mb < math.inf:
            raise UsageError(
                f"shard size must be at least {SMALLEST_SHARD_MB} MB, got {self.shard_mb}; try 15"
            )


class Loop:
    """One run, from its current step to its end."""

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
        """``folder`` is None in all processes but the first."""
        self.recipe, self.seed, self.trainer, self.problems = recipe, seed, trainer, problems
        self.folder, self.reporter = folder, reporter
        self.checkpoints, self.processes = checkpoints, processes
        self.spec, self.tries = task.spec, 1
        self.per_epoch = len(problems) // recipe.batch
        self.total = self.per_epoch * recipe.epochs
        least = _MIN_LOG_INTERVAL if trainer.device.type == "cuda" else 1
        self.log_interval = max(least, self.per_epoch // _LOGS_PER_EPOCH)
        self.takes = trainer.objective.takes(recipe.batch)
        self.shuffle = Shuffle(len(problems), seed)
        self.validator = Validator(task, recipe, problems.held_out)
        self.figures: Figures = {}
        self.monitored: set[str] = set()
        self.best: dict[str, Any] = {}
        self.unsaved_best: dict[str, torch.Tensor] | None = None
        self.device_losses: list[torch.Tensor] = []
        self.losses: list[float] = []
        self.last_report: Progress | None = None
        self.guard = LossGuard(forgiving=trainer.loss_scale is not None)
        self.saved = -1
        # Step and time from which steps per second are counted.
        self.timed_from = (0, 0.0)

    @property
    def update(self) -> int:
        """Optimizer steps done."""
        return self.trainer.updates

    def steps(
        self, clock: Clock, signals: Signals, until_perfect: bool = False
    ) -> Generator[None, None, str]:
        """Train to the last step or the first reason to stop; returns the reason.

        Yields after every optimizer step, so that several runs can take turns.
        """
        self.timed_from = (self.update, clock.elapsed)
        while self.update < self.total:
            reason = self._reason_to_stop(clock, signals)
            # EMA weights keep improving after a perfect validation; others cannot.
            if until_perfect and self.recipe.average is None:
                perfect = self.figures.get("validation") == 1.0
                reason = PERFECT if self.processes.any_process(perfect) else reason
            if reason is not None:
                self.save()
                return reason
            started, in_epoch = clock.elapsed, (self.update + 1) % self.per_epoch
            self._step()
            if in_epoch % self.log_interval == 0:
                self._log_losses(clock)
            if in_epoch == 0:
                self._end_of_epoch(self.update // self.per_epoch)
                if not self.update:  # restarted with other weights
                    self.timed_from = (0, clock.elapsed)
            clock.took(clock.elapsed - started)
            yield
        if self.saved != self.update:
            self.save()
        return "finished"

    def _step(self) -> None:
        number = self.update
        rng = StepRng(self.seed, number)
        rows = self.shuffle.take(number * self.takes, self.takes)
        inputs, targets = self.problems.rows(rows, rng)
        factor = lr_factor(self.recipe, number, self.per_epoch)
        self.device_losses.append(self.trainer.update(inputs, targets, rng, factor).clone())

    def _reason_to_stop(self, clock: Clock, signals: Signals) -> str | None:
        """The first reason to stop, the same in all processes."""
        if self.processes.any_process(signals.raised is not None):
            return f"stopped by {signals.raised or 'another process'}"
        return "stopped at the time limit" if self.processes.any_process(clock.over) else None

    def _log_losses(self, clock: Clock) -> None:
        """Log and show the mean loss since the last time."""
        self._read_losses()
        if not self.losses:
            return
        mean = math.fsum(self.losses) / len(self.losses)
        self.losses.clear()
        first, since = self.timed_from
        pace = (self.update - first) / max(clock.elapsed - since, 1e-9)
        report = self.last_report = self.report(mean, pace)
        self.reporter.show(report)
        self._log({"kind": "train", "loss": report.loss, "rate": report.rate,
                   "updates_per_second": pace})  # fmt: skip

    def _read_losses(self) -> None:
        """Fetch the losses from the device, averaged over processes, and check them."""
        if not self.device_losses:
            return
        losses = torch.stack(self.device_losses).double()
        self.device_losses.clear()
        self.processes.average([losses])
        values = losses.tolist()
        for number, loss in enumerate(values, start=self.update - len(values) + 1):
            self.guard.see(number, loss)
        self.losses += values

    def report(self, loss: float, pace: float) -> Progress:
        """The progress of the run, for its reporter."""
        factor = lr_factor(self.recipe, max(0, self.update - 1), self.per_epoch)
        return Progress(
            update=self.update,
            updates=self.total,
            epoch=self.update // self.per_epoch,
            epochs=self.recipe.epochs,
            loss=loss,
            rate=self.recipe.rate * factor,
            updates_per_second=pace,
            seconds_left=(self.total - self.update) / max(pace, 1e-9),
            figures=dict(self.figures),
            monitoring=tuple(sorted(self.monitored)),
        )

    def _end_of_epoch(self, epoch: int) -> None:
        """Validate, monitor and save, as often as the recipe says and after the last epoch."""
        recipe, final = self.recipe, epoch == self.recipe.epochs
        fresh: Figures = {}
        self._check_weights()
        if epoch % recipe.validate_every == 0 or final:
            fresh |= self._evaluate("validation", self.validator.validate)
        if recipe.watch_every and (epoch % recipe.watch_every == 0 or final):
            monitored = self._evaluate("watch", self.validator.monitor)
            self.monitored |= monitored.keys()
            fresh |= monitored
        self._keep_best(epoch, fresh)
        if final and self._failed(fresh):
            self._restart(fresh)
            return
        if fresh and self.last_report is not None:
            names = tuple(sorted(self.monitored))
            self.reporter.show(replace(self.last_report, figures=dict(self.figures),
                                       monitoring=names, fresh=tuple(fresh)))  # fmt: skip
        if epoch % recipe.checkpoint_every == 0 or final:
            self.save()

    def _failed(self, fresh: Figures) -> bool:
        """Whether the run ends below the recipe's ``again_below`` and may be restarted."""
        accuracy = fresh.get("validation", math.inf)
        low = self.processes.any_process(accuracy < self.recipe.again_below)
        return low and self.tries < _TRIES and self.total >= _MIN_STEPS

    def _restart(self, fresh: Figures) -> None:
        """Train from the start with other initial weights; data and noise stay the same."""
        accuracy, wanted = 100 * fresh.get("validation", math.nan), 100 * self.recipe.again_below
        self.reporter.note(f"validation {accuracy:.2f} % at the end, {wanted:g} % wanted: begins "
                           f"again, other weights, try {self.tries + 1} of {_TRIES}")  # fmt: skip
        seed = StepRng(self.seed, self.tries).integer(0, 2**31 - 1, "weights")
        net, _ = build_network(self.recipe, self.spec, seed)
        self.trainer = Trainer(net, self.recipe, self.trainer.device, self.processes)
        self.tries += 1
        self.guard = LossGuard(forgiving=self.trainer.loss_scale is not None)
        self.device_losses, self.losses = [], []
        self.save()
        if self.folder is not None:
            self.folder.rewind_metrics(0)
        self._log({"kind": "again", "try": self.tries, "figures": fresh})

    def _evaluate(self, kind: str, evaluate: Callable[[Any], Figures]) -> Figures:
        """Figures of the present (EMA) weights; only the first process evaluates."""
        if self.processes.rank:
            return {}
        started = time.monotonic()
        with self.trainer.averaged() as net:
            figures = evaluate(net)
        self.figures |= figures
        self._log({"kind": kind, "monitoring": kind != "validation", "figures": figures,
                   "seconds": time.monotonic() - started})  # fmt: skip
        return figures

    def _keep_best(self, epoch: int, fresh: Figures) -> None:
        """Keep the present weights if the recipe's criterion calls them the best so far."""
        better = registry.find("choose", self.recipe.choose)(fresh, self.best)
        if better is None:
            return
        self.best = {**better, "epoch": epoch, "step": self.update}
        if self.folder is not None:
            weights = self.trainer.evaluated_weights()
            self.unsaved_best = {name: weight.clone() for name, weight in weights.items()}

    def save(self) -> None:
        """Write a checkpoint to resume from, unless a weight is NaN."""
        self._read_losses()
        self._check_weights()
        self.saved = self.update
        if self.folder is None:
            return
        shard_mb, pool = self.checkpoints.shard_mb, self.checkpoints.pool
        if self.unsaved_best is not None:
            self.folder.save("best", self.unsaved_best, self.best, shard_mb)
            self.unsaved_best = None
        if self.trainer.average is not None:
            averaged = self.trainer.evaluated_weights()
            self.folder.save("averaged", averaged, {"step": self.update}, shard_mb)
        # JSON has no NaN: figures of exploded features are null.
        figures = {
            name: value if math.isfinite(value) else None for name, value in self.figures.items()
        }
        metadata = {
            "step": self.update, "seed": self.seed, "tries": self.tries, "best": self.best,
            "figures": figures, "watched": sorted(self.monitored), "losses": self.losses,
            "first_loss": self.guard.first, "losses_above": self.guard.above,
            "pool": pool or not isinstance(self.trainer.objective, ReplayPool),
        }  # fmt: skip
        self.folder.save("last", self.trainer.tensors(pool=pool), metadata, shard_mb)
        self.guard.saved = True
        self.folder.set_status("running", step=self.update, steps=self.total, best=self.best)

    def _check_weights(self) -> None:
        if not finite(self.trainer.module):
            raise TrainingStopped(
                f"a weight became NaN or infinite by update {self.update}; {self.guard.advice}"
            )

    def resume(self, source: RunFolder) -> None:
        """Continue from a run's last checkpoint, or start anew where there is none yet."""
        if not source.has("last"):
            self.reporter.note("this run has no checkpoint yet; it begins anew")
        else:
            tensors, metadata = source.load("last")
            try:
                self._restore(tensors, metadata)
            except (KeyError, RuntimeError, TypeError, ValueError) as error:
                first = str(error).strip().splitlines()[0]
                raise RunError(
                    f"the last checkpoint of {source.path} does not fit its recipe ({first}); "
                    "use the version of iterant that wrote it"
                ) from error
        if self.folder is not None:
            self.folder.rewind_metrics(self.update)

    def _restore(self, tensors: dict[str, torch.Tensor], metadata: dict[str, Any]) -> None:
        self.trainer.restore(tensors, metadata["step"])
        self.best, self.monitored = dict(metadata["best"]), set(metadata["watched"])
        self.tries = metadata.get("tries", 1)
        self.figures = {
            name: math.nan if value is None else value
            for name, value in metadata["figures"].items()
        }
        self.losses, self.saved = list(metadata["losses"]), self.update
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
