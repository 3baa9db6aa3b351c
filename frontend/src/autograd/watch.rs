//! Detects whether a function that runs without a graph uses tensors that would have recorded one.

use std::cell::Cell;

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Off,
    Watching,
    Seen,
}

thread_local! {
    static STATE: Cell<State> = const { Cell::new(State::Off) };
}

/// Whether this thread is watched, so that nothing is recorded.
#[inline]
pub(super) fn is_on() -> bool {
    STATE.get() != State::Off
}

/// Notes that a call received a tensor that requires grad, if the thread is watched.
pub(super) fn note() {
    if is_on() {
        STATE.set(State::Seen);
    }
}

/// Runs `body` without a graph; besides its result, whether any of its calls would have been recorded.
pub(super) fn run<R>(body: impl FnOnce() -> R) -> (R, bool) {
    struct Restore(State);
    impl Drop for Restore {
        fn drop(&mut self) {
            STATE.set(self.0);
        }
    }
    let _restore = Restore(STATE.replace(State::Watching));
    let result = body();
    (result, STATE.get() == State::Seen)
}
