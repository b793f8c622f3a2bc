//! When the source lets datagrams gather.

use super::*;

#[test]
fn while_datagrams_come_fast_several_are_taken_together_and_a_pause_without_any_is_the_last() {
    let mut line = line(Some("u32be@1"), OnOverrun::Gap, Bytes::mib(1), None, Bytes::mib(4));
    let mut now = Instant::BOOT;
    let mut number = 0;
    let mut take = |line: &mut Line, count: u64, after: Nanos| {
        line.send(number..number + count);
        number += count;
        now += after;
        let next = line.source.service(now, &mut line.ring);
        line.listener.listen(u64::MAX);
        (next, now)
    };
    let slow = Nanos::from_millis(1);
    assert!(matches!(take(&mut line, 1, slow).0, Next::Readable(_)), "nothing is known of the pace");
    assert!(matches!(take(&mut line, 1, slow).0, Next::Readable(_)));
    // Add the time that the call itself took on this computer.
    let (next, called) = take(&mut line, 40, Nanos::from_micros(40));
    let Next::At(when) = next else { panic!("{next:?}") };
    assert!(when > called, "{next:?} at {called:?}");
    assert_eq!(line.source.counters().pauses, 1);
    assert!(matches!(take(&mut line, 0, MOST_PAUSE).0, Next::Readable(_)), "nothing came in the pause");
    assert!(matches!(take(&mut line, 1, slow).0, Next::Readable(_)));
    line.stop(End::Stopped);
    assert_eq!((line.listener.frame, line.gaps()), (43 * FRAMES, vec![]));
    assert_eq!(line.source.counters().pauses, 1);
}
