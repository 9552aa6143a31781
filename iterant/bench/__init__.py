"""Speed and memory of iterant beside the plain way of doing the same, as ratios in one run.

>>> name, figures = bench_train(TrainOptions(task="prefix-sums", width=64))
>>> figures["ratio"]["median"]

options.py     the options of each benchmark, which are the flags of ``iterant bench``
benchmarks.py  training, evaluation, solving, several processes
plain.py       the paper's training step and evaluation, written as one would write them first
compare.py     several ways of the same work, timed in turns; peak memory; new processes
"""
