"""Speed of iterant compared with a plain implementation, as ratios within one run.

benchmarks.py  training and solving, timed in turns with a plain implementation
plain.py       the paper's training step, implemented straightforwardly
"""
