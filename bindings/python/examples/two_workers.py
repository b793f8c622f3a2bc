"""Measures how much of one worker's time two workers take for the power spectrum of a recording, on this machine.

    python two_workers.py RECORDING [ROUNDS]

Each worker is a process with one thread. The clusters take turns (one, two, two, one), so that what changes on the machine meanwhile
falls on both. The recording is read once before, so that both find it in memory as far as it fits. On a machine that does something
else, too, the ratio says more of the machine than of the workers.
"""

import os
import statistics
import sys
import time

from distributed import Client, LocalCluster
from power_spectrum import WINDOW, periodograms, power_spectrum

import hairspring


def timed(recording, workers):
    """The seconds that so many workers take, without their start."""
    with LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        client.wait_for_workers(workers)
        # What a worker imports first is not part of the work.
        client.run(periodograms, recording[:WINDOW])
        begun = time.perf_counter()
        power_spectrum(recording)
        return time.perf_counter() - begun


def main(path, rounds="2"):
    recording = hairspring.open_recording(path)
    timed(recording, 1)
    took = {1: [], 2: []}
    for workers in [1, 2, 2, 1] * int(rounds):
        took[workers].append(timed(recording, workers))
        print(f"workers={workers} seconds={took[workers][-1]:.2f}", flush=True)
    ratio = statistics.median(took[2]) / statistics.median(took[1])
    print(f"ratio={ratio:.2f} load={os.getloadavg()[0]:.1f} cpus={len(os.sched_getaffinity(0))}")


if __name__ == "__main__":
    main(*sys.argv[1:])
