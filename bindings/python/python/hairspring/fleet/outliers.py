"""Machines that should be equal and are not: which differ, by how much, and what only they have.

Machines are equal if processor, product and number of CPUs are, and comparable if one build of Hairspring measured them with one effort. For each
row, the medians of a group's machines are compared as logarithms: a machine differs if it is further from their median than 25 %, than five
scaled median absolute deviations, and than three times the uncertainty of both medians. With thousands of such comparisons some pass by chance,
so the report says how many there were, and leaves out single rows below a factor of two.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from statistics import median
from typing import Any, Iterator, Optional

#: Fewer machines cannot say which of them is odd.
MACHINES_MIN = 3
_LEAST = math.log(1.25)
_DEVIATIONS = 5 * 1.4826
_UNCERTAINTIES = 3.0
#: A single row counts from this factor on.
_SINGLE = math.log(2.0)
#: Facts that name a machine or change from moment to moment: they explain nothing.
_MOVING = ("host.name", "load.", "cpu.frequency", "cpu.numa", "cpu.memory", "kernel.steal")
#: Facts that make machines equal.
_EQUAL = ("cpu.model", "host.product", "cpu.possible")


@dataclass
class Shift:
    """What rows of one chapter do on machines that differ."""

    chapter: str
    #: The factor to the group's median: its median over rows and machines, and its limits.
    factor: float
    least: float
    most: float
    rows: list[str]
    #: Whether all rows are times.
    times: bool


@dataclass
class Outliers:
    """Machines of a group that differ from the others in the same rows."""

    hosts: list[str]
    shifts: list[Shift]
    #: Facts that they share and no other machine has: label, their value, the value of most others.
    facts: list[tuple[str, str, str]] = field(default_factory=list)
    #: Findings that they share and most others lack: the text and the remedy.
    findings: list[tuple[str, str]] = field(default_factory=list)


@dataclass
class Group:
    """Equal machines."""

    name: str
    hosts: list[str]
    #: How many medians were compared: rows times machines.
    compared: int = 0
    #: Single rows below a factor of two that are not listed.
    single: int = 0
    outliers: list[Outliers] = field(default_factory=list)


def groups(sheets: dict[str, dict[str, Any]]) -> list[Group]:
    """The groups of equal machines among sheets by their machines' names, the largest first."""
    found: dict[tuple, dict[str, dict[str, Any]]] = {}
    for host, sheet in sheets.items():
        facts = _facts(sheet)
        build = sheet["hairspring"]
        key = (*(facts.get(id, "unknown") for id in _EQUAL), sheet["taken"]["effort"], build["version"], build["commit"] or "-")
        found.setdefault(key, {})[host] = sheet
    return sorted((_group(key, members) for key, members in found.items()), key=lambda group: (-len(group.hosts), group.name))


def _group(key: tuple, sheets: dict[str, dict[str, Any]]) -> Group:
    cpu, product, possible, effort, version, commit = key
    product = "" if product == "unknown" else f", {product}"
    group = Group(f"{cpu}{product}, CPUs {possible}; {effort}, hairspring {version} ({commit[:9]})", sorted(sheets))
    if len(sheets) < MACHINES_MIN:
        return group
    marked: dict[frozenset[str], dict[str, list[tuple[str, float, bool]]]] = {}
    for row, unit, medians in _rows(sheets):
        group.compared += len(medians)
        ratios = _odd(medians)
        if ratios:
            chapters = marked.setdefault(frozenset(ratios), {})
            middle = median(ratios.values())
            chapters.setdefault(row.split(".")[0], []).append((row, middle, unit == "ns"))
    for hosts, chapters in marked.items():
        rows = [row for chapter in chapters.values() for row in chapter]
        if len(rows) == 1 and abs(rows[0][1]) < _SINGLE:
            group.single += 1
            continue
        outliers = Outliers(sorted(hosts), [_shift(chapter, rows) for chapter, rows in chapters.items()])
        outliers.facts, outliers.findings = _only_they_have(hosts, sheets)
        group.outliers.append(outliers)
    group.outliers.sort(key=lambda one: -sum(len(shift.rows) for shift in one.shifts))
    return group


