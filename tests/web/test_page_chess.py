"""Chess on the page: positions, legal moves and answers equal those of the package."""

from __future__ import annotations

from collections.abc import Callable

import chess
import pytest
import torch

import iterant
from iterant.errors import TaskError
from iterant.tasks.chess.position import as_move, move_words, parse_fen
from iterant.tasks.chess.task import Chess
from web.browsing import Visit

pytestmark = pytest.mark.system

CHESS = "chess"
WHITE = "6k1/5ppp/8/8/8/8/8/K2R4 w - - 0 1"
BLACK = "r1bqkb1r/pp3ppp/2n5/3p4/8/5N2/PP3PPP/R2QKB1R b KQkq -"


def paste(visit: Visit, fen: str) -> None:
    """Paste a position; if it is valid, wait until it is shown."""
    visit.panel(CHESS, "panel.before = thinker.inputs")
    visit.page.fill("[data-is=fen]", fen)
    visit.page.press("[data-is=fen]", "Enter")
    if visit.page.get_attribute("[data-is=fen]", "aria-invalid") is None:
        visit.wait("iterant.panels.chess.thinker.inputs !== iterant.panels.chess.before")


@pytest.mark.parametrize("fen", [WHITE, BLACK], ids=["white", "black"])
def test_a_pasted_position_is_answered_as_by_the_package(visit: Visit, fen: str) -> None:
    visit.show(CHESS)
    paste(visit, fen)
    visit.settle(CHESS)
    batch = iterant.task(CHESS).encode(fen)
    planes = torch.tensor(visit.panel(CHESS, "[...thinker.inputs.data]"))
    assert torch.equal(planes.view(batch.inputs.shape), batch.inputs)
    steps = visit.panel(CHESS, "thinker.step")
    best = visit.panel(CHESS, "panel.best")
    looks = {at: visit.panel(CHESS, f"panel.growth.of({at})") for at in best}
    assert looks[best[0]][0]["step"] == 0
    assert looks[best[0]][-1]["step"] == steps
    with torch.no_grad():
        net = iterant.load(CHESS)
        likely = {
            thought.step: thought.logits.softmax(dim=1)[0, 1].flatten()
            for thought in iterant.think(net, batch.inputs, steps=steps)
        }
        own = iterant.last(iterant.think(net, batch.inputs, steps=steps)).prediction
    answer = torch.tensor(visit.panel(CHESS, "[...thinker.prediction]"))
    assert torch.equal(answer.view(1, 8, 8), own)
    # The curves are the package's scores at every iteration that the page decoded.
    for at, curve in looks.items():
        for look in curve[1:]:
            assert look["value"] == pytest.approx(float(likely[look["step"]][at]), abs=1e-3)
    text = Chess().answer_text(batch, 0, own)
    # Move and message are drawn a little after the network settles.
    script = "document.querySelector('{}').innerText.trim()"
    visit.wait(f"{script.format('#words')}.includes({script.format('[data-is=move]')})")
    words = visit.page.inner_text("[data-is=move]")
    assert ("no move" in text) == ("no move" in words)
    assert all(name in words for name in (text[:2], text[2:4]) if "no move" not in text)
    assert visit.page.locator(".score").count() == 2


POSITIONS = (
    WHITE,
    BLACK,
    chess.STARTING_FEN,
    "r3k2r/pppq1ppp/2n2n2/8/1b1PP3/2N2N2/PPP2PPP/R3K2R w KQkq - 0 1",  # castling, a pin
    "r3k2r/8/8/8/8/8/6q1/R3K2R w KQkq - 0 1",  # castling through an attack
    "8/8/8/K2pP2q/8/8/8/7k w - d6 0 1",  # en passant that would open the king
    "8/8/8/K2pP3/8/8/8/7k w - d6 0 1",  # en passant that does not
    "8/P6k/8/8/8/8/7p/K7 b - - 0 1",  # a pawn about to reach the end
    "4k3/8/8/8/7b/8/3P4/4K3 w - - 0 1",
)


def test_legal_moves(visit: Visit) -> None:
    visit.show(CHESS)
    for fen in POSITIONS:
        moves = {tuple(move) for move in visit.page.evaluate(LEGAL, fen)}
        # The page counts from a8, python-chess from a1.
        expected = {
            (move.from_square ^ 56, move.to_square ^ 56) for move in chess.Board(fen).legal_moves
        }
        assert moves == expected, fen


LEGAL = """async (fen) => {
  const { Position } = await import("./js/chess/position.js");
  const { legal } = await import("./js/chess/rules.js");
  const position = Position.read(fen);
  const places = [...Array(64).keys()];
  const all = places.flatMap((from) => places.map((to) => [from, to]));
  return all.filter(([from, to]) => legal(position, from, to));
}"""
"""Every legal move of a position on the page, as indices of its board."""


