"""Reads a recording piece by piece: read_recording.py RECORDING checked|unchecked BYTES prints the bytes of samples read per second."""

import sys
import time

import hairspring

recording = hairspring.open_recording(sys.argv[1])
verify, piece = sys.argv[2] == "checked", int(sys.argv[3])
frames = piece // (recording.channels * recording.dtype.itemsize)
began, read = time.perf_counter(), 0
for first in range(recording.first_frame, recording.end_frame, frames):
    read += recording.read(first, min(first + frames, recording.end_frame), verify=verify).nbytes
print(read / (time.perf_counter() - began))
