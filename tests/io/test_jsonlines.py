"""Records survive a writer that was killed at any byte."""

import math
import resource
from pathlib import Path
from typing import Any

import pytest

from iterant.errors import RunError
from iterant.io.files import append_line, is_torn, read_lines, write_lines

RECORDS: list[dict[str, Any]] = [
    {"step": 1, "loss": 0.5},
    {"step": 2, "text": "é\n}"},
    {"step": 3, "deep": {"a": [1]}},
]


def test_appended_records_come_back_in_order(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    for record in RECORDS:
        append_line(path, record)
    assert read_lines(path) == RECORDS
    assert path.read_bytes().count(b"\n") == 3


def test_a_file_cut_at_every_byte_is_read_and_repaired(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    write_lines(path, RECORDS)
    data = path.read_bytes()
    ends = [i for i in range(len(data)) if data[i : i + 1] == b"\n"]
    for length in range(len(data) + 1):
        path.write_bytes(data[:length])
        whole = RECORDS[: sum(end <= length for end in ends)]
        assert read_lines(path) == whole
        append_line(path, {"step": 9})
        assert read_lines(path) == [*whole, {"step": 9}]
        assert path.read_bytes().endswith(b'\n{"step": 9}\n' if whole else b'{"step": 9}\n')


def test_a_torn_line_longer_than_a_block_is_repaired(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    path.write_bytes(b'{"step": 1}\n{"text": "' + b"x" * 200_000)
    append_line(path, {"step": 2})
    assert read_lines(path) == [{"step": 1}, {"step": 2}]


def test_nan_and_infinities_become_null(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    append_line(path, {"loss": math.nan, "rate": -math.inf})
    assert path.read_bytes() == b'{"loss": null, "rate": null}\n'


def test_a_damaged_line_within_is_named_by_number(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    path.write_bytes(b'{"a": 1}\n{"a" 2}\n{"a": 3}\n')
    with pytest.raises(RunError, match=r"line 2 of '.*m.jsonl' is not valid JSON: .* byte 5"):
        read_lines(path)
    path.write_bytes(b'{"a": 1}\n7\n')
    with pytest.raises(RunError, match=r"line 2 .* is not a JSON object"):
        read_lines(path)


def test_an_append_that_the_system_cuts_keeps_the_lines_before(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    append_line(path, {"step": 1})
    before = path.read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    try:
        with pytest.raises(RunError, match="cannot append to"):
            append_line(path, {"text": "x" * 10_000})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert path.read_bytes() == before


def test_a_missing_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="no such file"):
        read_lines(tmp_path / "m.jsonl")
    with pytest.raises(RunError, match="a folder stands where a file is wanted"):
        append_line(tmp_path, {})


@pytest.mark.parametrize(
    ("content", "torn"),
    [
        (b"", False),
        (b'{"a": 1}\n', False),
        (b'{"a": 1}\n{"a": 2}', False),  # whole, though the last line was not ended
        (b'{"a": 1}\n{"a": ', True),
        (b'{"a"', True),
    ],
)
def test_a_file_is_torn_where_its_last_line_is_no_whole_record(
    content: bytes, torn: bool, tmp_path: Path
) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(content)
    assert is_torn(path) == torn
    assert len(read_lines(path)) == content.count(b"}")
