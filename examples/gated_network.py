"""A network of your own, through training, evaluation and analysis.

python examples/gated_network.py
iterant train prefix-sums --net gated_network:Gated --out runs/gated    # from this folder
"""

import torch

import iterant


class Gated(torch.nn.Module):
    """A convolution that says what to write into the features, and one that says where."""

    def __init__(self, dims, channels, classes=2, width=32):
        super().__init__()
        conv, self.width = {1: torch.nn.Conv1d, 2: torch.nn.Conv2d}[dims], width
        self.look = conv(width + channels, 2 * width, 3, padding=1)
        self.head = conv(width, classes, 1)

    def read(self, inputs):
        return inputs  # once a problem: what every step recalls of it

    def start(self, inputs):
        return inputs.new_zeros(len(inputs), self.width, *inputs.shape[2:])

    def step(self, features, memory, index):
        what, where = self.look(torch.cat([features, memory], dim=1)).chunk(2, dim=1)
        return torch.lerp(features, what.tanh(), where.sigmoid())

    def answer(self, features):
        return self.head(features)  # logits, computed only when needed


if __name__ == "__main__":
    run = iterant.train("prefix-sums", net=Gated, out="runs/gated")
    curve = iterant.evaluate(iterant.load(run.path), iterant.task("prefix-sums"), size=64)
    print(f"64 bits: {curve.peak[1]:.0%} solved after {curve.peak[0]} iterations")
    print(iterant.analyze([run], what=["noise", "zeros"]))
