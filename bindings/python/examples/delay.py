"""Waits 50 µs by polling; never early, and reports how late."""

import hairspring

report = hairspring.delay(50e-6)
print(f"asked_ns {report.requested_ns}")
print(f"actual_ns {report.actual_ns}")
print(f"late_ns {report.late_ns}")
print(f"verdict {report.verdict}")
