"""A station that runs, as other processes see it.

    >>> from hairspring.station import Station
    >>> station = Station("shutter")            # hairspring serve station.toml --publish shutter
    >>> state = station.state()
    >>> state["phase"], state["units"][0]["events"]         # doctest: +SKIP
    ('Running', 12345)

The state is read from a page of shared memory that the station writes some ten times a second. Reading costs the station nothing, and a
station that is killed leaves its last state: ``state["validity"]`` is ``"live"``, ``"silent"`` or ``"torn"``. Counters are absolute since
the start of the station, which is ``state["started_realtime_ns"]``.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Union

from ._hairspring import StatePage, latency_edges_ns, station_folders

__all__ = ["LATENCY_EDGES_NS", "Station"]

#: The edges of the bins of ``histogram`` in nanoseconds: the first bin is below the first edge, the last from the last edge on.
LATENCY_EDGES_NS = tuple(latency_edges_ns())


class Station:
    """A station by the name that it is published under, or by its folder.

    Raises FileNotFoundError if no station was ever published there, and OSError if the file is another one.
    """

    def __init__(self, name: Union[str, os.PathLike[str]], *, silent_after: float = 2.0) -> None:
        folders = station_folders(name)
        there = [folder for folder in folders if (folder / "state").exists()]
        #: The folder in which the station publishes.
        self.folder: Path = (there or folders or [Path(name)])[0]
        self._page = StatePage(self.folder, round(silent_after * 1e9))

    def state(self) -> dict[str, Any]:
        """The latest state. Blocks for 20 ms at most. Raises OSError if no whole state was ever published."""
        return self._page.read()

    def __repr__(self) -> str:
        return f"<Station in {self.folder}>"
