"""Waits 100 ms, asleep for all but the end."""

from hairspring import LongDelay

long = LongDelay()
report = long.delay(0.1)
print(f"asked_ns {report.requested_ns}")
print(f"actual_ns {report.actual_ns}")
print(f"slept_ns {report.slept_ns}")
print(f"polled_ns {report.polled_ns}")
print(f"late_ns {report.late_ns}")
print(f"verdict {report.verdict}")
