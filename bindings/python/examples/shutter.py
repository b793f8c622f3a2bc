"""Opens a shutter for 100 ms, reads a light meter in the middle, and waits exactly for the rest.

The shutter is a word of a mapped file, as it would be one of a card; the meter takes 20 ms.
"""

import tempfile
import time

from hairspring import LongDelay, Timebase, Window

ASKED_NS = 100_000_000

with tempfile.NamedTemporaryFile() as card:
    card.truncate(4096)
    with Window(card.name, writable=True) as lines:
        timebase = Timebase.calibrate_to(1.0)
        long = LongDelay(timebase)
        lines.write(0, 1)
        up_ns = timebase.now_ns()
        try:
            long.delay_until_ns(up_ns + ASKED_NS // 2)
            from_ns = timebase.now_ns()
            time.sleep(0.02)
            to_ns = timebase.now_ns()
            rest = long.delay_until_ns(up_ns + ASKED_NS)
            over_ns = timebase.now_ns()
        finally:
            # Closes the shutter also after an error.
            lines.write(0, 0)
print(f"asked_ns {ASKED_NS}")
print(f"measured_exp_time_ns {over_ns - up_ns}")
print(f"first_half_ns {from_ns - up_ns}")
print(f"reading_ns {to_ns - from_ns}")
print(f"rest_ns {over_ns - to_ns}")
print(f"late_ns {over_ns - up_ns - ASKED_NS}")
print(f"verdict {rest.verdict}")
