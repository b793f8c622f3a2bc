"""Reads a sheet and summarizes it: python read_sheet.py [sheet.json]."""

import pathlib
import sys

from hairspring import read_sheet

HISTORIC = pathlib.Path(__file__).parents[3] / "sheets" / "historic" / "fermilab-2007.json"

sheet = read_sheet(sys.argv[1] if len(sys.argv) > 1 else HISTORIC)
rows = list(sheet.rows())
print(f"host {sheet.condition('cpu.model') or 'unknown'}")
print(f"chapters {len(sheet.dict['chapters'])}")
print(f"rows {len(rows)}")
print(f"absent {sum('absent' in row for row in rows)}")
