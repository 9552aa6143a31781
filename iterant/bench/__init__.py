"""Speed and memory of iterant beside the plain way of doing the same, as ratios in one run.

>>> name, figures = bench_train("prefix-sums", width=64)
>>> figures["ratio"]["median"]

compare.py     several ways of the same work, timed in turns; peak memory; processes for both
plain.py       the paper's training step and evaluation, written as one would write them first
benchmarks.py  ours beside it: training, evaluation, solving, several processes
"""

from iterant.bench.benchmarks import bench_evaluate, bench_scale, bench_solve, bench_train

__all__ = ["bench_evaluate", "bench_scale", "bench_solve", "bench_train"]
