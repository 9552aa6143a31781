"""Mazes on the page: generated, edited, and solved as by the package."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

import iterant
from iterant.experiments.shifts import PUBLISHED
from iterant.tasks.mazes.grid import from_image
from web.browsing import Visit

pytestmark = pytest.mark.system

MAZES = "mazes"


def solved_as_by_package(visit: Visit) -> None:
    """Check that the answer is right and equal to the package's at the same iteration."""
    task = iterant.task(MAZES)
    batch = task.encode(visit.panel(MAZES, "panel.maze.text()"))
    answer = torch.tensor(visit.panel(MAZES, "[...thinker.prediction]"))
    assert task.solved(answer.view(batch.targets.shape), batch).all()
    visit.same_as_package(MAZES)


def centre(visit: Visit, square: int) -> tuple[float, float]:
    """The position of a square on the screen."""
    box = visit.page.locator("#panel-mazes canvas").evaluate(
        "canvas => { const box = canvas.getBoundingClientRect(), rim = canvas.clientLeft;"
        " return [box.x + rim, box.y + rim, canvas.clientWidth]; }"
    )
    width = visit.panel(MAZES, "panel.maze.width")
    side = box[2] / width
    return box[0] + (square % width + 0.5) * side, box[1] + (square // width + 0.5) * side


@pytest.mark.parametrize("button", ["[data-bench=noise]", "[data-bench=wipe]", "[data-is=swap]"])
def test_it_recovers_from_interventions(visit: Visit, button: str) -> None:
    visit.show(MAZES)
    visit.panel(MAZES, "await panel.generate(8)")
    visit.settle(MAZES)
    solved_as_by_package(visit)
    assert visit.panel(MAZES, "[panel.maze.height, panel.maze.width]") == [21, 21]
    assert "Settled after" in visit.words
    visit.page.click(f"{button} >> visible=true")
    visit.wait("iterant.panels.mazes.thinker.disturbed !== null")
    visit.settle(MAZES)
    assert "It recovered" in visit.words
    assert "Its answer is right" in visit.words
    solved_as_by_package(visit)


def test_the_end_is_dragged_while_it_iterates(visit: Visit) -> None:
    visit.show(MAZES)
    visit.panel(MAZES, "await panel.generate(9)")
    before = visit.panel(MAZES, "panel.maze.end")
    way = visit.panel(MAZES, "panel.maze.way()")
    mouse = visit.page.mouse
    mouse.move(*centre(visit, before))
    mouse.down()
    for square in way[-2:-8:-1]:
        mouse.move(*centre(visit, square))
    mouse.up()
    assert visit.panel(MAZES, "panel.maze.end") == way[-7]
    visit.settle(MAZES)
    assert "after the end was moved" in visit.words
    solved_as_by_package(visit)


def test_a_wall_that_closes_the_path_is_reported(visit: Visit) -> None:
    visit.show(MAZES)
    visit.panel(MAZES, "await panel.generate(10)")
    visit.settle(MAZES)
    way = visit.panel(MAZES, "panel.maze.way()")
    middle = way[len(way) // 2]
    visit.page.mouse.click(*centre(visit, middle))
    visit.wait("iterant.panels.mazes.thinker.disturbed === 'a wall was drawn'")
    visit.settle(MAZES)
    assert "there is no path" in visit.words
    assert "right" not in visit.words
    visit.page.mouse.click(*centre(visit, middle))
    visit.wait("iterant.panels.mazes.thinker.disturbed === 'a wall was taken away'")
    visit.settle(MAZES)
    assert "Its answer is right" in visit.words


LOOP = """
S.....#
.#.#..#
.###.##
......#
.####.#
.#....#
.#.##.E
"""


ROOM = """
........#
.S......#
........#
....##..#
....##..#
........#
.......E#
........#
#########
"""


def begin(visit: Visit, text: str) -> None:
    visit.panel(
        MAZES, f"await panel.begin((await import('./js/mazes/maze.js')).Maze.read({text!r}))"
    )


@pytest.mark.parametrize("text", [LOOP, ROOM])
def test_loops_rooms_and_edits(visit: Visit, text: str) -> None:
    visit.show(MAZES)
    begin(visit, text)
    visit.settle(MAZES)
    assert not visit.page.is_visible("[data-is=notice]")
    solved_as_by_package(visit)
    # A wall across the path, then away again: the way round is found, and the way back.
    square = visit.panel(MAZES, "panel.maze.way()[3]")
    task = iterant.task(MAZES)
    for words in ("a wall was drawn", "a wall was taken away"):
        visit.page.mouse.click(*centre(visit, square))
        visit.wait(f"iterant.panels.mazes.thinker.disturbed === '{words}'")
        visit.settle(MAZES)
        assert "It recovered" in visit.words
        batch = task.encode(visit.panel(MAZES, "panel.maze.text()"))
        answer = torch.tensor(visit.panel(MAZES, "[...thinker.prediction]"))
        assert task.solved(answer.view(batch.targets.shape), batch).all()


def test_generated_mazes_with_loops_are_solved(visit: Visit) -> None:
    visit.show(MAZES)
    visit.page.check("[data-is=loops]")
    visit.panel(MAZES, "await panel.generate(3)")
    assert visit.panel(MAZES, "panel.maze.loops")
    visit.settle(MAZES)
    assert "Its answer is right: a shortest path" in visit.words
    solved_as_by_package(visit)


def test_any_shortest_path_is_right(visit: Visit) -> None:
    visit.show(MAZES)
    verdicts = visit.page.evaluate(
        """async () => {
          const { Maze } = await import("./js/mazes/maze.js");
          const { verdict } = await import("./js/mazes/judge.js");
          const maze = Maze.read("S..\\n...\\n..E");
          return [[0, 3, 6, 7, 8], [0, 1, 4, 7, 8], [0, 1, 2, 4, 5, 7, 8]].map((path) =>
            verdict(maze, maze.squares.map((_, square) => Number(path.includes(square)))));
        }"""
    )
    assert [each["right"] for each in verdicts] == [True, True, False]
    assert "any shortest path counts" not in verdicts[0]["words"]
    assert "any shortest path counts" in verdicts[1]["words"]


def test_published_numbers_have_sources(visit: Visit) -> None:
    visit.show(MAZES)
    visit.page.click("[data-is=published] summary")
    table = visit.page.inner_text("[data-is=published] table")
    for network, parameters, exact, _, _, source in PUBLISHED["30 maze-hard-test"]:
        assert f"{network}\t{parameters}\t{exact}" in table
        assert visit.page.is_visible(f"a[href='https://arxiv.org/abs/{source[6:]}']")


def test_a_maze_unlike_the_training_mazes_is_announced(open_page: Callable[..., Visit]) -> None:
    """Before the network starts: loops, rooms, and a start that is no dead end."""
    visit = open_page(reduced_motion="reduce")
    visit.show(MAZES)
    visit.choose(MAZES, "mazes-paper")

    def notice(text: str) -> str:
        begin(visit, text)
        assert visit.panel(MAZES, "[thinker.step, thinker.phase]") == [0, "paused"]
        return visit.page.inner_text("[data-is=notice]") if visible() else ""

    def visible() -> bool:
        return visit.page.is_visible("[data-is=notice]")

    tree = "S.#\n#..\nE.#"
    assert notice(tree) == ""
    corridor = "..#\nS#.\n..E"
    assert notice(corridor).startswith("The start is not a dead end")
    assert notice(LOOP).startswith("This maze has a loop")
    assert "not a dead end" in notice(LOOP)
    assert notice("S#.\n##.\nE..").startswith("Walls cut the end off")
    for text in (LOOP, ROOM):
        notice(text)
        visit.choose(MAZES, "mazes")  # it was trained on such mazes
        assert not visible()
        visit.choose(MAZES, "mazes-messages")  # trained on starts anywhere, without loops
        assert visible()
    assert notice(corridor) == ""
    assert "not a dead end" not in notice(LOOP)
    visit.page.click("[data-bench=play]")
    visit.settle(MAZES)
    assert "Its answer is not right" in visit.words
    assert visible()


def test_the_page_describes_the_network(visit: Visit) -> None:
    visit.show(MAZES)
    about = visit.page.inner_text("#what")
    assert about == (
        "A small recurrent network with 124 parameters, trained on grids of 12 × 12 "
        "(the dashed square), solves mazes of any size by iterating longer."
    )
    assert "Counting and following are built in" in visit.page.inner_text("header")
    visit.choose(MAZES, "mazes-messages")
    about = visit.page.inner_text("#what")
    assert "622 parameters, trained on mazes of 9 × 9 (the dashed square), solves larger" in about
    assert "Counting and following are built in" not in visit.page.inner_text("header")


def test_the_keyboard(visit: Visit) -> None:
    visit.show(MAZES)
    visit.panel(MAZES, "await panel.generate(11)")
    visit.settle(MAZES)
    visit.page.locator("#panel-mazes canvas").focus()
    start, way = visit.panel(MAZES, "[panel.maze.start, panel.maze.way()]")
    keys = {1: "ArrowRight", -1: "ArrowLeft", 21: "ArrowDown", -21: "ArrowUp"}
    visit.page.keyboard.press(keys[way[1] - start])
    row, column = divmod(way[1], 21)
    assert visit.words == f"Row {row + 1}, column {column + 1}: free."
    visit.page.keyboard.press("s")
    visit.wait("iterant.panels.mazes.thinker.disturbed === 'the start was moved'")
    assert visit.panel(MAZES, "panel.maze.start") == way[1]
    visit.settle(MAZES)
    visit.page.keyboard.press(keys[way[2] - way[1]])
    visit.page.keyboard.press("Space")
    assert visit.panel(MAZES, "panel.maze.squares[panel.board.cursor]") == 0
    step = visit.panel(MAZES, "thinker.step")
    visit.page.keyboard.press("p")  # thinking again: pause, then one step at a time
    visit.wait("iterant.panels.mazes.thinker.phase !== 'thinking'")
    visit.page.keyboard.press("e")
    assert visit.words.startswith("There is a wall; the end needs a free square.")
    visit.page.keyboard.press(keys[way[1] - way[2]])
    visit.page.keyboard.press("e")
    assert visit.words == "The start and the end need two different squares."
    visit.page.keyboard.press(".")
    visit.wait(f"iterant.panels.mazes.thinker.step > {step}")
    visit.page.keyboard.press("n")
    visit.wait("iterant.panels.mazes.thinker.disturbed.startsWith('noise')")
    assert "Noise was added" in visit.words
    slider = visit.page.locator("#panel-mazes [data-is=size]")
    slider.focus()
    visit.page.keyboard.press("ArrowRight")
    visit.wait("iterant.panels.mazes.maze.width === 23")


def test_generated_mazes_equal_those_of_the_package(visit: Visit) -> None:
    """One path between any two cells; the image and the shortest path equal the package's.

    With walls taken away, the page breaks ties between shortest paths as the package does.
    """
    visit.show(MAZES)
    for size, opened in ((3, 0), (5, 0), (21, 0), (101, 0), (21, 1), (21, 5), (41, 7), (9, 10)):
        maze = visit.page.evaluate(GENERATED, [size, opened])
        batch = iterant.task(MAZES).encode(maze["text"])
        assert maze["same"]
        assert np.array_equal(np.array(maze["image"]), batch.inputs.numpy().ravel())
        open_squares = from_image(batch.inputs)[0] > 0
        assert open_squares.shape == (size, size)
        assert open_squares[::2, ::2].all()
        doors = (open_squares[1:] & open_squares[:-1]).sum()
        doors += (open_squares[:, 1:] & open_squares[:, :-1]).sum()
        # A tree has one edge fewer than nodes.
        assert opened or doors == open_squares.sum() - 1
        on_way = np.zeros(size * size, dtype=np.int64)
        on_way[maze["way"]] = 1
        assert np.array_equal(on_way, batch.targets[0, 3:-3:2, 3:-3:2].numpy().ravel())


GENERATED = """async ([size, opened]) => {
  const { Maze } = await import("./js/mazes/maze.js");
  const { seeded } = await import("./js/random.js");
  const [maze, again] = [0, 1].map(() => {
    const random = seeded(size);
    const carved = Maze.carved(size, random);
    carved.squares.forEach((_, square) => random.below(10) < opened && carved.set(square, 1));
    return carved;
  });
  const read = Maze.read(maze.text());
  return { text: maze.text(), image: [...maze.image().data], way: maze.way(),
           same: again.text() === maze.text() && read.text() === maze.text() };
}"""
"""A maze from a seed with tenths of its walls opened, generated twice and read from its text."""
