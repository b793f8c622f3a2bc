"""Measures the cost of calls from Python: callers.py FILE CALLS prints one JSON object.

FILE (8 KiB) is mapped; the program reads the first word of its first page and writes that of its second, so each first access maps a page.
CALLS is the total number of calls of each kind.

`first_ns` is the first call of its kind in this process, between two readings of time.monotonic_ns(). It includes the cost of a reading:
`stamp_ns`, the median of two readings with nothing between them. `later_ns` are samples. `now`, `word_read` and `word_write` take less than
a stamp, so one sample is a block of calls in a loop between two stamps, divided by their number (`block`). For `delay_1us` one sample is
one call between two readings of now_ns(). No overhead is subtracted.
"""

import json
import sys
from statistics import median
from time import monotonic_ns

from hairspring import Timebase, Window

BLOCK = 100
STAMPS = 101


def stamp_cost_ns() -> float:
    costs_ns = []
    for _ in range(STAMPS):
        before = monotonic_ns()
        costs_ns.append(monotonic_ns() - before)
    return median(costs_ns)


def first_ns(call, arguments) -> int:
    before = monotonic_ns()
    call(*arguments)
    return monotonic_ns() - before


def in_blocks(loop, calls, call, *arguments) -> dict:
    first = first_ns(call, arguments)
    blocks = max(1, calls // BLOCK)
    return {"block": BLOCK, "first_ns": first, "later_ns": [loop(call, *arguments) / BLOCK for _ in range(blocks)]}


# One loop for each number of arguments, so that no loop unpacks arguments.
def loop_0(call) -> int:
    rounds = range(BLOCK)
    before = monotonic_ns()
    for _ in rounds:
        call()
    return monotonic_ns() - before


def loop_1(call, one) -> int:
    rounds = range(BLOCK)
    before = monotonic_ns()
    for _ in rounds:
        call(one)
    return monotonic_ns() - before


def loop_2(call, one, two) -> int:
    rounds = range(BLOCK)
    before = monotonic_ns()
    for _ in rounds:
        call(one, two)
    return monotonic_ns() - before


def delays(timebase, calls) -> dict:
    delay_ns, now_ns = timebase.delay_ns, timebase.now_ns
    first, later_ns = first_ns(delay_ns, (1_000,)), []
    for _ in range(calls):
        before = now_ns()
        delay_ns(1_000)
        later_ns.append(now_ns() - before)
    return {"block": 1, "first_ns": first, "later_ns": later_ns}


def main() -> None:
    path, calls = sys.argv[1], int(sys.argv[2])
    stamp_ns = stamp_cost_ns()
    timebase = Timebase.calibrate_to(1.0)
    with Window(path, writable=True) as window:
        report = {
            "language": "python",
            "stamp_ns": stamp_ns,
            "now": in_blocks(loop_0, calls, timebase.now_ns),
            "delay_1us": delays(timebase, calls),
            "word_read": in_blocks(loop_1, calls, window.read, 0),
            "word_write": in_blocks(loop_2, calls, window.write, 4096, 1),
        }
    print(json.dumps(report))


if __name__ == "__main__":
    main()
