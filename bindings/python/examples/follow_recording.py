"""Shows the level of each channel while the recording runs."""

import sys

import hairspring

recording = hairspring.open_recording(sys.argv[1])
for first, rows in recording.follow(gaps="split", timeout=60):
    print(f"frame={first} rows={len(rows)} largest={abs(rows).max(axis=0).tolist()}")
