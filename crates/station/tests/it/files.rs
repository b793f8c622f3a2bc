//! The files of boards, locks and signals: files of another kind are refused and left as they are.

use std::path::Path;

use hairspring_device::{AccessTimes, DeviceError, Lines, LockFile, Protocol, VirtualBoard};
use hairspring_station::Signal;

use crate::timebase;

/// A letter given instead of a board was refused, but extended with zeros; the file of a signal had no magic word, so
/// firing one overwrote any file.
#[test]
fn a_file_that_is_something_else_is_refused_and_left_as_it_is() {
    type Opened<'a> = &'a dyn Fn(&Path) -> Result<(), DeviceError>;
    let (folder, timebase) = (tempfile::tempdir().expect("a folder"), timebase());
    let board =
        |path: &Path| VirtualBoard::open(path, AccessTimes::ZERO, Lines(0), Protocol::None, &timebase).map(drop);
    let signal = |path: &Path| Signal::open(path).map(drop);
    let lock = |path: &Path| LockFile::open(path, Protocol::None).map(drop);
    let kinds: [(&str, Opened<'_>); 3] = [("board", &board), ("signal", &signal), ("lock", &lock)];
    for (name, open) in kinds {
        let file = folder.path().join(name);
        std::fs::write(&file, "").expect("written");
        // An empty file counts as new, and an initialised file is used again.
        for _ in 0..2 {
            open(&file).unwrap_or_else(|error| panic!("{name}: {error}"));
        }
        assert!(
            open(&folder.path().join("none").join(name)).is_err_and(|error| error.to_string().contains("No such file"))
        );
    }
    let length = |name: &str| std::fs::metadata(folder.path().join(name)).expect("a file").len() as usize;
    let mut letters = vec![b"Dear Sir or Madam".to_vec(), vec![0; 5000], vec![b'x'; 10_000]];
    for name in ["board", "lock"] {
        // Files with the right length, also with zeros at the beginning.
        letters.extend([vec![b'x'; length(name)], [vec![0; 8], vec![b'x'; length(name) - 8]].concat()]);
    }
    letters.extend(kinds.map(|(name, _)| std::fs::read(folder.path().join(name)).expect("read")));
    let letter = folder.path().join("letter");
    for content in letters {
        for (name, open) in kinds {
            if std::fs::read(folder.path().join(name)).expect("read") == content {
                continue;
            }
            std::fs::write(&letter, &content).expect("written");
            let error = open(&letter).expect_err("it has another content").to_string();
            assert!(error.contains("another content") && error.contains("name a"), "{name}: {error}");
            assert!(std::fs::read(&letter).expect("read") == content, "{name}: it was changed");
        }
    }
}
