"""Measures how much of one worker's time two workers take for the power spectrum of a recording and for the search for triggers in it, on this
machine.

    python two_workers.py RECORDING LEVEL [ROUNDS]

Each worker is a process with one thread. The clusters take turns (one, two, two, one), so that what changes on the machine meanwhile
falls on both. The triggers are searched once before, so that both find the recording in memory as far as it fits. On a machine that does something
else, too, the ratios say more of the machine than of the workers.
"""

import os
import statistics
import sys
import time

from distributed import Client, LocalCluster
from find_triggers import find_triggers
from power_spectrum import WINDOW, periodograms, power_spectrum

import hairspring


def timed(recording, level, workers):
    """The seconds that so many workers take for each computation, without their start."""
    with LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        client.wait_for_workers(workers)
        # What a worker imports first is not part of the work.
        client.run(periodograms, recording[:WINDOW])
        begun = time.perf_counter()
        power_spectrum(recording)
        between = time.perf_counter()
        find_triggers(recording, level)
        return between - begun, time.perf_counter() - between


def main(path, level, rounds="2"):
    recording = hairspring.open_recording(path)
    find_triggers(recording, float(level))
    took = {1: [], 2: []}
    for workers in [1, 2, 2, 1] * int(rounds):
        spectrum, triggers = timed(recording, float(level), workers)
        took[workers].append((spectrum, triggers))
        print(f"workers={workers} spectrum_s={spectrum:.2f} triggers_s={triggers:.2f}", flush=True)
    one, two = ([statistics.median(seconds) for seconds in zip(*took[workers])] for workers in (1, 2))
    print(f"ratio_spectrum={two[0] / one[0]:.2f} ratio_triggers={two[1] / one[1]:.2f}", end=" ")
    print(f"load={os.getloadavg()[0]:.1f} cpus={len(os.sched_getaffinity(0))}")


if __name__ == "__main__":
    main(*sys.argv[1:])
