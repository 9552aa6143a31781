"""Speed and memory of iterant beside the plain way of doing the same, as ratios in one run.

>>> bench_train("prefix-sums", width=64)["ratio"]["median"]

compare.py   several ways of the same work, timed in turns; peak memory
plain.py     the paper's training step and evaluation, written as one would write them first
train.py     our training step beside it
evaluate.py  our evaluation beside it
solve.py     solve() beside the command line and beside the dense network
scale.py     several processes on one run
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
