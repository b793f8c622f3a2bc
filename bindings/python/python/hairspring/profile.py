"""How long a piece of code takes, call by call."""

from __future__ import annotations

from functools import wraps
from typing import Callable, Optional, TypeVar

from . import _hairspring

_Call = TypeVar("_Call", bound=Callable)

#: How many empty blocks measure the cost of a block.
_COST_BLOCKS = 101


class Profile(_hairspring.Profile):
    """The spans of one piece of code. Each ``with profile:`` block is one, and each call of a function under ``@profile``.

    The first span is reported separately, because cold caches make it longer. ``block_cost_ns`` is the median of empty blocks: every span
    contains it, and nothing subtracts it.
    """

    block_cost_ns: int

    def __init__(self, timebase: Optional[_hairspring.Timebase] = None, *, ordered: bool = True) -> None:
        # A second profile times the empty blocks, so that this one contains only its owner's spans.
        empty = _hairspring.Profile(timebase, ordered=ordered)
        for _ in range(_COST_BLOCKS + 1):
            with empty:
                pass
        self.block_cost_ns = empty.summary().median_ns or 0

    def __call__(self, function: _Call) -> _Call:
        @wraps(function)
        def profiled(*arguments, **named):
            with self:
                return function(*arguments, **named)

        return profiled  # type: ignore[return-value]
