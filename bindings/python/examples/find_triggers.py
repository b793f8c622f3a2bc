"""Searches a recording for the frames where a channel rises through a level, on a Dask cluster or on the threads of this machine.

    python find_triggers.py RECORDING LEVEL [SCHEDULER]

A trigger needs hysteresis: after one the signal must fall below ``LEVEL - HYSTERESIS`` before the next counts. A task cannot know how the chunk
before its own ended, so it also returns what it found at its ends, and the chunks are joined at last.
"""

import sys

import dask
import numpy

import hairspring

HYSTERESIS = 100


def search(values, first_frame, level, low):
    """The triggers within a chunk; its first frame above the level if no frame below ``low`` comes earlier, or -1; and whether it ends armed,
    or None if it says nothing of that."""
    decisive = numpy.flatnonzero((values >= level) | (values < low))
    if not len(decisive):
        return numpy.empty(0, "i8"), -1, None
    is_high = values[decisive] >= level
    rises = decisive[1:][is_high[1:] & ~is_high[:-1]]
    return rises + first_frame, int(decisive[0] + first_frame) if is_high[0] else -1, not is_high[-1]


def find_triggers(recording, level, channel=0, hysteresis=HYSTERESIS, **chunks):
    """The numbers of all frames at which the channel rises through the level, in order."""
    rows = recording.to_dask(**chunks)[:, channel]
    firsts = numpy.cumsum((0,) + rows.chunks[0][:-1]) + recording.first_frame
    tasks = [
        dask.delayed(search)(chunk, int(first), level, level - hysteresis)
        for chunk, first in zip(rows.to_delayed().ravel(), firsts)
    ]
    found, armed = [], False  # what was before the first frame is unknown, so a signal that begins high is no trigger
    for rises, candidate, ends_armed in dask.compute(*tasks):
        if candidate >= 0 and armed:
            found.append(candidate)
        found.extend(rises.tolist())
        armed = armed if ends_armed is None else ends_armed
    return found


def main(path, level, scheduler=None):
    recording = hairspring.open_recording(path)
    if scheduler is not None:
        from distributed import Client

        Client(scheduler)  # dask.compute uses it from here on
    found = find_triggers(recording, float(level))
    print(f"frames={len(recording)} triggers={len(found)}")
    for frame in found[:10]:
        print(f"frame={frame} monotonic_ns={recording.time_of(frame)}")


if __name__ == "__main__":
    main(*sys.argv[1:])
