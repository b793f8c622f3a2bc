//! The tables of an archive.
//!
//! `document` holds the truth, one row for each sheet. The other tables are derived from it, but for `base`, which holds the texts that
//! documents are compressed beside. `conditions` and `quantity` hold what many sheets share once.

/// What SQLite's header says of the file: "Hspr".
pub const APPLICATION_ID: i64 = 0x4873_7072;

/// The version of the tables. A file of a greater one is refused.
pub const ARCHIVE_VERSION: i64 = 1;

/// What is not derived.
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

/// What can be made again.
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

/// Removes what can be made again.
pub(crate) const DROP_DERIVED: &str = "
DROP VIEW figures;
DROP TABLE figure;
DROP TABLE quantity;
DROP TABLE sheet;
DROP TABLE fact;
DROP TABLE conditions;
DROP TABLE machine;
";
