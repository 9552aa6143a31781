"""Files on disk: run folders, checkpoints, weights and results. Importing this imports no torch.

>>> run = RunFolder.create("runs/m0", config)      # a training run
>>> config, tensors = read_weights("runs/m0")      # its weights
>>> write_result("table-1", figures, seed=0)       # figures with their provenance

files.py        atomic writes, JSON with a checksum, JSON lines, one-line errors
lock.py         one writer per folder
checkpoint.py   sets of tensors that are replaced as a whole
run_folder.py   the folder of a training run, and the list of runs
weights.py      a network's configuration and tensors
results.py      result files and provenance
"""

from iterant.io.checkpoint import load_tensors, save_tensors
from iterant.io.files import append_line, is_torn, read_json, read_lines, write_atomic, write_json
from iterant.io.lock import Lock
from iterant.io.results import code_version, environment, read_result, read_results, write_result
from iterant.io.run_folder import RunFolder, RunSummary, Status, list_runs
from iterant.io.weights import read_weights, save_weights

__all__ = [
    "Lock",
    "RunFolder",
    "RunSummary",
    "Status",
    "append_line",
    "code_version",
    "environment",
    "is_torn",
    "list_runs",
    "load_tensors",
    "read_json",
    "read_lines",
    "read_result",
    "read_results",
    "read_weights",
    "save_tensors",
    "save_weights",
    "write_atomic",
    "write_json",
    "write_result",
]
