"""To and from other programs.

authors.py    checkpoints of the paper's authors become folders of weights
source.py     the network to export, and what its folder says about it
graphs.py     ONNX: read, step and answer, with dynamic batch and space
checking.py   exported graphs beside PyTorch
hub.py        a folder in the layout of the Hugging Face hub
card.py       its model card
"""

from iterant.export.authors import Imported, import_checkpoint
from iterant.export.hub import Source, export_hub, open_source
from iterant.export.onnx import Exported, export_onnx

__all__ = [
    "Exported",
    "Imported",
    "Source",
    "export_hub",
    "export_onnx",
    "import_checkpoint",
    "open_source",
]
