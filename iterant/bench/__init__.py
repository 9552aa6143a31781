"""Ours beside the plain way, as ratios in one run.

>>> bench_train("prefix-sums", width=64)["ratio"]["median"]

contest.py   two ways of the same work, in turns
evaluate.py  our evaluation beside the plain one
even.py      draws that stand for all others
memory.py    how much memory a piece of work takes
plain.py     the training step as one would write it first
scale.py     several processes on one run
solve.py     solve beside the command line and beside the dense network
train.py     our training step beside it
"""

from iterant.bench.evaluate import bench_evaluate, evaluation_name
from iterant.bench.solve import bench_solve, solving_name
from iterant.bench.train import bench_train, result_name

__all__ = [
    "bench_evaluate",
    "bench_solve",
    "bench_train",
    "evaluation_name",
    "result_name",
    "solving_name",
]
