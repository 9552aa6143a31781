"""Whether a network is one for the problems of a task, said in one line before any thinking.

>>> check_fits(iterant.load("mazes"), iterant.task("prefix-sums"))
Traceback (most recent call last):
NetError: this network is for images of 3 channels, and prefix-sums has strings of 1 channel; …
"""

from __future__ import annotations

from iterant.errors import NetError, UsageError
from iterant.nets.fitting import Needs, check_net, needs_of
from iterant.nets.protocol import Net
from iterant.tasks.protocol import Task


def check_fits(net: Net, task: Task) -> None:
    """Raise NetError where a network reads or answers something else than the task's problems."""
    check_net(net)
    if isinstance(task, str | type):
        word = task if isinstance(task, str) else task.__name__
        made = f"iterant.task({word!r})" if isinstance(task, str) else f"{word}()"
        raise UsageError(f"wanted a task, got {word!r} in its place; give {made}")
    spec, needs = task.spec, needs_of(net)
    offered = Needs(spec.dims, spec.channels, spec.classes)
    if needs is not None and needs != offered:
        raise NetError(
            f"this network is for {needs.beside(offered)}, and {spec.name} has "
            f"{offered.beside(needs)}; take a network that was trained on {spec.name}"
        )
