"""What a fleet answered, and which of its machines differ: text and JSON."""

from __future__ import annotations

import textwrap
from dataclasses import asdict, dataclass
from typing import Any

from .answers import Answer
from .outliers import MACHINES_MIN, Group, factor, groups

#: Rows and facts beyond these say no more to people; JSON has all.
_SHIFTS_SHOWN = 6
_FACTS_SHOWN = 6
_WIDTH = 100


@dataclass
class FleetReport:
    """The answers of all hosts, and the groups of equal machines with those that differ."""

    answers: list[Answer]
    groups: list[Group]

    @staticmethod
    def of(answers: list[Answer], sheets: dict[str, dict[str, Any]]) -> FleetReport:
        """The report on these answers, and on these sheets by their hosts."""
        return FleetReport(sorted(answers, key=lambda answer: (answer.has_sheet, answer.host, answer.worker)), groups(sheets))

    @property
    def complete(self) -> bool:
        """Whether every host has a complete sheet."""
        return all(answer.outcome == "sheet" for answer in self.answers)

    def object(self) -> dict[str, Any]:
        """The report as an object of JSON."""
        return {
            "schema": "hairspring.fleet/1",
            "asked": len(self.answers),
            "answered": sum(answer.has_sheet for answer in self.answers),
            "partial": sum(answer.outcome == "partial" for answer in self.answers),
            "answers": [answer.object() for answer in self.answers],
            "groups": [asdict(group) for group in self.groups],
        }

    def text(self) -> str:
        """The report for a terminal."""
        lines: list[str] = []
        if self.answers:
            counts = self.object()
            partial = f", {counts['partial']} of them partial" if counts["partial"] else ""
            lines.append(f"{counts['asked']} hosts asked, {counts['answered']} sheets{partial}")
        for answer in self.answers:
            lines += _answer(answer)
        for group in self.groups:
            lines += ["", *_group(group)]
        return "\n".join(lines) + "\n"


def _wrapped(text: str, indent: int) -> list[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent=" " * indent, subsequent_indent=" " * (indent + 2))


def _answer(answer: Answer) -> list[str]:
    if answer.sheet is None:
        lines = _wrapped(f"{answer.host}  {answer.outcome}: {answer.reason}", 2)
    else:
        took = "" if answer.took_s is None else f"  {answer.took_s:.1f} s"
        lines = [f"  {answer.host}  sheet {answer.sheet[:8]}{took}"]
        if answer.reason:
            lines += _wrapped(f"{answer.outcome}: {answer.reason}", 4)
    if answer.remedy:
        lines += _wrapped(f"→ {answer.remedy}", 4)
    if answer.recovered:
        ids = ", ".join(id[:8] for id in answer.recovered)
        lines += _wrapped(f"fetched from its spool, of earlier runs: {ids}", 4)
    if answer.other_workers:
        lines += _wrapped(f"measured once; on the same machine: {', '.join(answer.other_workers)}", 4)
    for remark in answer.remarks:
        lines += _wrapped(f"! {remark}", 4)
    return lines


def _group(group: Group) -> list[str]:
    lines = _wrapped(f"{len(group.hosts)} equal machines: {group.name}", 0)
    if len(group.hosts) < MACHINES_MIN:
        return lines + [f"  too few to say which is odd: it takes {MACHINES_MIN}"]
    single = f"; {group.single} single rows by less than a factor of 2 are not listed" if group.single else ""
    lines += _wrapped(f"{group.compared} medians compared, {len(group.outliers)} sets of machines differ{single}", 2)
    for outliers in group.outliers:
        count, of = len(outliers.hosts), len(group.hosts)
        lines += _wrapped(f"{count} of {of} differ: {', '.join(outliers.hosts)}", 2)
        shifts = sorted(outliers.shifts, key=lambda shift: -len(shift.rows))
        for shift in shifts[:_SHIFTS_SHOWN]:
            lines += _wrapped(factor(shift), 4)
        for label, own, usual in outliers.facts[:_FACTS_SHOWN]:
            lines += _wrapped(f"only there  {label}: {own} (others: {usual})", 4)
        for text, remedy in outliers.findings:
            lines += _wrapped(f"only there  {text}", 4) + _wrapped(f"→ {remedy}", 6)
        if not outliers.facts and not outliers.findings:
            lines += _wrapped("no fact and no finding of their sheets explains it; compare two sheets: hairspring archive compare", 4)
    return lines
