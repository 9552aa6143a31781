"""What each command writes: its JSON, or the stable part of what it prints."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

FIXTURES = Path(__file__).with_name("fixtures")

# These differ between machines, commits and runs; only their presence is compared.
MASKED = {
    "bytes", "command", "commit", "date", "dirty", "hardware", "load before", "onnxruntime",
    "platform", "ratio", "seconds", "seconds a step", "sha256", "since", "steps per second",
    "steps_per_second", "threads", "updated", "versions", "worst",
}  # fmt: skip
PUZZLES = """\
PuzzleId,FEN,Moves,Rating,RatingDeviation,Popularity,NbPlays,Themes,GameUrl,OpeningTags
aaaa1,6k1/5ppp/8/8/8/8/8/K2R4 w - - 0 1,a1a2 g8f8,900,80,9,9,short,u,
aaaa2,8/P6k/8/8/8/8/8/K7 b - - 0 1,h7h6 a7a8n,700,70,9,9,mate mateIn1 oneMove,u,
aaaa3,4k3/8/8/8/8/8/p7/4K2R b K - 0 1,e8e7 e1g1,800,60,9,9,veryLong mateIn2,u,
aaaa4,4k3/3p4/8/4P3/8/8/8/4K3 b - - 0 1,d7d5 e5d6,700,50,9,9,enPassant long mateIn3,u,
"""
MAZE = """\
#######
#S    #
# ### #
#   #E#
#######
"""
FEN = "6k1/5ppp/8/8/8/8/8/K2R4 w - - 0 1"


def masked(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: "masked" if k in MASKED else masked(item) for k, item in value.items()}
    return [masked(item) for item in value] if isinstance(value, list) else value


def read(path: Path) -> Any:
    return masked(json.loads(path.read_text(encoding="utf-8")))


def lines(text: str) -> list[str]:
    """Lines with their words one space apart."""
    return [" ".join(line.split()) for line in text.splitlines() if line.strip()]


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """The folder in which commands run, with a trained network in it."""
    shutil.copytree(FIXTURES / "runs" / "finished", tmp_path / "run")
    return tmp_path


SOLVES = {
    "bits": ("prefix-sums", "1011001"),
    "generated": ("prefix-sums", "--size", 16, "--seed", 2, "--count", 3, "--halt", "stable"),
    "few-steps": ("prefix-sums", "1" * 40, "--max-steps", 10),
    "mazes": ("mazes", "--size", 5, "--seed", 1, "--count", 2),
    "drawn": ("mazes", "maze.txt"),
    "chess": ("chess", FEN, "--legal"),
    "run": ("prefix-sums", "1011001", "--net", "run"),
}


@pytest.mark.parametrize("name", SOLVES)
def test_solve(here: Path, iterant_command: Any, golden: Any, name: str) -> None:
    (here / "maze.txt").write_text(MAZE)
    iterant_command("solve", *SOLVES[name], "--save", "solved.json")
    golden(f"solve-{name}", read(here / "solved.json"), rel=1e-3)


@pytest.mark.parametrize("suffix", ["png", "svg", "gif"])
def test_solve_draws(here: Path, iterant_command: Any, suffix: str) -> None:
    iterant_command("solve", "mazes", "--size", 3, "--save", f"maze.{suffix}")
    start = (here / f"maze.{suffix}").read_bytes()[:200]
    assert {"png": b"\x89PNG", "svg": b"<svg", "gif": b"GIF8"}[suffix] in start


def test_sample(iterant_command: Any, golden: Any) -> None:
    """Whatever is said around it, a drawn problem keeps its digits and walls."""
    printed = {
        problem: iterant_command("sample", problem, "--size", size, "--seed", 4).splitlines()
        for problem, size in (("prefix-sums", 24), ("mazes", 5), ("chess", "0:4000"))
    }
    golden("sample", printed)


@pytest.mark.parametrize("rule", ["plain", "max-confidence", "stable", "rest"])
def test_evaluate(here: Path, iterant_command: Any, golden: Any, rule: str) -> None:
    iterant_command("evaluate", "run", "--size", 8, 24, "--count", 20, "--max-steps", 60,
                    "--rule", rule, "--device", "cpu", "--json", "figures.json")  # fmt: skip
    golden(f"evaluate-{rule}", read(here / "figures.json"), rel=1e-3, abs=1e-4)


def test_evaluate_compares_rules(here: Path, iterant_command: Any, golden: Any) -> None:
    iterant_command("evaluate", "run", "--size", 16, "--count", 10, "--max-steps", 60,
                    "--trade", "--device", "cpu", "--json", "figures.json")  # fmt: skip
    golden("evaluate-trade", read(here / "figures.json"), rel=1e-3, abs=1e-4)


@pytest.mark.parametrize("problem", ["prefix-sums", "mazes", "chess"])
def test_train_shows_its_recipes(iterant_command: Any, golden: Any, problem: str) -> None:
    """All fields but the notes, which are prose."""
    shown = {}
    for recipe in ("quick", "paper", "paper-code", "best"):
        output = iterant_command("train", problem, "--recipe", recipe, "--show", "--json")
        shown[recipe] = json.loads(output)
        del shown[recipe]["recipe"]["notes"]
    golden(f"recipes-{problem}", shown, rel=0)


def test_train(tmp_path: Path, iterant_command: Any, golden: Any) -> None:
    """The JSON files of a new run folder, and its records."""
    iterant_command("train", "prefix-sums", "--recipe", "quick", "--width", 4, "--head", 4,
                    "--size", 8, "--count", 50, "--batch", 10, "--epochs", 2, "--iterations", 3,
                    "--pool-slots", 16, "--pool-shortest", 1, "--watch-every", 1,
                    "--watch-count", 4, "--device", "cpu", "--out", "new")  # fmt: skip
    new = tmp_path / "new"
    records = [json.loads(line) for line in (new / "metrics.jsonl").read_text().splitlines()]
    seen = {
        "config.json": read(new / "config.json"),
        "status.json": read(new / "status.json"),
        "environment.json": read(new / "environment.json"),
        "metrics.jsonl": masked(records),
        "last.json": sorted(read(new / "checkpoints" / "last.json")),
    }
    golden("train", seen, rel=1e-3, abs=1e-4)


def test_analyze(here: Path, iterant_command: Any, golden: Any) -> None:
    iterant_command("analyze", "run", "--size", 8, "--count", 10, "--max-steps", 30,
                    "--device", "cpu", "--out", "studies")  # fmt: skip
    assert (here / "studies" / "index.html").exists()
    seen = {path.stem: read(path) for path in sorted((here / "studies").glob("*.json"))}
    for study in seen.values():
        del study["figures"]["about"]  # prose
    # Changes of features that have come to rest are rounding errors.
    golden("analyze", seen, rel=2e-2, abs=1e-4)


def test_reproduce_lists_experiments(tmp_path: Path, iterant_command: Any, golden: Any) -> None:
    shutil.copytree(FIXTURES / "results", tmp_path / "results")
    names = [
        line.split()[0]
        for line in iterant_command("reproduce", "--list").splitlines()
        if line.startswith(("fig-", "table-"))
    ]
    golden("reproduce-list", names)


def test_bench(tmp_path: Path, iterant_command: Any, golden: Any) -> None:
    iterant_command("bench", "train", "--task", "prefix-sums", "--width", 4, "--batch", 2,
                    "--steps", 2, "--rounds", 1, "--device", "cpu", "--no-memory",
                    "--out", "bench")  # fmt: skip
    (path,) = (tmp_path / "bench").glob("*.json")
    golden("bench-train", {"file": path.name, **keys_only(read(path))})


def keys_only(value: Any) -> Any:
    """The keys of measured figures, whose values are times."""
    if isinstance(value, dict):
        return {key: keys_only(item) for key, item in value.items()}
    if isinstance(value, list):
        return [keys_only(item) for item in value]
    return "number" if isinstance(value, float) else value


def test_export(here: Path, iterant_command: Any, golden: Any) -> None:
    iterant_command("export", "run", "--to", "onnx", "--out", "onnx")
    iterant_command("export", "run", "--to", "hub", "--out", "hub")
    seen = {
        "onnx": read(here / "onnx" / "network.json"),
        "hub": read(here / "hub" / "config.json"),
        "files": sorted(path.name for path in (*here.glob("onnx/*"), *here.glob("hub/*"))),
    }
    golden("export", seen, rel=1e-3, abs=1e-4)


def test_data_packs_puzzles(tmp_path: Path, iterant_command: Any, golden: Any) -> None:
    (tmp_path / "puzzles.csv").write_text(PUZZLES)
    iterant_command("data", "chess", "puzzles.csv", "--out", "packed")
    seen = {
        path.name: hashlib.sha256(np.load(path).tobytes()).hexdigest()
        for path in sorted((tmp_path / "packed").glob("*.npy"))
    }
    seen["meta.json"] = read(tmp_path / "packed" / "meta.json")
    golden("data-chess", seen)


def test_info_counts_parameters(iterant_command: Any, golden: Any) -> None:
    rows = lines(iterant_command("info"))
    counts = [row for row in rows if row.rsplit(" ", 1)[-1].replace(",", "").isdigit()]
    golden("info", counts)
