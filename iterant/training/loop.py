"""The training loop: optimizer steps, validation, checkpoints.

    >>> run = train("prefix-sums", recipe="quick", seed=0, out="runs/s0")

Everything that decides an optimizer step is a function of the recipe, the seed and the step's
number, so a run resumed from a checkpoint equals an uninterrupted one, bit for bit on the CPU with
the same number of threads.

A run ends early at its time limit (`Clock`), at a signal (`Signals`), at a perfect validation or
when its loss diverges (`LossGuard`).

Validation chooses the best checkpoint. In-distribution accuracy says nothing about extrapolation,
so a run also measures accuracy and the change of features on somewhat larger problems at several
times the iterations. That is monitoring: it is recorded, and chooses nothing.
"""

from __future__ import annotations

import contextlib
import math
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from types import FrameType
from typing import Any, ClassVar

import torch

from iterant.errors import RunError, TaskError, TrainingStopped
from iterant.evaluation import Curve, evaluate_batch, resolve_steps
from iterant.formatting import size_text
from iterant.io import RunFolder
from iterant.nets import parameter_count
from iterant.nets.from_recipe import build_network
from iterant.nets.protocol import Net, depth_of
from iterant.rng import Shuffle, StepRng
from iterant.tasks.protocol import Batch, Task
from iterant.training.data import TrainingSet
from iterant.training.logging import Reporter, RunProgress
from iterant.training.optim import lr_factor
from iterant.training.recipe import Recipe
from iterant.training.trainer import Trainer

PERFECT = "stopped by a perfect validation"
"""The reason to stop at 100 %: no later weights can replace the first of equally good ones."""

AT_LIMIT = "stopped at the time limit"
"""The reason to stop when only the reserved part of the time limit is left."""

_LOGS_PER_EPOCH = 20
_MIN_LOG_INTERVAL = 20
"""On a GPU, in steps: reading the loss waits for all queued work."""
_CHECK_INTERVAL = 10
"""Steps after which several processes agree whether to stop, which waits for all queued work."""
_ATTEMPTS = 3
"""Attempts of a run that ends below ``restart_below``, the first included."""
_MIN_STEPS = 400
"""Shorter runs are not restarted."""
_SAMPLE = 100
"""Number of validation problems after epochs without validation."""
_MOST_AT_2M = 1000
"""At most this many validation problems are also evaluated after twice the iterations."""

_SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGUSR1")
            if hasattr(signal, name)]  # fmt: skip
"""SIGUSR1: Slurm's warning before the time limit; Windows has none."""

Figures = dict[str, float]


