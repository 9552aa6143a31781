"""Plans of sweeps: every combination of the settings, wrong settings, and the sweep's folder."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_sweeps import FIELDS, small_plan

from iterant.errors import RunError, UsageError
from iterant.io import write_json
from iterant.runner import EvaluationSpec, Plan, SweepFolder, planned, read_plan

WIDTHS = st.lists(st.integers(1, 64), min_size=1, max_size=3, unique=True)
RATES = st.lists(st.sampled_from([1e-4, 1e-3, 2.5e-3]), min_size=1, max_size=3, unique=True)
SEEDS = st.lists(st.integers(0, 99), min_size=1, max_size=4, unique=True)


@given(widths=WIDTHS, rates=RATES, seeds=SEEDS, nets=st.sampled_from([[], ["dt"], ["dt", "ff"]]))
def test_every_combination_is_one_run(
    widths: list[int], rates: list[float], seeds: list[int], nets: list[str]
) -> None:
    plan = planned(
        "all", task="prefix-sums", grid={"width": widths, "lr": rates}, seeds=seeds,
        entries=[{"net": net} for net in nets], fields={"epochs": 7},
    )  # fmt: skip
    words: list[str | None] = [*nets] or [None]
    expected = set(itertools.product(widths, rates, words, seeds))
    runs = [(run.changes["width"], run.changes["lr"], run.changes.get("net"), run.seed)
             for run in plan.runs]  # fmt: skip
    assert set(runs) == expected
    assert len(runs) == len(expected)
    assert len({run.name for run in plan.runs}) == len(expected)
    assert all(run.changes["epochs"] == 7 for run in plan.runs)
    assert all(run.name == f"{run.point}-s{run.seed}" for run in plan.runs)
    assert Plan.of(json.loads(json.dumps(plan.described()))).described() == plan.described()


def test_a_file_gives_the_same_plan_as_python(tmp_path: Path) -> None:
    file, fields = tmp_path / "any.toml", "\n".join(f"{k} = {v}" for k, v in FIELDS.items())
    file.write_text(f"""
