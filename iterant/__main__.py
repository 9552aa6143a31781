"""``python -m iterant`` is the command ``iterant``."""

from iterant.cli.main import run

run()
