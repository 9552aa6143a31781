"""A task that is judged slowly, so that its runs last without burning a processor."""

from __future__ import annotations

import time

from torch import Tensor

from iterant.tasks.prefix_sums import PrefixSums
from iterant.tasks.protocol import Batch


class SlowSums(PrefixSums):
    """Prefix sums whose every validation takes a moment."""

    def solved(self, prediction: Tensor, batch: Batch) -> Tensor:
        time.sleep(0.15)
        return super().solved(prediction, batch)
