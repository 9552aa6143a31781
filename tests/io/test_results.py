"""A result file says where its figures came from, and nothing about the machine's folders."""

import json
import math
from pathlib import Path

import pytest

from iterant.errors import RunError, UsageError
from iterant.io.results import read_result, read_results, write_result


def test_a_result_has_its_origin(tmp_path: Path) -> None:
    path = write_result(
        "a-1", {"x": {"mean": 0.5}}, seed=3, command="iterant bench", folder=tmp_path
    )
    assert path == tmp_path / "a-1.json"
    result = read_result(path)
    assert list(result) == [
        "name",
        "command",
        "commit",
        "dirty",
        "date",
        "seed",
        "hardware",
        "versions",
        "figures",
    ]
    assert (result["name"], result["seed"], result["command"]) == ("a-1", 3, "iterant bench")
    assert result["figures"] == {"x": {"mean": 0.5}}
    assert set(result["hardware"]) == {"cpu", "cores", "memory_gib", "gpu"}
    assert set(result["versions"]) == {"iterant", "python", "torch", "numpy"}
    assert result["date"].endswith("+00:00")


def test_no_path_of_the_machine_is_written(tmp_path: Path) -> None:
    figures = {"run": str(tmp_path / "m0"), str(tmp_path): [f"see {tmp_path / 'x.png'} there"]}
    path = write_result(
        "a", figures, command=[f"{tmp_path}/bin/iterant", "train", f"--out={tmp_path / 'm0'}"],
        folder=tmp_path,
    )  # fmt: skip
    assert str(tmp_path) not in path.read_text()
    assert str(Path.cwd()) not in path.read_text()
    assert read_result(path)["command"] == "iterant train --out=m0"
    assert read_result(path)["figures"]["run"] == "m0"
    own = read_result(write_result("b", {}, folder=tmp_path))["command"]
    assert own
    assert not own.startswith("/")
    assert (
        "/bin/"
        not in write_result("c", {}, command="/usr/bin/x 'open", folder=tmp_path).read_text()
    )


def test_what_is_no_number_becomes_null_in_valid_json(tmp_path: Path) -> None:
    path = write_result("a", {"loss": math.nan, "rates": [math.inf, 1.0]}, folder=tmp_path)

    def refuse(word: str) -> None:
        raise AssertionError(word)

    result = json.loads(path.read_text(), parse_constant=refuse)
    assert result["figures"] == {"loss": None, "rates": [None, 1.0]}


def test_results_are_read_by_name_and_broken_ones_named(tmp_path: Path) -> None:
    for name in ("b", "a"):
        write_result(name, {"n": name}, folder=tmp_path / "results")
    (tmp_path / "results" / "README.md").touch()
    (tmp_path / "results" / ".a.json.0123456789ab.tmp").touch()
    assert [r["figures"]["n"] for r in read_results(tmp_path / "results")] == ["a", "b"]
    (tmp_path / "results" / "c.json").write_text('{"name": "c"}')
    with pytest.raises(RunError, match=r"c\.json' is no result .*command.*missing"):
        read_results(tmp_path / "results")
    with pytest.raises(RunError, match="no such file or folder"):
        read_results(tmp_path / "nowhere")


@pytest.mark.parametrize("name", ["", "../a", "a/b", ".a", "a b"])
def test_names_that_are_no_file_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="cannot name a result"):
        write_result(name, {}, folder=tmp_path)


def test_a_file_in_place_of_the_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "results").touch()
    with pytest.raises(RunError, match="a file stands where a folder is wanted"):
        write_result("a", {}, folder=tmp_path / "results")
