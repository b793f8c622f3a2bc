"""What each host of a fleet answered, or why it did not."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Optional


@dataclass
class Answer:
    """A host's answer. Every host that was asked has one, with a reason and a remedy where there is no sheet."""

    #: Its name, or the worker's where the host never told it.
    host: str
    #: The worker that was asked.
    worker: str
    #: ``sheet``; ``partial`` for an interrupted sheet; ``silent``, ``died``, ``late``, ``busy``, ``skew``, ``failed`` or ``refused``.
    outcome: str
    reason: Optional[str] = None
    remedy: Optional[str] = None
    #: The id of its sheet in the archive.
    sheet: Optional[str] = None
    #: Whether the archive had no such sheet before.
    new: bool = False
    #: The time that its command took.
    took_s: Optional[float] = None
    #: How far its clock is ahead of the client's, and how well that is known.
    ahead_s: Optional[float] = None
    ahead_within_s: Optional[float] = None
    #: Version of its command, and of its Python and packages.
    command: Optional[str] = None
    versions: dict[str, str] = field(default_factory=dict)
    #: What its worker stopped while it was measured.
    quieted: list[str] = field(default_factory=list)
    #: Other workers on the same machine, which were not asked to measure.
    other_workers: list[str] = field(default_factory=list)
    #: Sheets of earlier runs, whose answers were lost, that were fetched now.
    recovered: list[str] = field(default_factory=list)
    #: What is worth a look, although there is a sheet.
    remarks: list[str] = field(default_factory=list)

    @property
    def has_sheet(self) -> bool:
        """Whether there is a sheet, complete or not."""
        return self.sheet is not None

    def object(self) -> dict[str, Any]:
        """The answer as an object of JSON, without empty fields."""
        return {name: value for name, value in vars(self).items() if value not in (None, [], {}, False)}
