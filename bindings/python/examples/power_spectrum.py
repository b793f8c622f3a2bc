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


def periodograms(rows, window=WINDOW):
    """The sum of the squared spectra of all windows in some rows, a column for each channel, and how many windows they were.

    It takes one window of one channel at a time: longer arrays would be slower here. By Dask's default, workers give all memory that is
    freed back to the kernel and fetch it again for the next array.
    """
    shape = numpy.hanning(window).astype("f4")
    total = numpy.zeros((rows.shape[1], window // 2 + 1))
    starts = range(0, len(rows) - window + 1, window // 2)
    for start in starts:
        for channel, sums in enumerate(total):
            values = rows[start : start + window, channel].astype("f4")
            values -= values.mean()
            spectrum = numpy.fft.rfft(values * shape)
            sums += spectrum.real**2 + spectrum.imag**2
    return total.T, len(starts)


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
