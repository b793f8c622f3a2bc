"""The caller's side of a delay: long delays rehearse it shortly before their end, and tune() times it."""

from time import monotonic_ns
from typing import Callable

from ._hairspring import Report


def late_ns(delay_ns: Callable[[int], Report], request_ns: int) -> int:
    """How much longer than requested a delay took, timed by its caller."""
    before_ns = monotonic_ns()
    delay_ns(request_ns)
    return monotonic_ns() - before_ns - request_ns
