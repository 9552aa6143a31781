"""The cache folder of matplotlib."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from iterant.draw import set_matplotlib_cache

SETTINGS = ("XDG_CONFIG_HOME", "XDG_CACHE_HOME", "MPLCONFIGDIR")
DRAWS = """
import os
from iterant import draw, task
draw.save_png(task("prefix-sums").describe(task("prefix-sums").sample(1, size=4)), "a.png")
print(os.environ["MPLCONFIGDIR"])
"""


def test_no_warning_without_a_writable_home(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    known = {word: value for word, value in os.environ.items() if word not in SETTINGS}
    done = subprocess.run(
        [sys.executable, "-c", DRAWS], cwd=tmp_path, check=True, capture_output=True, text=True,
        env={**known, "HOME": str(tmp_path / "file" / "home")},
    )  # fmt: skip
    folder = Path(done.stdout.strip())
    assert done.stderr == ""
    assert folder.name.startswith("iterant-matplotlib-")
    assert not folder.exists()
    assert (tmp_path / "a.png").exists()


@pytest.mark.parametrize("setting", ["HOME", "XDG", "MPLCONFIGDIR"])
def test_settings_of_the_user_are_kept(
    setting: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    for word in SETTINGS:
        monkeypatch.delenv(word, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "file" / "home"))
    for word in ("XDG_CONFIG_HOME", "XDG_CACHE_HOME") if setting == "XDG" else (setting,):
        monkeypatch.setenv(word, str(tmp_path / "own"))
    before = dict(os.environ)
    set_matplotlib_cache()
    assert dict(os.environ) == before
    assert not (tmp_path / "own").exists()
