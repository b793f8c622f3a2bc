//! The files of boards, locks and signals: what is none of ours is refused, and left as it is.

use std::path::Path;

use hairspring_device::{AccessTimes, DeviceError, Lines, LockFile, Protocol, VirtualBoard};
use hairspring_station::Signal;

use crate::timebase;

/// A letter that was named instead of a board was refused, but with zeros behind its end; the file of a signal had no
/// word to know it by, so firing one overwrote whatever was named.
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
        // An empty file is as good as none, and what was made is taken again.
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
        // As long as what it is taken for, also with a beginning of zeros.
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
