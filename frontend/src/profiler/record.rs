//! Thread-local records of calls: the stack of open frames, and the end of each call.

use super::stack::{Frame, Stack};
use super::state::{Around, CallCost, Slot, State};
use keyway_dispatcher::call::redispatch;
use keyway_dispatcher::error::Result as DispatchResult;
use keyway_dispatcher::fallback;
use keyway_dispatcher::key::KeySet;
use keyway_dispatcher::op::{Call, Outputs};
use keyway_dispatcher::scratch_count;
use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};

/// Records of a thread.
pub(super) struct Local {
    /// Records of each running profile, innermost last.
    pub(super) states: RefCell<Vec<State>>,
    /// Open frames, innermost last, with increasing numbers.
    pub(super) stack: RefCell<Stack>,
    /// The next frame number.
    next: Cell<u64>,
    /// The time so far in the calls inside the current one.
    inside: Cell<Duration>,
    /// The bytes of scratch memory used so far by those calls.
    scratch_inside: Cell<u64>,
    /// Whether an op inside the current one changed the format, which is then the cause of this one's change.
    pub(super) changed: Cell<bool>,
}

thread_local! {
    /// Number of running profiles. Separate from `LOCAL`, since it has no destructor: reading it is one load.
    pub(super) static PROFILES: Cell<u32> = const { Cell::new(0) };
    pub(super) static LOCAL: Local = const {
        Local {
            states: RefCell::new(Vec::new()),
            stack: RefCell::new(Stack { frames: Vec::new(), gone: 0 }),
            next: Cell::new(0),
            inside: Cell::new(Duration::ZERO),
            scratch_inside: Cell::new(0),
            changed: Cell::new(false),
        }
    };
}

impl Local {
    /// A number that is unique on this thread.
    pub(super) fn number(&self) -> u64 {
        let number = self.next.get();
        self.next.set(number + 1);
        number
    }

    /// Reserves a slot in the innermost profile for an event that begins now.
    pub(super) fn reserve(&self) -> Option<Slot> {
        self.states.borrow_mut().last_mut()?.reserve()
    }
}

/// A frame of the stack, removed on drop, also by unwinding. Scopes may end in any order.
pub(super) struct Open {
    number: u64,
}

impl Open {
    pub(super) fn push(local: &Local, frame: Frame) -> Open {
        let number = local.number();
        local.stack.borrow_mut().frames.push((number, Some(frame)));
        Open { number }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let _ = LOCAL.try_with(|local| local.stack.borrow_mut().remove(self.number));
    }
}

pub(super) fn handle(call: &Call<'_>, below: KeySet) -> DispatchResult<Outputs> {
    LOCAL.with(|local| {
        let slot = local.reserve();
        let frame = Open::push(local, Frame::Op(call.args.op.name));
        let changed = local.changed.replace(false);
        let before = local.inside.replace(Duration::ZERO);
        let (scratch_before, scratch_then) = (local.scratch_inside.replace(0), scratch_count::so_far());
        let start = Instant::now();
        let result = redispatch(call, below);
        let total = start.elapsed();
        let own = total.saturating_sub(local.inside.replace(before + total));
        let all = scratch_count::so_far().saturating_sub(scratch_then);
        let scratch = all.saturating_sub(local.scratch_inside.replace(scratch_before + all));
        drop(frame);
        let stack = local.stack.borrow();
        let around = Around { stack: &stack, changed: local.changed.get() };
        let took = CallCost { start, own, total, scratch };
        let mut states = local.states.borrow_mut();
        let told = match states.last_mut() {
            // Refused, and run in another way.
            _ if result.is_err() && fallback::is_refused() => false,
            Some(state) => state.record(call, result.as_ref().ok(), took, slot, around),
            None => false,
        };
        local.changed.set(changed | told);
        result
    })
}
