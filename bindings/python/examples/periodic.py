"""A loop with a period of 2 ms: deadlines are absolute, so lateness does not add up."""

from statistics import median

from hairspring import LongDelay

PERIOD_NS, CYCLES = 2_000_000, 50

long = LongDelay()
start_ns = long.timebase.now_ns()
late_ns, missed = [], 0
for cycle in range(1, CYCLES + 1):
    report = long.delay_until_ns(start_ns + cycle * PERIOD_NS)
    late_ns.append(report.late_ns)
    # A deadline that had passed before the wait began was missed.
    missed += report.slept_ns + report.polled_ns == 0
print(f"cycles {CYCLES}")
print(f"period_ns {PERIOD_NS}")
print(f"least_late_ns {min(late_ns)}")
print(f"median_late_ns {median(late_ns):.0f}")
print(f"most_late_ns {max(late_ns)}")
print(f"missed {missed}")
