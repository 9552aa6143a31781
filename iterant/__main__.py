"""``python -m iterant`` is the command ``iterant``."""

import os
import sys

# For -m Python puts the current folder first on the path, before the standard library. The command
# ``iterant`` has no such entry, and `iterant.registry` adds the folder last where it is wanted. No
# other module is imported before this, because it could be one of that folder.
try:
    if not sys.flags.safe_path and sys.path[0] == os.getcwd():  # noqa: PTH109
        del sys.path[0]
except OSError:  # the folder was deleted
    pass

from iterant.cli.main import run

run()