task = "prefix-sums"
name = "small"
seeds = "0-1"
grid = {{lr = [1e-3]}}
[[tests]]
size = [8, 16]
count = 10
max_steps = 5
[fields]
{fields}
""")
    assert read_plan(file) == small_plan(grid={"lr": [1e-3]})
    assert len(read_plan(file, "0-4").runs) == 5


def test_lists_in_tests_give_one_test_each() -> None:
    plan = planned(
        "t", task=["prefix-sums", "mazes"],
        tests=[{"task": "mazes", "size": [9, 13], "seed": [1, 2]}, {"task": "prefix-sums"}],
    )  # fmt: skip
    assert len(plan.tests) == 5
    by_task = {run.task: plan.tests_of(run) for run in plan.runs}
    assert len(by_task["mazes"]) == 4
    assert by_task["prefix-sums"] == (EvaluationSpec(task="prefix-sums"),)


def test_a_size_in_words_is_one_of_the_kind_of_problems() -> None:
    fields = {"problems": "walls=0.3", "size": "12", "net": "dt", "width": 4}  # 12 is even
    (run,) = planned("walls", task="mazes", recipe="paper", fields=fields).runs
    assert run.changes["size"] == 12


def test_sizes_are_those_of_the_problems_that_a_recipe_names() -> None:
    (run,) = planned("m", task="mazes", fields={"net": "max-plus"}).runs  # on grids of even size
    assert run.changes == {"net": "max-plus"}


REFUSED: list[tuple[str, str]] = [
    ("task = 3", "task must be one of: prefix-sums"),
    ('task = "maze"', "did you mean 'mazes'"),
    ('task = "mazes"\nseeds = [1.5]', "whole number"),
    ('task = "mazes"\nsedes = [1]', "did you mean 'seeds'"),
    ('task = "mazes"\ngrid = [1]', "grid must be a table"),
    ('task = "mazes"\ngrid = {widht = [4]}', "did you mean 'width'"),
    ('task = "mazes"\ngrid = {width = [6, 0]}', "width must be a whole number from 1 to 4,096"),
    ('task = "mazes"\ngrid = {width = [6, 6]}', "appears twice"),
    ('task = "mazes"\ngrid = {net = [[1]]}', "net must be a word"),
    ('task = "mazes"\nfields = {net = "nt"}', "'nt'"),
    ('task = "mazes"\nfields = {size = 8}', "odd"),
    ('task = "mazes"\nfields = {batch_size = 60000}', "a batch of 60000 does not fit"),
    ('task = "mazes"\ntests = [{sice = 13}]', "did you mean 'size'"),
    ('task = "mazes"\ntests = [{count = 0}]', "count of a test"),
    ('task = "mazes"\ntests = [{task = "chess"}]', "no run is"),
    ('task = "mazes"\nname = "../up"', "cannot name a sweep"),
    ('task = "mazes"\ndata = 3', "data must be the path"),
    ('task = "mazes"\nseeds = "0-999"\ngrid = {width = [' + "1," * 50 + "], lr = ["
     + "1e-3," * 50 + "]}", "are more than 100,000"),
    ("task = ", "is not a TOML file"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), REFUSED, ids=range(len(REFUSED)))
def test_wrong_settings_are_refused(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "sweep.toml"
    file.write_text(text)
    with pytest.raises(UsageError, match=re.escape(message)) as error:
        read_plan(file)
    assert "\n" not in str(error.value)
    assert "sweep.toml" in str(error.value)


def test_a_missing_or_foreign_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "b.toml").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "large.toml").write_bytes(b"#" * (1 << 21))
    cases = {"none": "no such file", "b": "is not a TOML file", "large": "larger than"}
    for name, message in cases.items():
        with pytest.raises(UsageError, match=message):
            read_plan(tmp_path / f"{name}.toml")


def test_a_sweep_grows_and_its_runs_keep_their_settings(tmp_path: Path) -> None:
    first = SweepFolder.prepare(tmp_path, small_plan(grid={"width": [4]}, seeds=[0, 1]))
    assert next(iter(first.planned)) == "prefix-sums-quick-width4-s0"
    second = SweepFolder.prepare(tmp_path, small_plan(grid={"width": [8, 4]}, seeds=[1, 2]))
    assert list(second.planned)[:2] == list(first.planned)
    assert len(second.planned) == 5
    assert SweepFolder.open(tmp_path).planned == second.planned
    former = {**FIELDS, "batch": FIELDS["batch_size"]}  # the name of this field before
    del former["batch_size"]
    SweepFolder.prepare(tmp_path, small_plan(grid={"width": [4]}, fields=former))
    with pytest.raises(RunError, match=r"was started with size = 8, and the plan now has 9"):
        SweepFolder.prepare(tmp_path, small_plan(grid={"width": [4]}, fields={**FIELDS, "size": 9}))


def test_a_folder_with_other_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("\\end")
    with (
        pytest.raises(RunError, match=r"it has 'thesis.tex'"),
        SweepFolder.locked(tmp_path, small_plan()),
    ):
        pass
    with pytest.raises(RunError, match="holds no sweep"):
        SweepFolder.open(tmp_path)


def test_a_corrupt_plan_is_refused(tmp_path: Path) -> None:
    folder = SweepFolder.prepare(tmp_path / "s", small_plan())
    plan = folder.path / "sweep.json"
    plan.write_text(plan.read_text().replace('"seed": 1', '"seed": 2'))
    with pytest.raises(RunError, match="does not match its own checksum"):
        SweepFolder.open(folder.path)
    plan.write_bytes(plan.read_bytes()[:100])
    with pytest.raises(RunError, match="not valid JSON"):
        SweepFolder.open(folder.path)
    write_json(plan, {"format": 2}, checksummed=True)
    with pytest.raises(RunError, match="another version of iterant"):
        SweepFolder.open(folder.path)
