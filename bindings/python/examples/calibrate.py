"""Calibrates a time base and says how far to trust it."""

from hairspring import Timebase

timebase = Timebase.calibrate_to(1.0)
print(f"frequency_hz {timebase.frequency_hz:.0f}")
print(f"bound_ppm {timebase.bound_ppm:.3f}")
print(f"trust {timebase.trust}")
