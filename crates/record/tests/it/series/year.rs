//! A series of very many segments: memory, open files and metadata stay bounded.

use super::*;

#[test]
fn a_simulated_year_needs_no_more_memory_or_files_than_a_day() {
    let many = std::env::var("HAIRSPRING_PROOF").ok().and_then(|times| times.parse::<u64>().ok()).unwrap_or(1);
    let segments = 300 * many;
    let retention = Retention { segments: Some(5), ..Retention::default() };
    let frames = segments * BLOCK / 6;
    let case = Case { frames, blocks: 1, retention, ..Case::default() };
    let (mut most_open, mut most_files, mut most_index) = (0, 0, 0);
    // The memory of this process after the first thousand segments; an ordinary run is shorter, and other tests run
    // beside it.
    let mut memory = None;
    let Run { disk, ended, .. } = run(&case, Image::default(), |disk, number| {
        if number == 1000 && memory.is_none() {
            memory = Some(resident_bytes());
        }
        most_open = most_open.max(disk.open_files());
        most_files = most_files.max(disk.names());
        most_index = most_index.max(disk.length(&index_of(Path::new("a/x"))).unwrap_or(0));
    });
    let (outcome, summary) = ended.expect("recorded");
    assert!(u64::from(summary.segments) >= segments - 1, "{summary:?}");
    assert!(outcome.ledger.holds() && outcome.ledger.lost_bytes == 0, "{:?}", outcome.ledger);
    // Three segments of two files each are open at most, and one small file.
    assert!(most_open <= 8, "{most_open} open files");
    // Five closed segments, one that is being deleted, three under way; index and collection.
    assert!(most_files <= 3 * 9 + 2, "{most_files} files");
    assert!(most_index <= 64 * (1024 + 64), "{most_index} bytes of index");
    assert!(disk.inodes() <= 128, "{} inodes", disk.inodes());
    if let Some(before) = memory {
        let more = resident_bytes().saturating_sub(before);
        println!("figure: segments: {}", summary.segments);
        println!("figure: bytes of memory more than after 1,000 segments: {more}");
        println!("figure: most open files: {most_open}");
        println!("figure: most bytes of the index: {most_index}");
        assert!(more <= 8 << 20, "{more} bytes more than after 1,000 segments");
    }
}

/// Resident memory of this process.
fn resident_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = statm.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok());
    pages.expect("the kernel states it") * 4096
}
