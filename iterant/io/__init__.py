"""Everything on disk: run folders, weights, results, and how they are written safely.

    >>> run = RunFolder.create("runs/m0", config)      # a training run
    >>> config, tensors = read_weights("runs/m0")      # what it learnt
    >>> write_result("table-1", figures, seed=0)       # what it showed

    plain.py        values as JSON can hold them
    files.py        atomic writes, JSON with a checksum, errors in one line
    places.py       whether something can be written somewhere
    jsonlines.py    metrics that survive a killed writer
    origin.py       code version, libraries, machine, command
    lock.py         one writer a folder
    shards.py       tensors as safetensors files of bounded size
    tensors.py      sets of them that are replaced as a whole
    folder.py       the folder of a training run
    listing.py      all runs at a glance
    weights.py      a network's configuration and tensors
    results.py      figures with their origin

Importing this room does not import torch.
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
