"""Export to ONNX and to the layout of the Hugging Face hub; import of the authors' checkpoints.

authors.py   checkpoints of the paper's authors as weights folders
hub.py       a folder for the hub with its model card
onnx.py      read, step and answer as ONNX graphs, compared with PyTorch
"""

from iterant.export.authors import Imported, import_checkpoint
from iterant.export.hub import export_hub
from iterant.export.onnx import Exported, export_onnx

__all__ = ["Exported", "Imported", "export_hub", "export_onnx", "import_checkpoint"]
