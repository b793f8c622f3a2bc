//! Code that must not compile: an interrupt procedure that waits, a context that leaves its task, a message that owns.
//!
//! The compiler's words are kept beside each program; `TRYBUILD=overwrite` writes them anew. Where they would list
//! every private field of the engine, a trait that becomes ambiguous stands for them.

use hairspring_exec::{Executive, IspCtx, Reserved, TaskCtx, TimerCtx};

#[test]
fn what_a_context_must_not_be_used_for_does_not_compile() {
    trybuild::TestCases::new().compile_fail("tests/compile_fail/*.rs");
}

/// Has two answers for a type that can be sent or shared, so that asking compiles only for those that cannot.
trait StaysHere<Answer> {
    const YES: bool = true;
}

struct CanBeSent;
struct CanBeShared;

impl<T: ?Sized> StaysHere<()> for T {}
impl<T: ?Sized + Send> StaysHere<CanBeSent> for T {}
impl<T: ?Sized + Sync> StaysHere<CanBeShared> for T {}

#[test]
fn contexts_guards_and_executives_of_fibers_stay_on_their_thread() {
    // The test is that this compiles.
    const { assert!(<TaskCtx<'_> as StaysHere<_>>::YES && <TimerCtx<'_> as StaysHere<_>>::YES) };
    const { assert!(<IspCtx<'_> as StaysHere<_>>::YES && <Reserved<'_, '_> as StaysHere<_>>::YES) };
    const { assert!(<Executive as StaysHere<_>>::YES) };
}
