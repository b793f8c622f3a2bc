"""Computes the power spectrum of a recording on a Dask cluster, or without one on the threads of this machine.

    python power_spectrum.py RECORDING [SCHEDULER]

Each task reads a chunk and checks it by its checksums, and returns sums of a few thousand numbers: no chunk travels between hosts. Welch's method
with a Hann window, half of each window in the next one; a window lies in one chunk, so at most two windows are lost at each border of chunks.
"""

import sys

import dask
import numpy

import hairspring

WINDOW = 4096
AT_ONCE = 256  # windows that are transformed together: what a task needs besides its chunk


def periodograms(rows, window=WINDOW):
    """The sum of the squared spectra of all windows in some rows, a column for each channel, and how many windows they were."""
    shape = numpy.hanning(window).astype("f4")
    total = numpy.zeros((window // 2 + 1, rows.shape[1]))
    step = window // 2
    starts = range(0, len(rows) - window + 1, step)
    for first in range(0, len(starts), AT_ONCE):
        part = starts[first : first + AT_ONCE]
        values = numpy.stack([rows[start : start + window] for start in part]).astype("f4")
        values -= values.mean(axis=1, keepdims=True)
        total += (numpy.abs(numpy.fft.rfft(values * shape[:, None], axis=1)) ** 2).sum(axis=0, dtype="f8")
    return total, len(starts)


def power_spectrum(recording, window=WINDOW, **chunks):
    """The power density in units squared per hertz, a column for each channel; its frequencies; the number of windows."""
    rows = recording.to_dask(**chunks)
    tasks = [dask.delayed(periodograms)(chunk, window) for chunk in rows.to_delayed().ravel()]
    sums = dask.compute(*tasks)
    windows = sum(count for _, count in sums)
    density = sum(total for total, _ in sums) / windows
    density *= 2 / (recording.sample_rate * (numpy.hanning(window) ** 2).sum())
    density[[0, -1]] /= 2
    return density, numpy.fft.rfftfreq(window, 1 / recording.sample_rate), windows


def main(path, scheduler=None):
    recording = hairspring.open_recording(path)
    if scheduler is not None:
        from distributed import Client

        Client(scheduler)  # dask.compute uses it from here on
    density, frequencies, windows = power_spectrum(recording)
    print(f"frames={len(recording)} windows={windows}")
    for channel, name in enumerate(recording.channel_names or range(recording.channels)):
        peak = density[1:, channel].argmax() + 1
        print(f"channel={name} peak_hz={frequencies[peak]:.1f} density={density[peak, channel]:.6g}")


if __name__ == "__main__":
    main(*sys.argv[1:])
