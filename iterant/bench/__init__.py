"""Ours beside the plain way, as ratios in one run.

>>> bench_train("prefix-sums", width=64)["ratio"]["median"]

contest.py   two ways of the same work, in turns
even.py      draws that stand for all others
memory.py    how much memory a step takes
plain.py     the training step as one would write it first
train.py     our training step beside it
"""

from iterant.bench.train import bench_train, result_name

__all__ = ["bench_train", "result_name"]
