"""Works, then waits for the rest until a deadline 5 ms after the start."""

from hairspring import LongDelay

long = LongDelay()
timebase = long.timebase
begin_ns = timebase.now_ns()
deadline_ns = begin_ns + 5_000_000
sum(range(10_000))
done_ns = timebase.now_ns()
report = long.delay_until_ns(deadline_ns)
print(f"worked_ns {done_ns - begin_ns}")
print(f"left_ns {deadline_ns - done_ns}")
print(f"late_ns {report.late_ns}")
