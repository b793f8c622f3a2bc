"""Ours beside Python's own, in turns: beside.py BLOCKS DELAYS prints one JSON object of samples in nanoseconds.

`now` and `clock` are blocks of calls in a loop, less the same loop without a call, divided by their number; `long`, `tuned` and
`sleep` are how much longer than 10 ms a call took, by time.monotonic_ns() around it, and `told` is what the reports of `long` say.
`empty` is how long a call that does nothing takes after a sleep.
"""

import json
import sys
from time import monotonic_ns, perf_counter_ns, sleep

from hairspring import LongDelay, Timebase

BLOCK = 1_000
REQUEST_NS = 10_000_000


def empty() -> int:
    rounds = range(BLOCK)
    before = monotonic_ns()
    for _ in rounds:
        pass
    return monotonic_ns() - before


def block(call) -> float:
    rounds = range(BLOCK)
    before = monotonic_ns()
    for _ in rounds:
        call()
    return (monotonic_ns() - before - empty()) / BLOCK


def late(call, request):
    """How late it is as the caller sees it, and what it returns."""
    before = monotonic_ns()
    report = call(request)
    return monotonic_ns() - before - REQUEST_NS, report


def empty_call() -> int:
    before = monotonic_ns()
    abs(0)
    return monotonic_ns() - before


def main() -> None:
    blocks, delays = int(sys.argv[1]), int(sys.argv[2])
    timebase = Timebase.calibrate_to(1.0)
    long = LongDelay(timebase)
    tuned = LongDelay(timebase)
    tuned.tune_ns(REQUEST_NS)
    taken = {"now": [], "clock": [], "told": [], "long": [], "tuned": [], "empty": [], "sleep": []}
    for _ in range(blocks):
        taken["now"].append(block(timebase.now_ns))
        taken["clock"].append(block(perf_counter_ns))
    for _ in range(delays):
        seen, report = late(long.delay_ns, REQUEST_NS)
        taken["long"].append(seen)
        taken["told"].append(report.late_ns)
        taken["tuned"].append(late(tuned.delay_ns, REQUEST_NS)[0])
        taken["sleep"].append(late(sleep, REQUEST_NS / 1e9)[0])
        sleep(REQUEST_NS / 1e9)
        taken["empty"].append(empty_call())
        sleep(REQUEST_NS / 1e9)
    print(json.dumps(taken))


main()