MOVES = (
    (WHITE, "d1d8", "rook d1 to d8"),
    ("3rk3/8/8/8/8/8/8/K2R4 w - -", "d1d8", "rook d1 takes rook d8"),
    ("r3k2r/8/8/8/8/8/8/4K3 b kq -", "e8g8", "king e8 castles to g8"),
    ("8/P6k/8/8/8/8/7p/K7 b - -", "h2h1", "pawn h2 to h1 and is promoted"),
    ("1r5k/P7/8/8/8/8/8/K7 w - -", "a7b8", "pawn a7 takes rook b8 and is promoted"),
    ("4k3/8/8/3pP3/8/8/8/4K3 w - d6", "e5d6", "pawn e5 takes pawn d5 en passant"),
    ("4k3/8/8/8/3Pp3/8/8/4K3 b - d3", "e4d3", "pawn e4 takes pawn d4 en passant"),
    ("4k3/8/8/3pP3/8/8/8/4K3 w - d6", "e5e6", "pawn e5 to e6"),
    (WHITE, "g8f7", None),
    (WHITE, "d1a1", None),
)


def test_moves_in_words(visit: Visit) -> None:
    visit.show(CHESS)
    for fen, move, words in MOVES:
        assert visit.page.evaluate(IN_WORDS, [fen, move]) == {"words": words, "legal": bool(words)}
        position = parse_fen(fen)
        two = [chess.parse_square(move[:2]), chess.parse_square(move[2:])]
        own = as_move(position, two)
        assert words == (own and move_words(position, own))


IN_WORDS = """async ([fen, move]) => {
  const { Position, placeOf } = await import("./js/chess/position.js");
  const position = Position.read(fen);
  const names = [move.slice(2), move.slice(0, 2)];
  return position.move(names.map((name) => position.place(placeOf(name))));
}"""


BAD = (
    ("", "Paste a position"),
    ("hello", "8 ranks"),
    ("8/8/8 w", "8 ranks"),
    ("9/8/8/8/8/8/8/8 w", "Rank 8"),
    ("7/8/8/8/8/8/8/8 w", "7 squares"),
    ("8/8/8/8/8/8/8/8 w", "one king"),
    ("6k1/8/8/8/8/8/8/K6K w", "White has 2"),
    ("6k1/8/8/8/8/8/8/K7", "side to move"),
    ("6k1/8/8/8/8/8/8/K7 white", "side to move"),
    ("6k1/8/8/8/8/8/8/K6P w", "No pawn"),
    ("6k1/8/8/8/8/8/8/K5R1 w - -", "Black is in check"),
    ("6k1/8/8/8/8/8/PP6/K3r3 w - -", "checkmated"),
    ("k7/8/1Q6/8/8/8/8/K7 b - -", "stalemated"),
    ("6k1/8/8/8/8/8/8/K7 w KQ -", "Castling"),
    ("6k1/8/8/8/8/8/8/K7 w X -", "Castling"),
    ("6k1/8/8/8/8/8/8/K7 w - e4", "rank 6"),
    ("6k1/8/8/8/8/8/8/K7 w - - 0 1 2", "6 fields"),
)


def test_invalid_positions(visit: Visit) -> None:
    visit.show(CHESS)
    visit.settle(CHESS)  # its message would replace the error
    before = visit.panel(CHESS, "panel.position.board.join()")
    for fen, message in BAD:
        paste(visit, fen)
        assert message in visit.words, fen
        assert visit.panel(CHESS, "panel.position.board.join()") == before
        with pytest.raises(TaskError):
            iterant.task(CHESS).encode(fen)
    assert visit.page.get_attribute("[data-is=fen]", "aria-invalid") == "true"
    visit.set_range("[data-bench=speed]", 0)  # or it may settle before its message is read
    paste(visit, WHITE)
    assert visit.page.get_attribute("[data-is=fen]", "aria-invalid") is None
    assert "White to move" in visit.words


def test_the_solution_is_shown_on_demand(visit: Visit) -> None:
    visit.show(CHESS)
    visit.settle(CHESS)
    visit.panel(CHESS, "(thinker.history.before = true)")
    visit.page.select_option("[data-is=choice]", "1")
    visit.wait("!iterant.panels.chess.thinker.history.before")
    assert visit.panel(CHESS, "panel.move") == "h5h7"
    visit.settle(CHESS)
    visit.page.check("#panel-chess [data-is=truth]")
    assert "The puzzle's move is queen h5 takes pawn h7" in visit.words
    assert visit.page.locator(".square.wanted").count() == 2
    paste(visit, WHITE)
    visit.wait("iterant.panels.chess.move === null")
    assert visit.page.locator(".square.wanted").count() == 0


def square_at(visit: Visit, name: str) -> tuple[float, float]:
    """The centre of a square on the screen."""
    shown = visit.page.evaluate(
        "async (name) => { const { placeOf } = await import('./js/chess/position.js');"
        " const place = placeOf(name);"
        " return iterant.panels.chess.position.black ? 63 - place : place; }",
        name,
    )
    box = visit.page.locator(".square").nth(shown).bounding_box()
    assert box is not None
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def move_piece(visit: Visit, how: str, origin: str, target: str) -> None:
    if how == "dragged":
        visit.page.mouse.move(*square_at(visit, origin))
        visit.page.mouse.down()
        visit.page.mouse.move(*square_at(visit, target), steps=4)
        visit.page.mouse.up()
    elif how == "clicked":
        visit.page.mouse.click(*square_at(visit, origin))
        visit.page.mouse.click(*square_at(visit, target))
    else:
        for name in (origin, target):
            visit.page.touchscreen.tap(*square_at(visit, name))


