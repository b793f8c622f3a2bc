"""The PV Access server of a bridge: a PV for each variable, and the way of a put to the station and back."""

from __future__ import annotations

import logging
from typing import Any, Optional

from p4p.server import Server  # type: ignore[import-untyped,import-not-found]
from p4p.server.thread import SharedPV  # type: ignore[import-untyped,import-not-found]

from ..station import Refused, Station
from . import values
from .bridge import RANGES, Bridge

LOG = logging.getLogger("hairspring.epics")


class _Puts:
    """Hands the puts of one set-point to the station, and waits for its answer. The station checks limits and accounts."""

    def __init__(self, station: Station, variable: dict[str, Any]) -> None:
        self._station, self._variable = station, variable

    def put(self, pv: SharedPV, op: Any) -> None:
        variable, name = self._variable, self._variable["name"]
        asked = op.value()
        field = "value.index" if variable["kind"] == "switch" else "value"
        peer, account = op.peer(), op.account()
        if not asked.changed(field):
            op.done(error=f"{name}: put a value")
            return
        value = int(asked[field])
        cycle: Optional[int] = int(asked["cycle"]) if asked.changed("cycle") else None
        if cycle is not None and cycle < 0:
            cycle = None
        try:
            self._station.put(variable["unit_name"], variable["key"], value, cycle=cycle, peer=peer, account=account)
        except (Refused, OSError) as refused:
            LOG.warning("put %s %s by %s at %s: refused: %s", name, value, account, peer, refused)
            op.done(error=f"{name}: {refused}")
            return
        LOG.info("put %s %s by %s at %s", name, value, account, peer)
        # The bridge posts the set-point and the read-back when the station's state shows them.
        op.done()


class Service:
    """Serves the variables of a station until it is closed."""

    def __init__(self, station: Station, variables: list[dict[str, Any]], conf: Optional[dict[str, str]] = None) -> None:
        self.pvs: dict[str, SharedPV] = {}
        for variable in variables:
            handler = _Puts(station, variable) if variable["role"] == "set" else None
            self.pvs[variable["name"]] = SharedPV(handler=handler, initial=values.first(variable, RANGES))
        self.bridge = Bridge(variables, station.state, self._post)
        self.bridge.step()
        if conf is None:
            self.server = Server(providers=[self.pvs], isolate=True)
        else:
            self.server = Server(providers=[self.pvs], conf=conf, useenv=False)

    def _post(self, variable: dict[str, Any], value: Any, alarm: values.Alarm, stamp: Optional[values.Stamp]) -> None:
        self.pvs[variable["name"]].post(values.update(variable, value, alarm, stamp))

    def close(self) -> None:
        """Ends all connections."""
        self.server.stop()
        for pv in self.pvs.values():
            pv.close(destroy=True)

    def __enter__(self) -> Service:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()
