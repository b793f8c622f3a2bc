//! Lists of CPUs as the kernel writes them.

use super::super::cpu_list::{parse, written};
use proptest::prelude::*;

#[test]
fn lists_are_read_as_the_kernel_writes_them() {
    assert_eq!(parse("0-3,8"), Some(vec![0, 1, 2, 3, 8]));
    assert_eq!(parse("5 1-2 1"), Some(vec![1, 2, 5]));
    assert_eq!(parse(" \n"), Some(vec![]));
    assert_eq!(parse("0-8191").map(|cpus| cpus.len()), Some(8192));
    // The limit is on how many CPUs are named, not on their numbers.
    assert_eq!(parse("8000-8191,100000-100001").map(|cpus| cpus.len()), Some(194));
}

/// A list that claims four milliards of CPUs must not be expanded.
#[test]
fn lists_that_no_kernel_writes_are_refused() {
    // A lone comma was taken for an empty list, and the fact had an empty value.
    for list in [
        "0-4294967295",
        "0-8192",
        "0-4999,0-4999",
        "3-1",
        "-1",
        "1-",
        "a",
        "0-1-2",
        "4294967296",
        "managed_irq,1",
        ",",
        "1,",
    ] {
        assert_eq!(parse(list), None, "{list}");
    }
}

proptest! {
    // A case that fails is printed; a file of them would land among the sources.
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_is_read_back(cpus in proptest::collection::btree_set(0_u32..8192, 0..64)) {
        let cpus: Vec<u32> = cpus.into_iter().collect();
        prop_assert_eq!(parse(&written(&cpus)), Some(cpus));
    }

    #[test]
    fn no_list_makes_the_reader_panic(list in "[-0-9, ]{0,40}") {
        if let Some(cpus) = parse(&list) {
            prop_assert!(cpus.len() <= 8192);
        }
    }
}
