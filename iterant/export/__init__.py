"""To and from other programs.

authors.py   checkpoints of the paper's authors become folders of weights
"""

from iterant.export.authors import Imported, import_checkpoint

__all__ = ["Imported", "import_checkpoint"]
