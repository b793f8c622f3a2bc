"""Reads the archive of sheets: figures of many sheets as a frame, and one sheet with all its statistics."""

import sys

import hairspring

kept = hairspring.archive(*sys.argv[1:])  # without a path that of `hairspring archive`
print(kept)

figures = kept.frame("clocks.read.*")  # pandas: a row for each figure of each sheet
print(figures.groupby(["host", "id"], observed=True)["median"].agg(["count", "min", "max"]))

newest = list(kept)[-1]
print(kept[newest.id].frame()["p99"].describe())
