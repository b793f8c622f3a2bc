"""How long a piece of code takes, call by call."""

from __future__ import annotations

from functools import wraps
from typing import Callable, Optional, TypeVar

from . import _hairspring

_Call = TypeVar("_Call", bound=Callable)

#: Empty blocks from which the cost of a block is taken.
_COST_BLOCKS = 101


class Profile(_hairspring.Profile):
    """The spans of one piece of code: each ``with profile:`` is one, or each call of a function under ``@profile``.

    The first span is kept apart, because caches make it longer. What an empty block shows is ``block_cost_ns``: it is contained in
    every span and never subtracted.
    """

    block_cost_ns: int

    def __init__(self, timebase: Optional[_hairspring.Timebase] = None, *, ordered: bool = True) -> None:
        # A profile of its own for the empty blocks: the spans of this one are its owner's.
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
