"""The options of each benchmark: fields in Python, flags on the command line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from cyclopts import Parameter

from iterant import bounds

Task = Annotated[str, Parameter(help="prefix-sums, mazes, chess, or module:Class of your own")]
Recipe = Annotated[str, Parameter(help="the training recipe")]
Variant = Annotated[str | None, Parameter(help="dt, dt-recall, ff or ff-recall")]
Width = Annotated[
    int | None,
    Parameter(help="number of features [default: the recipe's]", validator=bounds.WIDTH),
]
BatchSize = Annotated[
    int | None,
    Parameter(help="problems per step [default: the recipe's]", validator=bounds.COUNT),
]
ProblemSize = Annotated[str | None, Parameter(help="of the problems [default: as in training]")]
Count = Annotated[int, Parameter(help="number of problems", validator=bounds.COUNT)]
Rounds = Annotated[
    int, Parameter(help="repetitions; the implementations take turns", validator=bounds.ROUNDS)
]
Device = Annotated[str, Parameter(help="auto, cpu, cuda or cuda:0")]
Seed = Annotated[int, Parameter(help="of weights and problems", validator=bounds.SEED)]
Memory = Annotated[bool, Parameter(help="on a GPU, measure the peak memory too")]


@dataclass(frozen=True)
class TrainOptions:
    """Of `iterant.bench.benchmarks.bench_train`."""

    task: Task = "prefix-sums"
    recipe: Recipe = "paper"
    net: Variant = None
    width: Width = None
    batch: BatchSize = None
    steps: Annotated[int, Parameter(help="optimizer steps per round", validator=bounds.STEPS)] = 20
    rounds: Rounds = 5
    device: Device = "auto"
    precision: Annotated[
        str | None, Parameter(help="of our step: fp32 or bf16 [default: bf16 on a GPU]")
    ] = None
    seed: Seed = 0
    memory: Memory = True


@dataclass(frozen=True)
class EvaluateOptions:
    """Of `iterant.bench.benchmarks.bench_evaluate`."""

    task: Task = "prefix-sums"
    run: Annotated[
        str | None, Parameter(help="a trained network; adds halting [default: random weights]")
    ] = None
    net: Variant = "dt-recall"
    width: Width = None
    size: ProblemSize = None
    count: Count = 100
    steps: Annotated[int, Parameter(help="iterations", validator=bounds.STEPS)] = 100
    rounds: Rounds = 5
    device: Device = "auto"
    seed: Seed = 0
    memory: Memory = True


@dataclass(frozen=True)
class SolveOptions:
    """Of `iterant.bench.benchmarks.bench_solve`."""

    task: Task = "mazes"
    run: Annotated[str | None, Parameter(help="a network [default: the shipped one]")] = None
    size: ProblemSize = None
    count: Count = 10
    rounds: Rounds = 3
    device: Device = "auto"
    seed: Seed = 0
    trust_code: Annotated[
        bool, Parameter(help="import the user-defined network that the run names", negative="")
    ] = False
