"""A task with three classes: the sum of all digits so far, modulo 3. Train on 10, solve 128.

python examples/running_sum.py
"""

import numpy as np

import iterant
from iterant.tasks import PlainTask, TaskSpec


class RunningSum(PlainTask):
    """Random digits 0, 1 and 2; the class of a position is the running sum modulo 3."""

    spec = TaskSpec(name="running-sum", title="running sum modulo 3", dims=1, channels=3,
                    classes=3, train_size=10)  # fmt: skip

    def make(self, size, random):
        """One-hot digits (3, size), and the class of every position (size,)."""
        digits = random.integers(0, 3, size)
        return np.eye(3)[:, digits], digits.cumsum() % 3


if __name__ == "__main__":
    task = RunningSum()
    run = iterant.train(
        task, net="local-rule", isotropic=False, width=16, hidden=32, count=2000, validation=0.05,
        epochs=6, batch_size=20, lr=1e-2, iterations=16, pool_shortest=4, pool_noise=0.1,
        pool_all_losses=True, pool_corrupt_fraction=0.0, out="runs/running-sum",
    )  # fmt: skip
    curve = iterant.evaluate(iterant.load(run.path), task, size=128, count=100, max_steps=300)
    print(f"128 digits: {curve.peak[1]:.0%} solved after {curve.peak[0]} iterations")
