"""A task of your own: which squares does water reach? Train on 9×9, solve 33×33.

python examples/flood_fill.py
iterant train flood_fill:FloodFill --net local-rule --masked    # from this folder
"""

import numpy as np

import iterant
from iterant import draw
from iterant.tasks import PlainTask, TaskSpec


class FloodFill(PlainTask):
    """Walls at random and one spring; a square is wet if it is connected with the spring."""

    spec = TaskSpec(name="flood-fill", title="flood fill", dims=2, channels=2, train_size=9)

    def make(self, size, random):
        """Channels: open squares, the spring. The water spreads until nothing changes."""
        ground = random.random((size, size)) < 0.58
        spring = np.zeros((size, size), dtype=bool)
        spring[tuple(random.choice(np.argwhere(ground)))] = True
        wet, before = spring, None
        while not np.array_equal(wet, before):
            before, edged = wet, np.pad(wet, 1)
            near = edged[2:, 1:-1] | edged[:-2, 1:-1] | edged[1:-1, 2:] | edged[1:-1, :-2]
            wet = ground & (wet | near)
        return np.stack([ground, spring]), wet


if __name__ == "__main__":
    task = FloodFill()
    run = iterant.train(task, net="local-rule", masked=True, width=16, out="runs/flood-fill")
    curve = iterant.evaluate(iterant.load(run.path), task, size=33, count=100, max_steps=300)
    print(f"33×33: {curve.peak[1]:.0%} solved after {curve.peak[0]} iterations")
    batch = task.sample(1, size=33)
    answer = iterant.solve(iterant.load(run.path), batch.inputs)
    draw.save_png(task.describe(batch, prediction=answer.prediction), "runs/flood-fill.png")
