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

import json
import os
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional, Union

from ._hairspring import StatePage, latency_edges_ns, station_folders

__all__ = ["LATENCY_EDGES_NS", "Description", "Refused", "Station"]

#: The edges of the bins of ``histogram`` in nanoseconds: the first bin is below the first edge, the last from the last edge on.
LATENCY_EDGES_NS = tuple(latency_edges_ns())

#: How long a station may take to answer, in seconds. It looks ten times a second.
PATIENCE_S = 5.0
#: The station takes requests of at most 512 bytes; an account is cut to so many characters.
_ACCOUNT_MOST = 100


class Refused(ValueError):
    """The station refused a value, in its own words. Nothing has changed."""


@dataclass(frozen=True)
class Description:
    """What a station publishes, as its file says: it does not change during a run."""

    #: The name that the station is published under.
    name: str
    #: How the names of its process variables begin.
    prefix: str
    #: A dictionary for each variable; names without the prefix.
    entries: tuple[dict[str, Any], ...]

    def variables(self, prefix: Optional[str] = None) -> list[dict[str, Any]]:
        """The variables with their whole names, under this prefix or the station's own."""
        begin = self.prefix if prefix is None else prefix
        return [{**entry, "name": begin + entry["suffix"]} for entry in self.entries]


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

    def description(self) -> Description:
        """What the station publishes. Raises OSError if the file is missing, and ValueError if it is another one."""
        text = (self.folder / "station.json").read_text(encoding="utf-8")
        try:
            read = json.loads(text)
            if read["schema"] != "hairspring.published/1":
                raise ValueError(f"the schema {read['schema']!r} is unknown")
            return Description(read["name"], read["prefix"], tuple(read["variables"]))
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"failed to read {self.folder / 'station.json'}: {error}; restart the station") from error

    def get(self, unit: str, name: str) -> int:
        """The value in force of a unit's property: ``enable``, ``late_after``, ``width`` or ``value``. Raises Refused."""
        return self._ask(f"get {unit}.{name}")

    def put(
        self,
        unit: str,
        name: str,
        value: int,
        *,
        cycle: Optional[int] = None,
        peer: Optional[str] = None,
        account: Optional[str] = None,
    ) -> None:
        """Sets a property that the station's file makes settable, and returns when the station has accepted it.

        The unit applies it at its next event, or at the event of `cycle`. `peer` and `account` name the client in the station's log. Raises
        Refused with the station's reason, and OSError if no station answers.
        """
        request = f"set {unit}.{name} {int(value)}"
        request += "" if cycle is None else f" cycle {int(cycle)}"
        request += "" if not peer else f" from {''.join(peer.split())}"
        request += "" if not account else f" as {account[:_ACCOUNT_MOST]}"
        self._ask(request)

    def _ask(self, request: str) -> int:
        path = self.folder / "command"
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as asking:
            asking.settimeout(PATIENCE_S)
            try:
                asking.connect(str(path))
                asking.send(request.encode())
                answer = asking.recv(4096).decode(errors="replace")
            except OSError as error:
                raise OSError(f"failed to ask the station at {path}: {error}; is it running?") from error
        word, _, rest = answer.partition(" ")
        if word == "ok":
            return int(rest)
        raise Refused(rest or "the station ended before it answered")

    def __repr__(self) -> str:
        return f"<Station in {self.folder}>"
