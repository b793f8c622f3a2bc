"""Relative error of delays from 1 µs to 10 ms: the median of 21 each."""

from statistics import median

import hairspring

for name, seconds in [("1us", 1e-6), ("10us", 1e-5), ("100us", 1e-4), ("1ms", 1e-3), ("10ms", 1e-2)]:
    error = median(hairspring.delay(seconds).late / seconds for _ in range(21))
    print(f"error_at_{name}_percent {100 * error:.4f}")
