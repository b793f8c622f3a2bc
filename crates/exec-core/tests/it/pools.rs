//! Pools of buffers.

use hairspring_exec_core::{Call, CallStatus, PoolId};

use crate::bench::Bench;

#[test]
fn each_buffer_is_handed_out_once_until_it_is_given_back() {
    let mut bench = Bench::new();
    let pool = bench.pool_of(3);
    let mut buffers: Vec<_> = (0..3).map(|_| bench.outside(Call::GetBuffer { pool }, CallStatus::Ok)).collect();
    bench.outside(Call::GetBuffer { pool }, CallStatus::Empty);
    bench.outside(Call::FreeBuffer { pool, buffer: 1 }, CallStatus::Ok);
    assert_eq!((bench.free_buffers(pool), bench.outside(Call::GetBuffer { pool }, CallStatus::Ok)), (Some(1), 1));
    buffers.sort_unstable();
    assert_eq!(buffers, [0, 1, 2]);
}

#[test]
fn a_buffer_that_is_not_in_use_cannot_be_given_back() {
    let mut bench = Bench::new();
    let pool = bench.pool_of(2);
    for buffer in [0, 1, 2, u16::MAX] {
        bench.outside(Call::FreeBuffer { pool, buffer }, CallStatus::NotInUse);
    }
    assert_eq!(bench.free_buffers(pool), Some(2));
}

#[test]
fn a_pool_that_does_not_exist_is_refused() {
    let mut bench = Bench::new();
    let pool = PoolId::from_number(0);
    bench.outside(Call::GetBuffer { pool }, CallStatus::NoSuchObject);
    bench.outside(Call::FreeBuffer { pool, buffer: 0 }, CallStatus::NoSuchObject);
    assert_eq!(bench.free_buffers(pool), None);
}
