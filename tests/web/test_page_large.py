"""Problems that take long: the page stays quick, tells how far it is, and can be stopped."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import iterant
from web.browsing import Visit
from web.test_page_mazes import solved_as_by_package

pytestmark = pytest.mark.system

MAZES = "mazes"
LARGE = 49


def shown(visit: Visit, size: int) -> None:
    """Let the network that ships think about a maze of a size."""
    visit.show(MAZES)
    visit.choose(MAZES, "mazes-2")
    visit.set_range("#panel-mazes [data-is=size]", size)
    visit.wait(f"iterant.panels.mazes.thinker.inputs.dims[2] === {2 * size + 6}")


def place(visit: Visit) -> str:
    """Where it is computed."""
    return str(visit.panel(MAZES, "thinker.network.runtime.place"))


def test_a_large_maze_is_thought_about_in_a_worker(visit: Visit) -> None:
    """Stopped, disturbed and let go on there, it answers as the package does."""
    shown(visit, LARGE)
    assert place(visit) == "worker"
    assert visit.page.workers
    visit.wait("iterant.panels.mazes.thinker.step > 3")
    visit.page.click("[data-bench=play]")
    assert visit.panel(MAZES, "thinker.phase") == "paused"
    visit.panel(MAZES, "await thinker.wipe()")
    stopped = visit.panel(MAZES, "thinker.step")
    visit.panel(MAZES, "await thinker.once()")
    assert visit.panel(MAZES, "thinker.step") == stopped + 1
    assert visit.panel(MAZES, "Math.max(...thinker.features.data)") > 0
    visit.page.click("[data-bench=restart]")
    visit.page.click("[data-bench=play]")
    visit.settle(MAZES)
    solved_as_by_package(visit, iterant.load(MAZES))
    visit.set_range("#panel-mazes [data-is=size]", 9)
    visit.wait("iterant.panels.mazes.thinker.inputs.dims[2] === 24")
    assert place(visit) == "page"
    visit.settle(MAZES)
    solved_as_by_package(visit, iterant.load(MAZES))


def test_without_workers_the_page_computes_itself(open_page: Callable[..., Visit]) -> None:
    visit = open_page(script="delete globalThis.Worker")
    shown(visit, LARGE)
    assert place(visit) == "page"
    visit.wait("iterant.panels.mazes.thinker.step > 3")
    visit.show("chess")
    assert "WebAssembly, one thread" in visit.computed
    visit.wait("iterant.panels.chess.thinker.step > 0")
    assert visit.troubles == []


def test_iterations_that_take_long_are_said_to(visit: Visit) -> None:
    visit.show(MAZES)
    visit.panel(
        MAZES,
        "(thinker.real = thinker.network.advance.bind(thinker.network),"
        " thinker.network.advance = async (features, memory) =>"
        " { await new Promise((then) => setTimeout(then, 1200));"
        " return thinker.real(features, memory, 1, 0); },"
        " panel.generate())",
    )
    visit.wait("document.getElementById('words').textContent.includes('An iteration takes')")
    assert "a smaller problem or a smaller network is quicker" in visit.words
