"""Speed and memory of iterant compared with a plain implementation, as ratios within one run.

>>> name, figures = bench_train(TrainOptions(task="prefix-sums", width=64))
>>> figures["ratio"]["median"]

options.py     the options of each benchmark, which are the flags of ``iterant bench``
benchmarks.py  training, evaluation, solving, several processes
plain.py       the paper's training step and evaluation, implemented straightforwardly
compare.py     timing of several implementations in turns; peak memory; new processes
"""
