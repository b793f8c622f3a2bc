"""The archive of sheets: the file of ``hairspring archive``, as lists, sheets and pandas DataFrames."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Iterable, Iterator, NamedTuple, Optional, Union

from . import _hairspring
from .sheet import Sheet, _pandas

_Path = Union[str, os.PathLike]


class ArchivedSheet(NamedTuple):
    """A sheet of an archive, without its figures."""

    #: The hash of its content; the first eight digits name it to people.
    id: str
    #: When it was taken, by the clock of its machine, in nanoseconds since 1970.
    taken_ns: int
    machine: str
    host: Optional[str]
    cpu: Optional[str]
    #: Equal numbers, equal conditions. The numbers mean nothing else, and are those of this archive.
    conditions: int
    version: str
    effort: str
    interrupted: bool
    figures: int
    absent: int


class Archive:
    """An archive of sheets. Iterating yields an ArchivedSheet for each, the oldest first; ``archive["1f0c77"]`` is the Sheet whose id begins so.

    Threads may share it, and other processes may write meanwhile. Methods raise ValueError for what is no sheet, KeyError for a sheet or
    machine that is not there, and OSError if the file cannot be read or written; an addition that fails changes nothing.
    """

    def __init__(self, path: _Path, create: bool = False) -> None:
        self.path = Path(path)
        self._archive = _hairspring.SheetArchive(self.path, create)

    def add(self, sheet: Union[Sheet, str]) -> tuple[str, bool]:
        """Adds a sheet, or its JSON. Returns its id, and whether it is new. When this returns, the sheet is on the disk."""
        return self._archive.add(sheet.json() if isinstance(sheet, Sheet) else sheet)

    def __iter__(self) -> Iterator[ArchivedSheet]:
        return iter([ArchivedSheet(*one) for one in self._archive.sheets()])

    def __len__(self) -> int:
        return len(self._archive.sheets())

    def __getitem__(self, id: str) -> Sheet:
        return Sheet(self._archive.json(id))

    def frame(
        self, only: Union[str, Iterable[str]] = (), *, machine: Optional[str] = None, effort: Optional[str] = None
    ) -> Any:
        """The figures as a DataFrame, a row for each figure of each sheet, the oldest sheet first.

        ``only`` names rows: ids, beginnings of ids up to a dot, or beginnings with a ``*`` at the end. ``machine`` is a name or the beginning
        of an id. Columns: ``taken`` (UTC, nanoseconds), ``machine``, ``host``, ``conditions``, ``effort``, ``interrupted``, ``sheet``, ``id``,
        ``label``, ``unit``, ``n``, ``median``, ``half_width`` (half of the interval that holds the median in 95 % of cases). Other statistics
        are in the sheets: ``archive[id].frame()``. Needs pandas.
        """
        pandas = _pandas()
        sheets, quantities, columns = self._archive.figures(_several(only), machine, effort)
        sheet, quantity, n, median, half_width = columns
        listed = [ArchivedSheet(*one) for one in sheets]

        def of(places: list[int], values: list[Any]) -> Any:
            # Few texts and many rows: the frame has each text once.
            known = list(dict.fromkeys(values))
            code = {value: number for number, value in enumerate(known)}
            by_place = [code[value] for value in values]
            return pandas.Categorical.from_codes([by_place[place] for place in places], known)

        taken = pandas.to_datetime([listed[place].taken_ns for place in sheet], unit="ns", utc=True)
        return pandas.DataFrame(
            {
                "taken": taken,
                "machine": of(sheet, [one.machine for one in listed]),
                "host": of(sheet, [one.host or "unknown" for one in listed]),
                "conditions": [listed[place].conditions for place in sheet],
                "effort": of(sheet, [one.effort for one in listed]),
                "interrupted": [listed[place].interrupted for place in sheet],
                "sheet": of(sheet, [one.id for one in listed]),
                "id": of(quantity, [one[0] for one in quantities]),
                "label": of(quantity, [one[2] for one in quantities]),
                "unit": of(quantity, [one[1] for one in quantities]),
                "n": n,
                "median": median,
                "half_width": pandas.array(half_width, dtype="float64"),
            }
        )

    def trends(
        self, only: Union[str, Iterable[str]], *, machine: Optional[str] = None, effort: Optional[str] = None
    ) -> list[dict[str, Any]]:
        """What became of figures of one machine over months, as ``hairspring archive trend --format json`` writes it."""
        return json.loads(self._archive.trends(_several(only), machine, effort))

    def __repr__(self) -> str:
        return f"<Archive {self.path}: {len(self)} sheets>"


def _several(only: Union[str, Iterable[str]]) -> list[str]:
    return [only] if isinstance(only, str) else list(only)


def archive_path() -> Path:
    """The archive that the command uses without ``--archive``."""
    named = os.environ.get("XDG_DATA_HOME", "")
    data = Path(named) if os.path.isabs(named) else Path.home() / ".local" / "share"
    return data / "hairspring" / "sheets.db"


def archive(path: Optional[_Path] = None, *, create: bool = False) -> Archive:
    """Opens an archive of sheets; without a path that of the command ``hairspring archive``. ``create`` makes it if there is none.

    Raises FileNotFoundError if there is none, ValueError if the file is no archive or a later version wrote it; then nothing changes.
    """
    return Archive(archive_path() if path is None else path, create)
