"""A network of your own, through training, evaluation and analysis.

python examples/gated_network.py
iterant train prefix-sums --net gated_network:Gated --out runs/gated    # from this folder
"""

import torch

import iterant


class Gated(torch.nn.Module):
    """Gated update: one half of the channels is the new value, the other half the gate."""

    def __init__(self, dims, channels, classes=2, width=32):
        super().__init__()
        conv, self.width = {1: torch.nn.Conv1d, 2: torch.nn.Conv2d}[dims], width
        self.look = conv(width + channels, 2 * width, 3, padding=1)
        self.head = conv(width, classes, 1)

    def read(self, inputs):
        return inputs  # (N, channels, *space), once per problem: the recall term of every step

    def start(self, inputs):
        return inputs.new_zeros(len(inputs), self.width, *inputs.shape[2:])

    def step(self, features, memory, index):
        value, gate = self.look(torch.cat([features, memory], dim=1)).chunk(2, dim=1)
        return torch.lerp(features, value.tanh(), gate.sigmoid())  # (N, width, *space)

    def answer(self, features):
        return self.head(features)  # logits (N, classes, *space), computed only when needed


if __name__ == "__main__":
    run = iterant.train("prefix-sums", net=Gated, out="runs/gated")
    net, task = iterant.load(run.path), iterant.task("prefix-sums")
    curve = iterant.evaluate(net, task, size=64, count=100, max_steps=300)
    print(f"64 bits: {curve.peak[1]:.0%} solved after {curve.peak[0]} iterations")
    for row in iterant.analyze([run], what=["noise", "zeros"]).table():
        print(*row, sep="  ")  # iterations to solution (highest accuracy)
