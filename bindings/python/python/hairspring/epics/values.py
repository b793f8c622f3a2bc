"""The types of PV Access that the bridge serves, and how a value is put into one. p4p has no NTHistogram, so this file makes one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Optional

from p4p import Type, Value  # type: ignore[import-untyped,import-not-found]
from p4p.nt import NTEnum, NTScalar, NTTable  # type: ignore[import-untyped,import-not-found]
from p4p.nt.common import alarm, timeStamp  # type: ignore[import-untyped,import-not-found]

#: Severities of alarms.
NO_ALARM, MINOR, MAJOR, INVALID = range(4)
#: Where an alarm comes from: the device, or limits of the record.
FROM_DEVICE, FROM_RECORD = 1, 3

_HISTOGRAM = Type(
    id="epics:nt/NTHistogram:1.0",
    spec=[
        ("ranges", "ad"),
        ("value", "al"),
        ("descriptor", "s"),
        ("alarm", alarm),
        ("timeStamp", timeStamp),
    ],
)
#: The columns of the table of units, and their types.
TABLE = [("Unit", "as"), *((name, "al") for name in ("Events", "Missed", "Late", "Overrun", "Median_ns", "Max_ns"))]
#: The value of a number that is not known yet.
UNKNOWN = -1


@dataclass(frozen=True)
class Alarm:
    """The alarm of a variable."""

    severity: int = NO_ALARM
    status: int = 0
    message: str = ""


@dataclass(frozen=True)
class Stamp:
    """When a value came to be, and the cycle that it belongs to."""

    ns: int
    cycle: Optional[int] = None

    def fields(self) -> dict[str, int]:
        # The tag of a stamp has 32 bits with a sign.
        return {
            "secondsPastEpoch": self.ns // 1_000_000_000,
            "nanoseconds": self.ns % 1_000_000_000,
            "userTag": (self.cycle or 0) & 0x7FFFFFFF,
        }


#: The types so far. An update must have the very type of its PV.
_TYPES: dict[tuple[str, str], Type] = {}


def _type(kind: str, role: str) -> Type:
    """The type of variables of a kind: one object for all of them."""
    if (kind, role) not in _TYPES:
        _TYPES[kind, role] = _built(kind, role)
    return _TYPES[kind, role]


def _built(kind: str, role: str) -> Type:
    if kind == "histogram":
        return _HISTOGRAM
    if kind == "table":
        return NTTable.buildType(TABLE)
    if kind == "text":
        return NTScalar.buildType("s", display=True)
    extra = [("cycle", "l")] if role == "set" else []
    if kind in ("phase", "switch"):
        return NTEnum.buildType(extra=extra, display=True)
    code = "d" if kind == "rate" else "l"
    return NTScalar.buildType(code, extra=extra, display=True, control=True, valueAlarm=True, form=True)


def first(variable: dict[str, Any], ranges: list[int]) -> Value:
    """A value with all that never changes: description, unit, limits, choices."""
    kind = variable["kind"]
    value = _type(kind, variable["role"])()
    if kind == "histogram":
        value["ranges"], value["value"] = ranges, [0] * (len(ranges) - 1)
        value["descriptor"] = variable["description"]
        return value
    if kind == "table":
        value["labels"] = [name for name, _ in TABLE]
        value["descriptor"] = variable["description"]
        return value
    value["display.description"] = variable["description"]
    if kind == "text":
        return value
    if variable["role"] == "set":
        value["cycle"] = UNKNOWN
    if kind in ("phase", "switch"):
        value["value.choices"] = variable["choices"]
        return value
    value["display.units"] = variable["unit"]
    value["display.form.choices"] = ["Default", "String", "Binary", "Decimal", "Hex", "Exponential", "Engineering"]
    if variable.get("least") is not None:
        for group in ("display", "control"):
            value[f"{group}.limitLow"], value[f"{group}.limitHigh"] = variable["least"], variable["most"]
        value["control.minStep"] = 1
    if variable.get("alarm") is not None:
        _limit(value, variable["alarm"])
    value["value"] = 0 if kind == "rate" or kind == "counter" else UNKNOWN
    return value


def _limit(value: Value, limits: dict[str, Any]) -> None:
    """The limits from which on the value is an alarm. A limit that there is not has the severity 0."""
    value["valueAlarm.active"] = True
    for field, name, severity in (("highWarning", "minor", MINOR), ("highAlarm", "major", MAJOR)):
        if limits[name] is not None:
            value[f"valueAlarm.{field}Limit"], value[f"valueAlarm.{field}Severity"] = limits[name], severity
    value["valueAlarm.hysteresis"] = limits["hysteresis"]


def update(variable: dict[str, Any], value: Any, alarm_: Alarm, stamp: Optional[Stamp]) -> Value:
    """What is posted. Without a value, or without a stamp, the one that is there stays."""
    posted = _type(variable["kind"], variable["role"])()
    if value is not None:
        if variable["kind"] in ("phase", "switch"):
            posted["value.index"] = value
        elif variable["kind"] == "table":
            for name, _ in TABLE:
                posted[f"value.{name}"] = [row[name] for row in value]
        else:
            posted["value"] = value
    posted["alarm"] = {"severity": alarm_.severity, "status": alarm_.status, "message": alarm_.message}
    if stamp is not None:
        posted["timeStamp"] = stamp.fields()
    return posted