class Loop:
    """One run, from its current step to its end."""

    def __init__(
        self,
        task: Task,
        recipe: Recipe,
        seed: int,
        trainer: Trainer,
        problems: TrainingSet,
        folder: RunFolder | None,
        *,
        clock: Clock,
        reporter: Reporter,
        until_perfect: bool = False,
        may_restart: bool = True,
    ) -> None:
        """``folder`` is None in all processes but the first; the options are those of `train`.

        ``may_restart``: whether a run may begin again with other weights.
        """
        self.recipe, self.seed, self.trainer, self.problems = recipe, seed, trainer, problems
        self.folder, self.clock, self.reporter = folder, clock, reporter
        self.until_perfect, self.may_restart = until_perfect, may_restart
        self.spec, self.processes, self.attempt = task.spec, trainer.processes, 1
        self.steps_per_epoch = len(problems) // recipe.batch_size
        self.total_steps = self.steps_per_epoch * recipe.epochs
        least = _MIN_LOG_INTERVAL if trainer.device.type == "cuda" else 1
        self.log_interval = max(least, self.steps_per_epoch // _LOGS_PER_EPOCH)
        self.new_problems = trainer.objective.new_problems
        self.shuffle = Shuffle(len(problems), seed)
        self.validator = Validator(task, recipe, problems.held_out)
        self.guard = LossGuard(forgiving=trainer.loss_scale is not None)
        self.figures: Figures = {}
        """The latest figures of validation and monitoring"""
        self.sample: Figures = {}
        """Accuracy on some validation problems, where the last epoch ended without validation"""
        self.best: dict[str, Any] = {}
        self.device_losses: list[torch.Tensor] = []
        """Losses not read from the device yet"""
        self.losses: list[float] = []
        """Losses not logged yet"""
        self.mean_loss, self.speed = math.nan, 0.0
        self.timed_from = (0, 0.0)
        """Step and time from which steps per second are counted"""

    @property
    def step(self) -> int:
        return self.trainer.steps

    def run(self, source: RunFolder | None = None) -> None:
        """Train to the end, from the last checkpoint of ``source`` if given.

        The first process holds the folder's lock and records there how the run ended.
        """
        lock = contextlib.nullcontext() if self.folder is None else self.folder.lock()
        with lock, Signals() as signals:
            if source is not None:
                self._resume(source)
            if self.folder is None:
                self._steps(signals)
                return
            self.folder.set_status("running", step=self.step, steps=self.total_steps)
            size = parameter_count(self.trainer.compute)
            title = (
                f"{self.spec.title}: {self.recipe.net}, recipe {self.recipe.name}, "
                f"{size:,} parameters, seed {self.seed}"
            )
            self.reporter.begin(title, self.folder.path, self._progress())
            try:
                reason = self._steps(signals)
            except BaseException as error:
                state, message = "failed", str(error) or type(error).__name__
                if isinstance(error, KeyboardInterrupt):
                    state, message = "stopped", "interrupted"
                with contextlib.suppress(RunError):  # a full disk must not hide the reason
                    self.folder.set_status(state, reason=message)
                self.reporter.end(f"{state}: {message}")
                raise
            state = "finished" if reason is None else "stopped"
            self.folder.set_status(state, reason=reason)
            self.reporter.end(reason or state)

    def _steps(self, signals: Signals) -> str | None:
        """Train to the last step or the first reason to stop; returns the reason."""
        self.timed_from = (self.step, self.clock.elapsed)
        checked = self.clock.elapsed
        while self.step < self.total_steps:
            in_epoch = self.step % self.steps_per_epoch
            reason = None
            if self.processes.size == 1 or in_epoch % _CHECK_INTERVAL == 0:
                self.clock.record(self.clock.elapsed - checked)
                checked = self.clock.elapsed
                reason = self._reason_to_stop(signals)
            if reason is not None:
                self.save()
                return reason
            self._step()
            if (in_epoch + 1) % self.steps_per_epoch % self.log_interval == 0:
                self._log_losses()
            if in_epoch + 1 == self.steps_per_epoch:
                self._end_of_epoch(self.step // self.steps_per_epoch)
        return None

    def _step(self) -> None:
        rng = StepRng(self.seed, self.step)
        rows = self.shuffle.take(self.step * self.new_problems, self.new_problems)
        inputs, targets = self.problems.rows(rows, rng)
        factor = lr_factor(self.recipe, self.step, self.steps_per_epoch)
        self.device_losses.append(self.trainer.step(inputs, targets, rng, factor).clone())

    def _reason_to_stop(self, signals: Signals) -> str | None:
        """The first reason to stop, the same in all processes."""
        # EMA weights keep improving after a perfect validation; others cannot.
        until_perfect = self.until_perfect and self.recipe.ema_decay is None
        perfect = until_perfect and self.figures.get("validation") == 1.0
        number = 3 if perfect else 2 if signals.raised else 1 if self.clock.over else 0
        reasons = (None, AT_LIMIT, f"stopped by {signals.raised or 'another process'}", PERFECT)
        return reasons[self.processes.maximum(number)]

    def _log_losses(self) -> None:
        """Log and show the mean loss since the last time."""
        self._read_losses()
        first, since = self.timed_from
        self.speed = (self.step - first) / max(self.clock.elapsed - since, 1e-9)
        self.mean_loss = math.fsum(self.losses) / len(self.losses)
        self.losses.clear()
        progress = self._progress()
        self.reporter.show(progress)
        self._log("train", loss=progress.loss, lr=progress.lr, steps_per_second=self.speed)

    def _read_losses(self) -> None:
        """Fetch the losses from the device, averaged over processes, and check them."""
        if not self.device_losses:
            return
        losses = torch.stack(self.device_losses)
        self.device_losses.clear()
        self.processes.average([losses])
        values = losses.tolist()
        for number, loss in enumerate(values, start=self.step - len(values) + 1):
            self.guard.check(number, loss)
        self.losses += values

    def _progress(self, fresh: Figures | None = None) -> RunProgress:
        """The progress of the run, for its reporter; ``fresh``: figures measured just now."""
        factor = lr_factor(self.recipe, max(0, self.step - 1), self.steps_per_epoch)
        return RunProgress(
            step=self.step,
            steps=self.total_steps,
            epoch=self.step // self.steps_per_epoch,
            epochs=self.recipe.epochs,
            loss=self.mean_loss,
            lr=self.recipe.lr * factor,
            steps_per_second=self.speed,
            seconds_left=(self.total_steps - self.step) / max(self.speed, 1e-9),
            figures=self.figures | self.sample,
            fresh=tuple(fresh or ()),
            iterations=resolve_steps(self.trainer.compute, self.recipe.iterations, cut=True),
        )

    def _end_of_epoch(self, epoch: int) -> None:
        """Validate, monitor and save, as often as the recipe says and after the last epoch."""
        recipe, final = self.recipe, epoch == self.recipe.epochs
        fresh: Figures = {}
        self.sample = {}
        self._check_weights()
        if epoch % recipe.validate_every == 0 or final:
            fresh |= self._evaluate("validation", self.validator.validate)
        if recipe.monitor_every and (epoch % recipe.monitor_every == 0 or final):
            fresh |= self._evaluate("monitor", self.validator.monitor)
        self._keep_best(epoch, fresh)
        accuracy = fresh.get("validation", math.inf)
        low = final and self.processes.maximum(accuracy < recipe.restart_below)
        if low and self.may_restart and self.attempt < _ATTEMPTS and self.total_steps >= _MIN_STEPS:
            self._restart(fresh)
            return
        if "validation" not in fresh and self.folder is not None:  # for the display only
            with self.trainer.with_ema_weights() as net:
                self.sample = self.validator.sample(net)
        if fresh or self.sample:
            self.reporter.show(self._progress(fresh | self.sample))
        if epoch % recipe.checkpoint_every == 0 or final:
            self.save()

    def _restart(self, fresh: Figures) -> None:
        """Train from the start with other initial weights; data and noise stay the same."""
        accuracy, threshold = fresh.get("validation", math.nan), self.recipe.restart_below
        self.reporter.note(
            f"validation accuracy {100 * accuracy:.2f} % at the end, below {100 * threshold:g} %: "
            f"restarting with other weights, attempt {self.attempt + 1} of {_ATTEMPTS}"
        )
        seed = StepRng(self.seed, self.attempt).integer(0, 2**31 - 1, "weights")
        net, _ = build_network(self.recipe.described(), self.spec, seed)
        objective = self.trainer.user_objective
        self.trainer = Trainer(net, self.recipe, self.trainer.device, self.processes, objective)
        self.attempt += 1
        self.guard = LossGuard(forgiving=self.trainer.loss_scale is not None)
        self.device_losses, self.losses = [], []
        self.save()
        self.timed_from = (0, self.clock.elapsed)
        if self.folder is not None:
            self.folder.rewind_metrics(0)
        self._log("restart", attempt=self.attempt, figures=fresh)

    def _evaluate(self, kind: str, evaluate: Callable[[Any], Figures]) -> Figures:
        """Figures of the present (EMA) weights; only the first process evaluates."""
        if self.folder is None:
            return {}
        start = time.monotonic()
        with self.trainer.with_ema_weights() as net:
            figures = evaluate(net)
        self.figures |= figures
        self._log(kind, monitoring=kind != "validation", figures=figures,
                  seconds=time.monotonic() - start)  # fmt: skip
        return figures

    def _keep_best(self, epoch: int, fresh: Figures) -> None:
        """Save the present weights if they are the best on validation so far.

        The first of equals is the best, as in the authors' code. With an EMA it is the last:
        averages keep improving after validation accuracy reaches 100 %.
        """
        now, best = fresh.get("validation", -1.0), self.best.get("validation", -1.0)
        if not now > best and not (now == best >= 0 and self.recipe.ema_decay is not None):
            return
        self.best = {"validation": fresh["validation"], "epoch": epoch, "step": self.step}
        if self.folder is not None:
            self.folder.save("best", self.trainer.evaluated_weights(), self.best)

    def save(self) -> None:
        """Write a checkpoint to resume from, unless a weight is NaN."""
        self._read_losses()
        self._check_weights()
        if self.folder is None:
            return
        if self.trainer.ema is not None:
            averaged = self.trainer.evaluated_weights()
            self.folder.save("averaged", averaged, {"step": self.step})
        metadata = {
            "step": self.step, "seed": self.seed, "tries": self.attempt, "best": self.best,
            "figures": self.figures, "losses": self.losses,
            "first_loss": self.guard.first, "losses_above": self.guard.above,
        }  # fmt: skip
        self.folder.save("last", self.trainer.tensors(), metadata)
        self.folder.set_status("running", step=self.step, steps=self.total_steps, best=self.best)

    def _check_weights(self) -> None:
        if not all(bool(weight.isfinite().all()) for weight in self.trainer.master.parameters()):
            raise TrainingStopped(
                f"a weight became NaN or infinite by step {self.step}; {self.guard.ADVICE}"
            )

    def _resume(self, source: RunFolder) -> None:
        """Continue from a run's last checkpoint, or start anew where there is none yet."""
        if source.has("last") or source.status.step:
            tensors, metadata = source.load("last")
            with must_fit(source, "use the version of iterant that wrote it"):
                self._restore(tensors, metadata)
        else:
            self.reporter.note("this run has no checkpoint yet; it starts from the beginning")
        if self.folder is None:
            return
        for name, reason in damaged_checkpoints(self.folder).items():
            remedy = "written anew"
            if name == "best":
                remedy, self.best = "the next validation chooses a new one", {}
            self.reporter.note(f"checkpoint {name!r} is lost ({reason}): {remedy}")
        self.folder.rewind_metrics(self.step)

    def _restore(self, tensors: dict[str, torch.Tensor], metadata: dict[str, Any]) -> None:
        def number(value: float | None) -> float:
            return math.nan if value is None else value  # JSON has no NaN

        self.trainer.restore(tensors, metadata["step"])
        self.best, self.attempt = dict(metadata["best"]), metadata.get("tries", 1)
        self.figures = {name: number(value) for name, value in metadata["figures"].items()}
        self.losses = [number(value) for value in metadata["losses"]]
        self.guard.first = metadata["first_loss"]
        self.guard.above = metadata.get("losses_above", 0)

    def _log(self, kind: str, **record: Any) -> None:
        if self.folder is not None:
            epoch = round(self.step / self.steps_per_epoch, 4)
            self.folder.log({"step": self.step, "epoch": epoch, "kind": kind, **record})


@contextlib.contextmanager
def must_fit(run: RunFolder, remedy: str) -> Iterator[None]:
    """Raise RunError if the last checkpoint of a run is not what the block restores."""
    try:
        yield
    except (KeyError, RuntimeError, TypeError, ValueError) as error:
        reason = str(error).strip().splitlines()[-1].strip()  # torch begins with a heading line
        raise RunError(
            f"the last checkpoint of {run.path} does not fit this recipe ({reason}); {remedy}"
        ) from error


def damaged_checkpoints(run: RunFolder) -> dict[str, RunError]:
    """Why checkpoints that a run has or should have cannot be read; empty if all are intact."""
    names = {*run.checkpoints(), *(["best"] if run.status.best else [])}
    if run.status.step:
        has_ema = run.config["recipe"].get("ema_decay") is not None
        names |= {"last", "averaged"} if has_ema else {"last"}
    damaged = {}
    for name in sorted(names):
        try:
            run.load(name)
        except RunError as error:
            damaged[name] = error
    return damaged


@dataclass
class Validator:
    """Evaluates a network in training."""

    task: Task
    recipe: Recipe
    held_out: Batch

    @cached_property
    def larger(self) -> dict[str, Batch]:
        """Larger problems by size, without sizes that the task's data set does not have."""
        batches, recipe = {}, self.recipe
        for size in self.task.spec.watch_sizes:
            with contextlib.suppress(TaskError):
                batches[size_text(size)] = self.task.sample(
                    recipe.monitor_count, size=size, seed=recipe.data_seed + 1
                )
        return batches

    def validate(self, net: Net) -> Figures:
        """Accuracy on held-out problems after m iterations."""
        return self._after_m(net, "validation", self.held_out)

    def sample(self, net: Net) -> Figures:
        """The same on a few of these problems: fast, shown between validations, not recorded."""
        return self._after_m(net, "validation sample", self.held_out[:_SAMPLE])

    def monitor(self, net: Net) -> Figures:
        """Accuracy and change of features in longer runs and on larger problems.

        Accuracy after 2 m iterations on some held-out problems, after 2 m and 4 m on larger ones,
        and whether features converge there. Of a network of fixed depth: accuracy on larger ones.
        """
        m, figures = resolve_steps(net, self.recipe.iterations, cut=True), {}
        fixed_depth = depth_of(net) is not None
        if len(self.held_out) and not fixed_depth:
            curve = self._evaluate(net, self.held_out[:_MOST_AT_2M], 2 * m)
            figures["validation at 2m"] = curve.end
        marks = {"at m": m} if fixed_depth else {"at 2m": 2 * m, "at 4m": 4 * m}
        for name, batch in self.larger.items():
            curve = self._evaluate(net, batch, *marks.values())
            for mark, accuracy in zip(marks, curve.accuracy.tolist(), strict=True):
                figures[f"{name} {mark}"] = accuracy
            if not fixed_depth:
                figures[f"{name} change"] = curve.change
        return figures

    def _after_m(self, net: Net, name: str, batch: Batch) -> Figures:
        m = resolve_steps(net, self.recipe.iterations, cut=True)
        return {name: self._evaluate(net, batch, m).end} if len(batch) else {}

    def _evaluate(self, net: Net, batch: Batch, *marks: int) -> Curve:
        return evaluate_batch(net, self.task, batch, steps=marks[-1], at=marks)


class Clock:
    """The time limit of a run in seconds, some of them reserved for saving; None: no limit."""

    def __init__(self, limit: float | None) -> None:
        self._start, self._limit, self._longest = time.monotonic(), limit, 0.0

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self._start

    def record(self, duration: float) -> None:
        """Record the time between two readings of `over`, in which the run cannot stop."""
        self._longest = max(self._longest, duration)

    @property
    def over(self) -> bool:
        """Whether to save and stop now.

        Twice the longest uninterruptible work and a second are reserved for the end of the work and
        for saving, at most a quarter of the limit.
        """
        if self._limit is None:
            return False
        return self.elapsed >= self._limit - min(2 * self._longest + 1.0, 0.25 * self._limit)


class Signals:
    """SIGINT, SIGTERM and SIGUSR1 mean save and stop; a second SIGINT stops at once.

    Only a repeated SIGINT does: clusters and torchrun send the others several times.
    """

    def __init__(self) -> None:
        self.raised: str | None = None
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Signals:
        if threading.current_thread() is threading.main_thread():  # others may not set handlers
            for number in _SIGNALS:
                self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.raised is None:
            self.raised = signal.Signals(number).name
        elif number == signal.SIGINT:
            raise KeyboardInterrupt


@dataclass
class LossGuard:
    """Stops a run whose loss is NaN or has exploded, and reports the recent losses.

    Exploded: ``patience`` losses in a row above ``factor`` times the first one. A single high loss
    is not a divergence: with the paper's recipe for prefix sums a loss of 122 was seen between
    losses of 1e-6, and the run recovered.
    """

    ADVICE: ClassVar[str] = (
        "a run resumed from its last checkpoint would end here again: begin a new one with a lower "
        "lr, with grad_clip 1 or in precision fp32"
    )

    factor: float = 10.0
    patience: int = 50
    forgiving: bool = False
    """NaN is only a high loss, because loss scaling skipped that step"""
    least_first: float = 0.0
    """What the first loss counts as at least: that of the run from which a branch has its weights,
    whose own losses begin low"""
    first: float | None = None
    above: int = 0
    """Number of consecutive losses that were too high"""
    recent: deque[tuple[int, float]] = field(default_factory=lambda: deque(maxlen=8))

    def check(self, step: int, loss: float) -> None:
        """Check a loss; raise TrainingStopped if training has diverged."""
        self.recent.append((step, loss))
        if math.isfinite(loss) or self.forgiving:
            if self.first is None and math.isfinite(loss):
                self.first = max(loss, self.least_first)
            high = self.first is None or not loss <= self.factor * self.first
            self.above = self.above + 1 if high else 0
            if self.above < self.patience:
                return
        event = "exploded" if math.isfinite(loss) else f"became {loss}"
        history = ", ".join(f"{number}: {value:.4g}" for number, value in self.recent)
        raise TrainingStopped(f"the loss {event} at step {step} (recent: {history}); {self.ADVICE}")
