"""Solutions of networks whose every answer is known, and films of their answers."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from exact_networks import DeadEnds, exact_prefix_sums
from hypothesis import given
from hypothesis import strategies as st
from small_networks import small_net

import iterant
from iterant.engine import Thought, think
from iterant.halting import ExactRest, MostConfident, RuleState
from iterant.nets.fast import accelerate
from iterant.nets.protocol import TwoBest
from iterant.solving import Film, Frame, Iteration, Solution, default_max_steps, solutions
from iterant.tasks.inputs import gather
from iterant.tasks.protocol import Batch, Problem, RulesCheck, sample_problems

SUMS, MAZES, CHESS = (iterant.task(word) for word in ("prefix-sums", "mazes", "chess"))


def test_an_answer_decoded_from_nan_is_not_right(monkeypatch: pytest.MonkeyPatch) -> None:
    net = exact_prefix_sums()
    monkeypatch.setattr(net, "step", lambda features, memory, index: features * torch.nan)
    (solution,) = solutions(net, SUMS, gather(SUMS, "0000").problems)
    assert (solution.right, solution.settled) == (False, False)


def test_the_solution_of_a_string() -> None:
    (solution,) = solutions(exact_prefix_sums(), SUMS, gather(SUMS, "1011001").problems)
    assert (solution.answer, solution.right) == ("1101110", True)
    # Features change in iterations 1 to 7 and rest for the next 16.
    assert solution.steps == 7 + 16
    assert solution.described()["stopped_by"] == "settled"
    assert [frame.step for frame, _ in solution.history] == [1, 2, 4, 5, 6]
    assert solution.history[-1][1] == "1101110"
    assert solution.min_confidence == pytest.approx(0.7310586)
    assert solution.seconds > 0


def test_old_names_are_still_accepted() -> None:
    class OldTask(type(SUMS)):  # type: ignore[misc]
        """A user-defined task of before 0.2."""

        answer_text = None

        def tell(self, batch: Batch, index: int, prediction: torch.Tensor) -> str:
            return f"{len(prediction)} answer"

        def verdict(self, batch: Batch, index: int, prediction: torch.Tensor) -> RulesCheck:
            return RulesCheck(True, "kept")

    (solution,) = solutions(exact_prefix_sums(), OldTask(), gather(SUMS, "10").problems)
    assert solution.answer == "1 answer"
    assert solution.verdict.keeps is True


def test_a_batch_gives_the_solutions_of_single_problems() -> None:
    problems = sample_problems(SUMS, count=5, size=12, seed=4)
    problems += [gather(SUMS, bits).problems[0] for bits in ("1", "10", "11", "1", "100")]
    alone = [next(iter(solutions(exact_prefix_sums(), SUMS, [one]))) for one in problems]
    together = list(solutions(exact_prefix_sums(), SUMS, problems))
    assert [{**one.described(), "seconds": 0} for one in together] == [
        {**one.described(), "seconds": 0} for one in alone
    ]


def test_mazes_with_and_without_loops() -> None:
    (straight,) = solutions(DeadEnds(), MAZES, gather(MAZES, "S.#\n#..\n#.G").problems[:1])
    assert straight.answer.endswith("beside a shortest way"), "a loop of four squares remains"
    assert straight.verdict.legal is False
    (maze,) = solutions(DeadEnds(), MAZES, sample_problems(MAZES, size=13, seed=3))
    assert maze.right is True
    assert maze.verdict.legal is True
    assert maze.answer == "9 squares: one way from start to end"


def test_an_unsolvable_maze_is_not_tried() -> None:
    class Never(DeadEnds):
        def start(self, inputs: torch.Tensor) -> torch.Tensor:
            raise AssertionError("the network was run")

    (solution,) = solutions(Never(), MAZES, gather(MAZES, "S#G").problems)
    assert (solution.prediction, solution.steps, solution.settled) == (None, 0, False)
    assert solution.described()["unsolvable"] == "no way leads from start to end"


def test_the_budget_grows_with_the_cells() -> None:
    (problem,) = sample_problems(MAZES, size=59)
    assert default_max_steps(MAZES, problem) == 1000 + 62 * 62


def test_a_viewer_sees_every_iteration_of_one_problem_at_a_time() -> None:
    seen: list[tuple[str, int]] = []

    def look(problem: Problem, frame: Frame, film: Film) -> None:
        seen.append((problem.name, frame.step))

    problems = sample_problems(SUMS, count=2, size=5, seed=1)
    solved = list(solutions(exact_prefix_sums(), SUMS, problems, viewer=look))
    wanted = [
        (problem.name, step)
        for problem, solution in zip(problems, solved, strict=True)
        for step in range(1, solution.steps + 1)
    ]
    assert seen == wanted


def test_a_restricted_answer_is_legal_and_the_plain_one_is_kept() -> None:
    pytest.importorskip("chess")
    problems = [
        *gather(CHESS, "6k1/5ppp/8/8/8/8/8/K2R4 w - - 0 1").problems,
        *sample_problems(CHESS, count=3, seed=2),
    ]
    made: Any = small_net("chess", "dt-recall")
    net = made.float()
    plain = list(solutions(net, CHESS, problems, max_steps=5))
    restricted = list(solutions(net, CHESS, problems, max_steps=5, restrict=True))
    for one, other in zip(plain, restricted, strict=True):
        assert other.allowed is not None
        assert other.answer == one.answer
        verdict = CHESS.verdict(other.problem.batch, 0, other.allowed)  # type: ignore[attr-defined]
        assert verdict.legal is True
        assert other.described()["allowed_answer"] == other.allowed_answer != ""
    assert "castling" in " ".join(restricted[1].problem.notes), "not part of a puzzle"
    assert restricted[0].problem.notes == (), "part of the FEN"


def test_a_restricted_answer_is_of_the_iteration_that_answers() -> None:
    """A legal answer stays, also if the rule took it from an earlier iteration than the last."""
    pytest.importorskip("chess")
    (problem,) = gather(CHESS, "6k1/5ppp/8/8/8/8/8/K2R4 w - - 0 1").problems

    class Forgetful:
        """Sure of Rd8 after the first iteration, and of other squares less and less."""

        def read(self, inputs: torch.Tensor) -> None:
            return None

        def start(self, inputs: torch.Tensor) -> torch.Tensor:
            return inputs.new_zeros(1, 1, 8, 8)

        def step(self, features: torch.Tensor, memory: object, index: int) -> torch.Tensor:
            return features + 1

        def answer(self, features: torch.Tensor) -> torch.Tensor:
            step = int(features.max())
            move = (7, 3), ((0, 3) if step == 1 else (7, 4))
            ones = torch.zeros(1, 8, 8)
            for cell in move:
                ones[0][cell] = 4 / step
            return torch.stack([-ones, ones], dim=1)

        readout = TwoBest()

    net: Any = Forgetful()
    (solution,) = solutions(net, CHESS, [problem], max_steps=3, rule=MostConfident(), restrict=True)
    assert (solution.answered_at, solution.steps) == (1, 3)
    assert solution.answer == solution.allowed_answer == "d1d8"


def test_extras_of_the_problem_in_json() -> None:
    fen = "6k1/5ppp/8/8/8/8/8/K2R4 w - - 0 1"
    (problem,) = gather(CHESS, fen).problems
    more = {"bytes": np.array([b"x"]), "grid": np.zeros((1, 8, 8)), "share": np.array([0.5])}
    batch = replace(problem.batch, extras={**problem.batch.extras, **more})
    content = Solution(replace(problem, batch=batch), Film(64)).described()["about"]
    assert json.loads(json.dumps(content)) == {"black": False, "fen": fen, "share": 0.5}


def test_grids_in_json() -> None:
    (maze,) = solutions(DeadEnds(), MAZES, sample_problems(MAZES, size=5))
    content = json.loads(json.dumps(maze.described()))
    assert content["prediction"] == content["truth"]
    assert len(content["prediction"]) == len(content["prediction"][0]) == 16
    many = replace(maze, prediction=torch.tensor([[10, 0, 3]]))
    assert many.described()["prediction"] == ["10 0 3"], "classes of two digits stay apart"


def frame(step: int, value: int = 0) -> Frame:
    return Frame(step, np.full(3, value, dtype=np.uint8), 0.5)


@given(st.integers(1, 500), st.integers(2, 20))
def test_frames_are_spread_evenly_and_bounded(count: int, most: int) -> None:
    film = Film(3)
    film.max_frames = most
    for step in range(1, count + 1):
        film.put(frame(step))
    steps = [each.step for each in film.frames]
    assert len(steps) <= most
    assert steps == list(range(1, count + 1, film.stride))
    assert film.stride == 1 or 2 * len(steps) >= most - 1, "no more is dropped than must be"
    film.put(frame(count + 1, 1), last=True)
    assert film.frames[-1].step == count + 1


def test_frames_by_iteration_and_changes() -> None:
    film = Film(3)
    for step, value in ((3, 0), (4, 0), (9, 1), (11, 1), (12, 0)):
        film.put(frame(step, value))
    assert [film.at(step).step for step in (1, 3, 4, 8, 100)] == [3, 3, 4, 4, 12]
    assert [each.step for each in film.changes()] == [3, 9, 12]


@pytest.mark.parametrize("copies", [False, True])
def test_a_callback_gets_the_features_of_both_sides_of_an_iteration(copies: bool) -> None:
    """Also where iterations overwrite the features, and samples leave the batch."""
    net, inputs = iterant.load("mazes"), MAZES.sample(4, size=9, seed=1).inputs
    after: dict[tuple[int, int], torch.Tensor] = {}
    before: dict[tuple[int, int], torch.Tensor] = {}

    def keep(iteration: Iteration) -> None:
        features = iteration.thought.features
        for index, sample in enumerate(iteration.rows.tolist()):
            key = (sample, iteration.thought.step)
            after[key] = features[index].clone() if copies else features[index]
            before[key] = iteration.before[index]

    keep.copies = copies  # type: ignore[attr-defined]
    answer = iterant.solve(net, inputs, callback=keep)
    fast = accelerate(net, inputs)
    first = fast.start(inputs).clone()
    plain = list(think(fast, inputs, steps=int(answer.steps.max())))
    assert len(after) == int(answer.steps.sum())
    for (sample, step), features in after.items():
        assert torch.equal(features, plain[step - 1].features[sample])
        start = first[sample] if step == 1 else plain[step - 2].features[sample]
        assert torch.equal(before[sample, step], start)


class Unchanged(RuleState):
    """A rule of a user, who keeps features without cloning them."""

    before: torch.Tensor | None = None

    def start(self) -> RuleState:
        return Unchanged()

    def update(self, thought: Thought) -> torch.Tensor:
        now, before = thought.features, self.before
        self.before = now
        if before is None:
            return torch.zeros(len(now), dtype=torch.bool)
        return (now == before).flatten(1).all(dim=1)

    def select(self, rows: torch.Tensor) -> None:
        if self.before is not None:
            self.before = self.before[rows]


def test_a_user_defined_rule_may_keep_features() -> None:
    net, batch = iterant.load("mazes"), MAZES.sample(4, size=9, seed=1)
    answer = iterant.solve(net, batch.inputs, rule=Unchanged())
    assert torch.equal(answer.steps, iterant.solve(net, batch.inputs, rule=ExactRest()).steps)
    assert bool(MAZES.solved(answer.prediction, batch).all())