@pytest.mark.parametrize("how", ["dragged", "clicked", "tapped"])
@pytest.mark.parametrize(
    ("fen", "origin", "target", "moved"),
    [
        (WHITE, "d1", "c4", "6k1/5ppp/8/8/2R5/8/8/K7 w - -"),  # by no rule, and White moves still
        (BLACK, "h8", "g8", "r1bqkbr1/pp3ppp/2n5/3p4/8/5N2/PP3PPP/R2QKB1R b KQq -"),  # turned
        (WHITE, "d1", "f7", "6k1/5Rpp/8/8/8/8/8/K7 w - -"),  # a pawn is taken
    ],
)
def test_a_piece_is_moved(
    open_page: Callable[..., Visit], how: str, fen: str, origin: str, target: str, moved: str
) -> None:
    visit = open_page(has_touch=how == "tapped")
    visit.show(CHESS)
    paste(visit, fen)
    visit.settle(CHESS)
    visit.page.locator(".chessboard").scroll_into_view_if_needed()
    move_piece(visit, how, origin, target)
    visit.wait("iterant.panels.chess.thinker.disturbed?.includes('was moved')")
    assert f"on {origin} was moved to {target}" in visit.panel(CHESS, "thinker.disturbed")
    assert visit.page.input_value("[data-is=fen]") == moved
    batch = iterant.task(CHESS).encode(moved)
    planes = torch.tensor(visit.panel(CHESS, "[...thinker.inputs.data]"))
    assert torch.equal(planes.view(batch.inputs.shape), batch.inputs)
    assert visit.troubles == []


def test_a_move_to_an_impossible_position_is_refused(visit: Visit) -> None:
    visit.show(CHESS)
    paste(visit, WHITE)
    visit.settle(CHESS)
    for target, message in (("d8", "Black is in check"), ("a1", "one king")):
        move_piece(visit, "dragged", "d1", target)
        assert message in visit.words
        assert visit.page.input_value("[data-is=fen]") == WHITE
    box = visit.page.locator(".chessboard").bounding_box()
    assert box is not None
    visit.page.mouse.move(*square_at(visit, "d1"))
    visit.page.mouse.down()
    visit.page.mouse.move(box["x"] + 20, box["y"] - 20)  # beside the board
    visit.page.mouse.up()
    assert visit.page.locator(".square.held").count() == 0
    assert visit.panel(CHESS, "thinker.disturbed") is None


def test_a_piece_is_moved_by_keyboard(visit: Visit) -> None:
    visit.show(CHESS)
    paste(visit, WHITE)
    visit.settle(CHESS)
    visit.page.locator(".chessboard").focus()
    keys = ["ArrowRight"] * 3 + ["Space"] + ["ArrowUp"] * 2
    for key in keys:
        visit.page.keyboard.press(key)
    assert visit.words == "d3: empty."
    visit.page.keyboard.press("Space")
    visit.wait("document.querySelector('#words').innerText.includes('was moved')")
    assert "the white rook on d1 was moved to d3" in visit.words.lower()  # or settled by now
    assert visit.page.input_value("[data-is=fen]").startswith("6k1/5ppp/8/8/8/3R4/8/K7 w")
    chosen = "Your own position, a piece moved, White to move"
    assert visit.page.locator("[data-is=choice] option:checked").text_content() == chosen


def test_the_first_puzzle_is_one_whose_answer_changes(visit: Visit) -> None:
    """With the shipped network, which ends at the right move."""
    visit.show(CHESS)
    fen, move = visit.panel(CHESS, "[panel.fen.value, panel.move]")
    batch = iterant.task(CHESS).encode(fen)
    with torch.no_grad():
        thoughts = iterant.think(iterant.load(CHESS), batch.inputs, steps=30)
        answers = [Chess().answer_text(batch, 0, thought.prediction) for thought in thoughts]
    assert len(set(answers)) >= 3
    assert answers[-1] == move
    visit.settle(CHESS)
    visit.wait("document.querySelector('[data-is=move]').innerText.endsWith(', a legal move.')")


def test_the_shipped_positions_can_occur_and_their_moves_are_legal(visit: Visit) -> None:
    visit.show(CHESS)
    positions = visit.page.evaluate(
        "async () => (await import('./js/chess/positions.js')).POSITIONS"
    )
    assert len(positions) >= 10
    for position in positions:
        iterant.task(CHESS).encode(position["fen"])
        assert chess.Move.from_uci(position["move"]) in chess.Board(position["fen"]).legal_moves
    assert visit.page.locator("[data-is=choice] option:not([hidden])").count() == len(positions)
