"""The bridge: looks at a station's state and says what has changed, with stamps and alarms. It knows nothing of p4p."""

from __future__ import annotations

import time
from typing import Any, Callable, Optional

from ..station import LATENCY_EDGES_NS
from .values import FROM_DEVICE, FROM_RECORD, INVALID, MAJOR, MINOR, UNKNOWN, Alarm, Stamp

#: An alarm for what was late, missed or lost stays for so long after the last time.
ALARM_WINDOW_S = 10.0
#: A latency is posted when it differs by more than this share from the last that was posted.
DEAD_BAND = 0.01
#: A rate is a mean over at least so long; tables and histograms are posted no more often.
SLOW_NS = 1_000_000_000
#: The bins of histograms: below the first edge, between edges, and up to an hour.
RANGES = [0, *LATENCY_EDGES_NS, 3_600_000_000_000]

#: Posts a variable: its description, the new value or None, its alarm, its stamp or None.
Post = Callable[[dict[str, Any], Any, Alarm, Optional[Stamp]], None]


class _Recent:
    """Counters that have risen within the window."""

    def __init__(self) -> None:
        self._last: dict[str, int] = {}
        self._until: dict[str, float] = {}

    def rose(self, name: str, count: int, now: float) -> bool:
        before = self._last.get(name, count)
        self._last[name] = count
        if count > before:
            self._until[name] = now + ALARM_WINDOW_S
        return now < self._until.get(name, float("-inf"))


def limit_alarm(limits: dict[str, Any], value: int, severity: int) -> Alarm:
    """The alarm of a value by its limits, if its alarm so far has this severity: an alarm ends only below its limit less the hysteresis."""
    for name, reached in (("major", MAJOR), ("minor", MINOR)):
        limit = limits[name]
        if limit is not None and value >= (limit - limits["hysteresis"] + 1 if severity >= reached else limit):
            return Alarm(reached, FROM_RECORD, f"at least {limit} ns")
    return Alarm()


