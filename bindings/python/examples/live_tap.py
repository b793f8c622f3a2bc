"""Looks on at a recording that another process makes: live_tap.py NAME."""

import sys

import hairspring

tap = hairspring.tap(sys.argv[1])
print(tap)
for frames in tap:  # until the recording ends
    print(frames.first_frame, frames.samples.shape, frames.samples.mean(axis=0), "missed", frames.missed)
print(tap.state, "missed", tap.missed, "lost", tap.lost)
