"""Files on disk: run folders, checkpoints, weights and results. Importing this imports no torch.

files.py        atomic writes, JSON with a checksum, JSON lines, folder locks, one-line errors
checkpoint.py   sets of tensors that are replaced as a whole; weights of a network
run_folder.py   the folder of a training run, and the list of runs
results.py      result files and provenance
"""

from iterant.io.checkpoint import load_tensors, read_weights, save_tensors, save_weights
from iterant.io.files import append_line, read_json, read_lines, write_atomic, write_json
from iterant.io.results import code_version, read_result, write_result
from iterant.io.run_folder import RunFolder, RunSummary, list_runs

__all__ = [
    "RunFolder", "RunSummary", "append_line", "code_version", "list_runs",
    "load_tensors", "read_json", "read_lines", "read_result", "read_weights", "save_tensors",
    "save_weights", "write_atomic", "write_json", "write_result",
]  # fmt: skip
