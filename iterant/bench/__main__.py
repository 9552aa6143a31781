"""The other end of `iterant.bench.compare.in_new_process`."""

import importlib
import json
import os
import sys

from iterant.bench.compare import RESULT

place, arguments = sys.argv[1:]
module, _, name = place.partition(":")
result = getattr(importlib.import_module(module), name)(**json.loads(arguments))
if os.environ.get("RANK", "0") == "0":
    os.write(1, f"{RESULT}{json.dumps(result)}\n".encode())
