"""Reads frames of a recording by number, whole and piece by piece."""

import sys

import hairspring

recording = hairspring.open_recording(sys.argv[1])
print(f"frames={len(recording)} channels={recording.channels} gaps={len(recording.gaps)}")

rows = recording[0:1000]  # every block checked; a missing frame raises
print(f"first={rows[0].tolist()} largest={rows.max()}")

for section in recording.sections:  # runs without a gap
    end = section.first_frame + section.frames
    for first in range(section.first_frame, end, 1_000_000):
        rows = recording[first : min(first + 1_000_000, end)]
        print(f"frame={first} mean={rows.mean():.3f}")
