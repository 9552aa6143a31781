"""A task of your own: which cells does water reach? Train on 9×9 for a minute, solve 33×33.

python examples/flood_fill.py
"""

import numpy as np

import iterant
from iterant.tasks import PlainTask, TaskSpec


class FloodFill(PlainTask):
    """Random walls and one spring; a cell is wet if open cells connect it with the spring."""

    spec = TaskSpec(name="flood-fill", title="flood fill", dims=2, channels=2, train_size=9,
                    readout="argmax-open")  # fmt: skip

    def make(self, size, random):
        """Open cells and the spring (2, size, size), and the wet cells (size, size)."""
        ground = random.random((size, size)) < 0.58
        spring = np.zeros((size, size), dtype=bool)
        spring[tuple(random.choice(np.argwhere(ground)))] = True
        wet, before = spring, None
        while not np.array_equal(wet, before):
            before, padded = wet, np.pad(wet, 1)
            near = padded[2:, 1:-1] | padded[:-2, 1:-1] | padded[1:-1, 2:] | padded[1:-1, :-2]
            wet = ground & (wet | near)
        return np.stack([ground, spring]), wet


if __name__ == "__main__":
    task = FloodFill()
    run = iterant.train(
        task, net="local-rule", masked=True, width=8, hidden=32, count=4000, validation=0.05,
        epochs=8, batch_size=24, lr=5e-3, iterations=24, pool_shortest=4, pool_longest=10,
        pool_all_losses=True, pool_corrupt_fraction=0.0, out="runs/flood-fill",
    )  # fmt: skip
    curve = iterant.evaluate(iterant.load(run.path), task, size=33, count=100, max_steps=300)
    print(f"33×33: {curve.peak[1]:.0%} solved after {curve.peak[0]} iterations")