def _rows(sheets: dict[str, dict[str, Any]]) -> Iterator[tuple[str, str, dict[str, tuple[float, float]]]]:
    """Rows that enough machines have: id, unit, and median with its relative uncertainty by machine."""
    found: dict[tuple[str, str], dict[str, tuple[float, float]]] = {}
    for host, sheet in sheets.items():
        for chapter in sheet["chapters"]:
            for table in chapter["tables"]:
                for row in table["rows"]:
                    figure = row.get("figure")
                    if figure and figure.get("median") is not None and figure["median"] > 0:
                        low, high = figure.get("median_interval") or (figure["median"],) * 2
                        uncertain = (high - low) / 2 / figure["median"]
                        found.setdefault((row["id"], figure["unit"]), {})[host] = figure["median"], uncertain
    for (row, unit), medians in found.items():
        if len(medians) >= MACHINES_MIN:
            yield row, unit, medians


def _odd(medians: dict[str, tuple[float, float]]) -> dict[str, float]:
    """The machines that differ: the logarithm of their factor to the median of all."""
    logs = {host: math.log(value) for host, (value, _) in medians.items()}
    centre = median(logs.values())
    spread = median(abs(place - centre) for place in logs.values())
    usual = median(uncertain for _, uncertain in medians.values())
    odd = {}
    for host, place in logs.items():
        uncertain = math.hypot(medians[host][1], usual)
        if abs(place - centre) > max(_LEAST, _DEVIATIONS * spread, _UNCERTAINTIES * uncertain):
            odd[host] = place - centre
    return odd


def _shift(chapter: str, rows: list[tuple[str, float, bool]]) -> Shift:
    factors = [math.exp(ratio) for _, ratio, _ in rows]
    ordered = [row for row, ratio, _ in sorted(rows, key=lambda row: -abs(row[1]))]
    return Shift(chapter, median(factors), min(factors), max(factors), ordered, all(times for _, _, times in rows))


def _facts(sheet: dict[str, Any]) -> dict[str, str]:
    return {fact["id"]: fact["value"] for fact in sheet["conditions"]["facts"] if fact.get("value") is not None}


def _only_they_have(
    hosts: frozenset[str], sheets: dict[str, dict[str, Any]]
) -> tuple[list[tuple[str, str, str]], list[tuple[str, str]]]:
    facts = {host: _facts(sheet) for host, sheet in sheets.items()}
    labels = {fact["id"]: fact["label"] for sheet in sheets.values() for fact in sheet["conditions"]["facts"]}
    others = [host for host in sheets if host not in hosts]
    shared = []
    for id, label in labels.items():
        if id.startswith(_MOVING):
            continue
        own = {facts[host].get(id, "unknown") for host in hosts}
        usual = [facts[host].get(id, "unknown") for host in others]
        if len(own) == 1 and not own & set(usual):
            shared.append((label, own.pop(), max(usual, key=usual.count)))
    findings: dict[str, tuple[str, str]] = {}
    count: dict[str, set[str]] = {}
    for host, sheet in sheets.items():
        for finding in (sheet.get("summary") or {}).get("findings", []):
            # Numbers differ from machine to machine.
            kind = re.sub(r"[\d.,]+", "#", finding["text"])
            count.setdefault(kind, set()).add(host)
            if host in hosts:
                findings.setdefault(kind, (finding["text"], finding["remedy"]))
    ours = [told for kind, told in findings.items() if hosts <= count[kind] and 2 * len(count[kind] & set(others)) < len(others)]
    return shared, ours


def factor(shift: Shift) -> str:
    """A shift in words."""
    word = "take" if shift.times else "are"
    range_ = "" if shift.most / shift.least < 1.05 else f" ({shift.least:.2g} to {shift.most:.2g})"
    rows = "1 row" if len(shift.rows) == 1 else f"{len(shift.rows)} rows"
    word = word if len(shift.rows) > 1 else {"take": "takes", "are": "is"}[word]
    size = "as long" if shift.times else "as large"
    return f"{shift.chapter}: {rows} {word} {shift.factor:.2g} × {size}{range_}, such as {shift.rows[0]}"


def newest(archive: Any, effort: Optional[str] = None) -> dict[str, dict[str, Any]]:
    """The newest complete sheet of each machine of an archive, by its name."""
    last = {one.machine: one for one in archive if not one.interrupted and effort in (None, one.effort)}
    names: dict[str, dict[str, Any]] = {}
    for one in last.values():
        name = one.host or one.machine
        names[name if name not in names else f"{name} [{one.machine[:7]}]"] = archive[one.id].dict
    return names
