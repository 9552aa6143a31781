"""What a run writes down: how checkpoints are kept, and figures as their metadata hold them."""

from __future__ import annotations

import math
from dataclasses import dataclass

from iterant.errors import UsageError
from iterant.runs.shards import SMALLEST_SHARD_MB


@dataclass(frozen=True)
class Keeping:
    """How checkpoints are written."""

    shard_mb: float | None = None
    """Largest size of a file, in millions of bytes"""
    pool: bool = True
    """Whether the replay pool is part of them; without it a resumed run differs"""

    def __post_init__(self) -> None:
        """Refuse a size now rather than at the first checkpoint."""
        if self.shard_mb is not None and not SMALLEST_SHARD_MB <= self.shard_mb < math.inf:
            raise UsageError(
                f"shard size must be at least {SMALLEST_SHARD_MB} MB, got {self.shard_mb}; try 15"
            )


def or_null(value: float) -> float | None:
    """The value as a checkpoint's metadata holds it: features that explode have no figures."""
    return value if math.isfinite(value) else None
