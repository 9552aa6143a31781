"""Speed of iterant compared with a plain implementation, as ratios within one run.

options.py     the options of each benchmark, which are the flags of ``iterant bench``
benchmarks.py  training, evaluation and solving, timed in turns with a plain implementation
plain.py       the paper's training step and evaluation, implemented straightforwardly
"""
