"""What a caller does around a delay: rehearsed for nothing shortly before the end of a long one, and timed to tune it."""

from time import monotonic_ns
from typing import Callable

from ._hairspring import Report


def late_ns(delay_ns: Callable[[int], Report], request_ns: int) -> int:
    """How much longer than asked a delay took, as its caller sees it."""
    before_ns = monotonic_ns()
    delay_ns(request_ns)
    return monotonic_ns() - before_ns - request_ns
