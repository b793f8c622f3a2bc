//! The tables of an archive.
//!
//! `document` holds the truth, one row for each sheet. The other tables are derived from it, but for `base`, which
//! holds the texts that documents are compressed beside. `conditions` and `quantity` hold what many sheets share once.

/// Application id in SQLite's header: "Hspr".
pub const APPLICATION_ID: i64 = 0x4873_7072;

/// The version of the tables. A file of a greater one is refused.
pub const ARCHIVE_VERSION: i64 = 1;

/// Tables with primary data.
pub(crate) const TRUTH: &str = "
CREATE TABLE base(
    number INTEGER PRIMARY KEY,
    machine TEXT NOT NULL,
    effort TEXT NOT NULL,
    packed BLOB NOT NULL
) STRICT;
CREATE INDEX base_machine ON base(machine, effort);
CREATE TABLE document(
    sheet INTEGER PRIMARY KEY,
    bytes INTEGER NOT NULL,
    base INTEGER REFERENCES base(number),
    packed BLOB NOT NULL
) STRICT;
";

/// Tables that a rebuild derives from the primary data.
pub(crate) const DERIVED: &str = "
CREATE TABLE machine(
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    host TEXT,
    cpu TEXT
) STRICT;
CREATE TABLE conditions(
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE
) STRICT;
CREATE TABLE fact(
    conditions INTEGER NOT NULL REFERENCES conditions(number),
    place INTEGER NOT NULL,
    id TEXT NOT NULL,
    label TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (conditions, place)
) STRICT, WITHOUT ROWID;
CREATE TABLE sheet(
    number INTEGER PRIMARY KEY REFERENCES document(sheet),
    id TEXT NOT NULL UNIQUE,
    taken_ns INTEGER NOT NULL,
    taken TEXT NOT NULL,
    machine INTEGER NOT NULL REFERENCES machine(number),
    conditions INTEGER NOT NULL REFERENCES conditions(number),
    version TEXT NOT NULL,
    build TEXT NOT NULL,
    effort TEXT NOT NULL,
    interrupted INTEGER NOT NULL,
    figures INTEGER NOT NULL,
    absent INTEGER NOT NULL
) STRICT;
CREATE INDEX sheet_machine ON sheet(machine, taken_ns);
CREATE TABLE quantity(
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL,
    unit TEXT NOT NULL,
    label TEXT NOT NULL,
    UNIQUE (id, unit)
) STRICT;
CREATE TABLE figure(
    sheet INTEGER NOT NULL REFERENCES sheet(number),
    quantity INTEGER NOT NULL REFERENCES quantity(number),
    n INTEGER NOT NULL,
    median REAL NOT NULL,
    half_width REAL,
    PRIMARY KEY (sheet, quantity)
) STRICT, WITHOUT ROWID;
CREATE VIEW figures AS
    SELECT sheet.id AS sheet, sheet.taken, sheet.taken_ns, machine.id AS machine, machine.host, quantity.id, quantity.label, quantity.unit,
           figure.n, figure.median, figure.half_width
    FROM figure JOIN sheet ON sheet.number = figure.sheet JOIN machine ON machine.number = sheet.machine
         JOIN quantity ON quantity.number = figure.quantity;
";

/// Sets the derived tables aside while they are made again.
pub(crate) const BEFORE: &str = "
DROP VIEW figures;
DROP INDEX sheet_machine;
ALTER TABLE machine RENAME TO before_machine;
ALTER TABLE conditions RENAME TO before_conditions;
ALTER TABLE fact RENAME TO before_fact;
ALTER TABLE sheet RENAME TO before_sheet;
ALTER TABLE quantity RENAME TO before_quantity;
ALTER TABLE figure RENAME TO before_figure;
";

/// Copies the derived rows of a document that cannot be read any more.
pub(crate) const KEEP: [&str; 6] = [
    "INSERT OR IGNORE INTO machine(id, host, cpu) SELECT m.id, m.host, m.cpu FROM before_machine m
     JOIN before_sheet s ON s.machine = m.number WHERE s.number = ?1",
    "INSERT OR IGNORE INTO conditions(id) SELECT c.id FROM before_conditions c
     JOIN before_sheet s ON s.conditions = c.number WHERE s.number = ?1",
    "INSERT OR IGNORE INTO fact SELECT c.number, f.place, f.id, f.label, f.value FROM before_fact f
     JOIN before_sheet s ON s.conditions = f.conditions JOIN before_conditions b ON b.number = s.conditions
     JOIN conditions c ON c.id = b.id WHERE s.number = ?1",
    "INSERT INTO sheet SELECT s.number, s.id, s.taken_ns, s.taken, m.number, c.number, s.version, s.build, s.effort, s.interrupted,
     s.figures, s.absent FROM before_sheet s
     JOIN before_machine bm ON bm.number = s.machine JOIN machine m ON m.id = bm.id
     JOIN before_conditions bc ON bc.number = s.conditions JOIN conditions c ON c.id = bc.id WHERE s.number = ?1",
    "INSERT OR IGNORE INTO quantity(id, unit, label) SELECT q.id, q.unit, q.label FROM before_figure f
     JOIN before_quantity q ON q.number = f.quantity WHERE f.sheet = ?1",
    "INSERT INTO figure SELECT f.sheet, q.number, f.n, f.median, f.half_width FROM before_figure f
     JOIN before_quantity b ON b.number = f.quantity JOIN quantity q ON q.id = b.id AND q.unit = b.unit WHERE f.sheet = ?1",
];

/// Removes the rows that were set aside.
pub(crate) const DROP_BEFORE: &str = "
DROP TABLE before_figure;
DROP TABLE before_quantity;
DROP TABLE before_sheet;
DROP TABLE before_fact;
DROP TABLE before_conditions;
DROP TABLE before_machine;
";
