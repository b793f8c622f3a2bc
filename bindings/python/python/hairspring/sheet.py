"""Timing data sheets: takes, reads and shows them, and turns them into pandas DataFrames."""

from __future__ import annotations

import html
import json
import os
import shutil
from typing import Any, Iterable, Iterator, Optional, Union

from . import _hairspring

#: Columns of frame() that come from a row's figure.
_FIGURE = (
    "unit", "n", "min", "p1", "q1", "median", "q3", "p99", "p999", "max", "mad", "mean", "method", "overhead",
)  # fmt: skip


class Sheet:
    """A timing data sheet. ``sheet["delays.minimum.fifo.1us.late"]`` is a row; iterating yields the ids of the rows in reading order; ``sheet.dict`` is the whole document.

    The document is described by ``docs/sheet.schema.json``. A row has either a ``figure`` or is ``absent`` with a reason.
    """

    def __init__(self, text: str) -> None:
        self._json = _hairspring.read_sheet(text)
        #: The document.
        self.dict: dict[str, Any] = json.loads(self._json)

    def rows(self) -> Iterator[dict[str, Any]]:
        """All rows, in reading order."""
        for chapter in self.dict["chapters"]:
            for table in chapter["tables"]:
                yield from table["rows"]

    def __getitem__(self, id: str) -> dict[str, Any]:
        for row in self.rows():
            if row["id"] == id:
                return row
        raise KeyError(id)

    def __contains__(self, id: object) -> bool:
        return any(id == own for own in self)

    def __iter__(self) -> Iterator[str]:
        return (row["id"] for row in self.rows())

    def __len__(self) -> int:
        return sum(1 for _ in self.rows())

    def condition(self, id: str) -> Optional[str]:
        """The value of a fact of the machine, for instance ``cpu.model``; None if it could not be read."""
        return next((fact.get("value") for fact in self.dict["conditions"]["facts"] if fact["id"] == id), None)

    def frame(self):
        """All rows as a DataFrame, indexed by id: chapter, table, label, and the figure or the reason why it is absent."""
        rows = []
        for chapter in self.dict["chapters"]:
            for table in chapter["tables"]:
                for row in table["rows"]:
                    figure, absent = row.get("figure", {}), row.get("absent", {})
                    flat = {"id": row["id"], "chapter": chapter["id"], "table": table["title"], "label": row["label"]}
                    flat |= {name: figure.get(name) for name in _FIGURE}
                    flat |= {"absent": absent.get("reason"), "remedy": absent.get("remedy")}
                    rows.append(flat)
        columns = ["id", "chapter", "table", "label", *_FIGURE, "absent", "remedy"]
        return _pandas().DataFrame(rows, columns=columns).set_index("id")

    def series(self):
        """All points of the sheet's plots as a DataFrame, a row for each point."""
        rows = []
        for chapter in self.dict["chapters"]:
            for series in chapter["series"]:
                for line in series["lines"]:
                    for point in line["points"]:
                        rows.append({"series": series["id"], "line": line["name"], **point})
        return _pandas().DataFrame(rows, columns=["series", "line", "x", "y", "low", "high"])

    def text(self) -> str:
        """The sheet as text for a terminal."""
        return _hairspring.render(self._json, "text")

    def markdown(self) -> str:
        """The sheet as Markdown."""
        return _hairspring.render(self._json, "markdown")

    def html(self) -> str:
        """The sheet as a complete HTML page, with plots."""
        return _hairspring.render(self._json, "html")

    def json(self) -> str:
        """The document as JSON text, in the form that read_sheet() reads."""
        return self._json

    def save(self, path: Union[str, os.PathLike]) -> None:
        """Writes the document as JSON."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self._json)

    def _repr_html_(self) -> str:
        # The page has its own style; an iframe keeps that style out of the notebook.
        page = html.escape(self.html(), quote=True)
        return f'<iframe srcdoc="{page}" style="width: 100%; height: 40em; border: 0"></iframe>'

    def __repr__(self) -> str:
        rows = list(self.rows())
        absent = sum("absent" in row for row in rows)
        taken = self.dict["taken"]["start"]
        return f"<Sheet: {len(self.dict['chapters'])} chapters, {len(rows)} rows, {absent} absent, taken {taken}>"


def read_sheet(path: Union[str, os.PathLike]) -> Sheet:
    """Reads a sheet's JSON, as ``hairspring sheet --out sheet.json`` and ``Sheet.save`` write it.

    Raises OSError if the file cannot be read, and ValueError if it is not a sheet of this version.
    """
    with open(path, encoding="utf-8") as file:
        return Sheet(file.read())


def take_sheet(
    only: Iterable[str] = (),
    *,
    effort: str = "normal",
    cpu: Optional[int] = None,
    priority: int = 80,
    redact: bool = False,
    program: Union[str, os.PathLike, None] = None,
) -> Sheet:
    """Measures this computer, in this process and on the calling thread, which releases the GIL meanwhile.

    C and Tcl run the command instead. The figures include the effects of this process's settings and libraries. ``only`` lists beginnings
    of ids (``probes()`` lists the ids); ``effort`` is 'quick' (about 20 s for everything), 'normal' or 'thorough'. Rows that need a second
    process run ``program``, by default the command ``hairspring`` from the PATH; without it those rows are absent. Only the command
    measures disks. Other threads of this process that run Python code disturb the figures.

    Raises ValueError for invalid arguments, KeyboardInterrupt after Ctrl-C.
    """
    if isinstance(only, str):
        only = (only,)
    if program is None:
        program = shutil.which("hairspring")
    return Sheet(_hairspring.take_sheet(list(only), effort, cpu, priority, redact, program))


def _pandas():
    try:
        import pandas  # type: ignore
    except ImportError as error:
        raise ImportError("frames need pandas: pip install pandas; Sheet.dict does without") from error
    return pandas