class Bridge:
    """Posts the variables of a description whenever the station's state has changed.

    `look` returns the state, or raises OSError. `clock` is in seconds, for the windows of alarms.
    """

    def __init__(
        self,
        variables: list[dict[str, Any]],
        look: Callable[[], dict[str, Any]],
        post: Post,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._variables, self._look, self._post, self._clock = variables, look, post, clock
        self._posted: dict[str, tuple[Any, Alarm]] = {}
        self._stamps: dict[str, int] = {}
        self._recent = _Recent()
        self._rates: dict[int, tuple[int, int, float]] = {}
        self._slow_ns: dict[str, int] = {}
        self._by_limits: dict[str, int] = {}
        self._run: Optional[int] = None

    def step(self) -> bool:
        """Looks once and posts what has changed. Whether the station is live."""
        try:
            state = self._look()
        except OSError as error:
            self._all_invalid(str(error))
            return False
        if state["validity"] != "live":
            torn = state["validity"] == "torn"
            self._all_invalid("the station died while it wrote" if torn else "the station is silent")
            return False
        if state["started_realtime_ns"] != self._run:
            # Another run: its counters begin anew, which is no alarm, and its first values are posted.
            self._run, self._recent, self._rates, self._slow_ns = state["started_realtime_ns"], _Recent(), {}, {}
        now = self._clock()
        alarms = [self._alarm(state, unit, now) for unit in state["units"]]
        for variable in self._variables:
            index = variable["index"]
            if index is None:
                self._station(variable, state)
            elif index < len(state["units"]):
                self._unit(variable, state, state["units"][index], alarms[index])
        return True

    def _alarm(self, state: dict[str, Any], unit: dict[str, Any], now: float) -> Alarm:
        rose = {name: self._recent.rose(f"{unit['name']}.{name}", unit[name], now) for name in ("missed", "unrecorded", "late")}
        if rose["missed"]:
            return Alarm(MAJOR, FROM_RECORD, "events were missed")
        if rose["unrecorded"]:
            return Alarm(MAJOR, FROM_RECORD, "stamps were lost")
        if rose["late"]:
            return Alarm(MINOR, FROM_RECORD, "actions were late")
        return Alarm()

    def _station(self, variable: dict[str, Any], state: dict[str, Any]) -> None:
        stamp, key = Stamp(state["published_realtime_ns"]), variable["key"]
        fault = Alarm(MAJOR, FROM_DEVICE, state["message"]) if state["phase"] == "Fault" else Alarm()
        if key == "phase":
            self._change(variable, variable["choices"].index(state["phase"]), fault, stamp)
        elif key == "units":
            if self._is_due(variable, state):
                self._change(variable, [_row(unit) for unit in state["units"]], Alarm(), stamp)
        else:
            self._change(variable, state[key], fault if key == "message" else Alarm(), stamp)

    def _unit(self, variable: dict[str, Any], state: dict[str, Any], unit: dict[str, Any], alarm: Alarm) -> None:
        key, kind = variable["key"], variable["kind"]
        event_ns = unit["event_realtime_ns"]
        stamp = Stamp(state["published_realtime_ns"] if event_ns is None else event_ns, unit["cycle"])
        if variable["role"] in ("set", "read"):
            value = unit["properties"][key]["set_point" if variable["role"] == "set" else "read_back"]
            # Set by people, not by events.
            self._change(variable, value, Alarm(), Stamp(state["published_realtime_ns"], unit["cycle"]))
        elif kind == "rate":
            rate = self._rate(variable["index"], state["published_ns"], unit["events"])
            if rate is not None:
                self._change(variable, rate, Alarm(), Stamp(state["published_realtime_ns"]))
        elif kind == "histogram":
            if self._is_due(variable, state):
                self._change(variable, unit["histogram"], Alarm(), stamp)
        else:
            value = UNKNOWN if unit[key] is None else unit[key]
            last = self._posted.get(variable["name"])
            alarm = alarm if key in _ALARMS else Alarm()
            if variable.get("alarm") is not None:
                alarm = limit_alarm(variable["alarm"], value, self._by_limits.get(variable["name"], 0))
                self._by_limits[variable["name"]] = alarm.severity
            if kind == "latency" and last is not None and last[1] == alarm and abs(value - last[0]) <= DEAD_BAND * abs(last[0]):
                return
            self._change(variable, value, alarm, stamp)

    def _rate(self, index: int, at_ns: int, events: int) -> Optional[float]:
        begun = self._rates.get(index)
        if begun is None:
            self._rates[index] = (at_ns, events, 0.0)
            return None
        since_ns = at_ns - begun[0]
        if since_ns < SLOW_NS:
            return None
        rate = (events - begun[1]) * 1e9 / since_ns
        self._rates[index] = (at_ns, events, rate)
        return rate

    def _is_due(self, variable: dict[str, Any], state: dict[str, Any]) -> bool:
        name, at_ns = variable["name"], state["published_ns"]
        if at_ns - self._slow_ns.get(name, -SLOW_NS) < SLOW_NS:
            return False
        self._slow_ns[name] = at_ns
        return True

    def _change(self, variable: dict[str, Any], value: Any, alarm: Alarm, stamp: Stamp) -> None:
        name = variable["name"]
        if self._posted.get(name) == (value, alarm):
            return
        # Archivers drop a sample whose stamp goes backwards, as it does when the kernel's clock is set.
        ns = max(stamp.ns, self._stamps.get(name, stamp.ns))
        self._posted[name], self._stamps[name] = (value, alarm), ns
        self._post(variable, value, alarm, Stamp(ns, stamp.cycle))

    def _all_invalid(self, why: str) -> None:
        alarm = Alarm(INVALID, FROM_DEVICE, why)
        for variable in self._variables:
            name = variable["name"]
            value, last = self._posted.get(name, (None, Alarm()))
            if last != alarm:
                # The last value and its stamp stay.
                self._posted[name] = (value, alarm)
                self._post(variable, None, alarm, None)


#: What shows the alarm of its unit.
_ALARMS = frozenset({"events", "missed", "late", "unrecorded"})


def _row(unit: dict[str, Any]) -> dict[str, Any]:
    known = {"Median_ns": unit["median_ns"], "Max_ns": unit["max_ns"]}
    return {
        "Unit": unit["name"],
        "Events": unit["events"],
        "Missed": unit["missed"],
        "Late": unit["late"],
        "Overrun": unit["overrun"],
        **{name: UNKNOWN if value is None else value for name, value in known.items()},
    }
