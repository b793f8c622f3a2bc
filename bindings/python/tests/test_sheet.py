"""Sheets: taking, reading and showing them, as dictionaries and as frames."""

import json
import pathlib
import sys

import pytest

import hairspring
from hairspring import Sheet, read_sheet, take_sheet

HISTORIC = pathlib.Path(__file__).parents[3] / "sheets" / "historic"


@pytest.fixture(scope="module")
def taken():
    return take_sheet(["clocks.read", "delays.minimum.other"])


def test_a_sheet_that_is_taken_has_what_was_asked_for(taken, tmp_path):
    ids = [row["id"] for row in taken.rows()]
    assert ids == hairspring.probes(["clocks.read", "delays.minimum.other"]) and len(ids) > 20
    assert all(("figure" in row) != ("absent" in row) for row in taken.rows())
    assert taken["clocks.read.now.later"]["figure"]["median"] > 0
    assert "Python module" in taken.dict["hairspring"]["flags"]
    taken.save(tmp_path / "sheet.json")
    assert read_sheet(tmp_path / "sheet.json").dict == taken.dict


def test_a_frame_has_a_row_for_each_row(taken):
    pandas = pytest.importorskip("pandas")
    frame = taken.frame()
    assert isinstance(frame, pandas.DataFrame) and list(frame.index) == [row["id"] for row in taken.rows()]
    now = frame.loc["clocks.read.now.later"]
    assert now["unit"] == "ns" and now["min"] <= now["median"] <= now["max"] and now["chapter"] == "clocks"
    series = taken.series()
    assert list(series.columns) == ["series", "line", "x", "y", "low", "high"]


def test_absent_rows_of_a_frame_say_why():
    pytest.importorskip("pandas")
    sheets = [read_sheet(file) for file in sorted(HISTORIC.glob("*.json"))]
    assert len(sheets) > 5
    for sheet in sheets:
        frame = sheet.frame()
        assert (frame["absent"].isna() == frame["unit"].notna()).all()


def test_series_have_a_row_for_each_point():
    pytest.importorskip("pandas")
    for file in HISTORIC.glob("*.json"):
        sheet = read_sheet(file)
        lines = [line for chapter in sheet.dict["chapters"] for series in chapter["series"] for line in series["lines"]]
        assert len(sheet.series()) == sum(len(line["points"]) for line in lines)


def test_a_sheet_is_shown_in_every_form():
    sheet = read_sheet(HISTORIC / "fermilab-2007.json")
    assert "Pentium" in sheet.text() and "Pentium" in sheet.markdown() and "<html" in sheet.html()
    assert "fermilab" not in repr(sheet) and "chapters" in repr(sheet)
    shown = sheet._repr_html_()
    # In an iframe, which keeps its style inside; no text of the page ends the attribute.
    assert shown.startswith('<iframe srcdoc="') and shown.count('"') == 4 and "&lt;html" in shown
    assert json.loads(sheet.json()) == sheet.dict
    assert sheet.condition("cpu.model").startswith("Pentium") and sheet.condition("no.such") is None


def test_a_row_that_is_not_there_is_a_key_error():
    with pytest.raises(KeyError):
        read_sheet(HISTORIC / "fermilab-2007.json")["no.such.row"]


def test_a_sheet_says_which_rows_it_has():
    sheet = read_sheet(HISTORIC / "fermilab-2007.json")
    ids = [row["id"] for row in sheet.rows()]
    assert list(sheet) == ids and len(sheet) == len(ids) > 0
    assert all(id in sheet for id in ids) and "no.such.row" not in sheet and 0 not in sheet


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "JSON"),
        ("{", "too early"),
        ("[]", "schema"),
        ('{"schema": "hairspring.sheet/99"}', "version"),
        ('{"schema": "hairspring.sheet/1"}', "missing field"),
    ],
)
def test_what_is_no_sheet_is_told(tmp_path, text, said):
    file = tmp_path / "sheet.json"
    file.write_text(text)
    with pytest.raises(ValueError, match=said):
        read_sheet(file)


def test_files_that_cannot_be_read_are_told(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_sheet(tmp_path / "none.json")
    (tmp_path / "binary.json").write_bytes(b"\xff\xfe")
    with pytest.raises(ValueError):
        read_sheet(tmp_path / "binary.json")
    with pytest.raises(TypeError):
        Sheet(3)


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        ({"only": ["clocks.rea"]}, ValueError),
        ({"only": [""]}, ValueError),
        ({"only": [3]}, TypeError),
        ({"only": "clocks.read", "effort": "some"}, ValueError),
        ({"only": "clocks.read", "cpu": 4_000}, ValueError),
        ({"only": "clocks.read", "priority": 0}, ValueError),
        ({"only": "clocks.read", "priority": 300}, OverflowError),
    ],
    ids=repr,
)
def test_sheets_that_cannot_be_taken_are_refused(asked, error):
    with pytest.raises(error):
        take_sheet(**asked)


def test_without_pandas_a_frame_says_what_to_do(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="pip install pandas"):
        read_sheet(HISTORIC / "fermilab-2007.json").frame()
