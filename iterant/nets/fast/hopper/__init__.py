"""The paper's networks on strings, on Hopper GPUs: every convolution a matrix product in Triton.

    >>> fast = strings_form(net)             # None where it would not be faster

Test on the card: ``pytest tests/nets/fast``.
"""

from iterant.nets.fast.hopper.strings import FusedStrings, strings_form

__all__ = ["FusedStrings", "strings_form"]
