//! Iterative drop of graphs of any depth: what a dropped node or tensor owns is dropped after it, not within it.
//!
//! A node owns others through its edges and the contents of hooks, functions and saved tensors, which are opaque closures.
//! The outermost drop of a thread sets a flag, each nested drop queues its nodes, and the outermost drop empties the queue
//! after its own work: recursion becomes iteration.

use super::node::Node;
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::mem::ManuallyDrop;

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Idle,
    /// Something is being dropped further up on the stack.
    Dropping,
    /// A drop is in progress, and nodes are queued.
    Waiting,
}

enum Held {
    Node(Box<Node>),
    Other(Box<dyn Any>),
}

thread_local! {
    static STATE: Cell<State> = const { Cell::new(State::Idle) };
    // Without a destructor, so that it is available to drops while a thread ends. The code that empties it frees its memory.
    static HELD: RefCell<ManuallyDrop<Vec<Held>>> = const { RefCell::new(ManuallyDrop::new(Vec::new())) };
}

/// Marks the outermost drop of a thread; nodes queued meanwhile are dropped when this is.
pub(super) struct Outermost(());

impl Outermost {
    /// Begins the outermost drop; `None` within another drop: then queue the nodes.
    #[inline]
    pub(super) fn enter() -> Option<Outermost> {
        if STATE.get() != State::Idle {
            return None;
        }
        STATE.set(State::Dropping);
        Some(Outermost(()))
    }
}

impl Drop for Outermost {
    #[inline]
    fn drop(&mut self) {
        if STATE.get() == State::Waiting {
            drop_held();
        }
        STATE.set(State::Idle);
    }
}

#[cold]
fn drop_held() {
    /// A user's destructor may panic: the remaining nodes then wait until the next drop.
    struct Unwinding;
    impl Drop for Unwinding {
        fn drop(&mut self) {
            STATE.set(State::Idle);
        }
    }
    if std::thread::panicking() {
        return;
    }
    let _idle = Unwinding;
    while let Some(held) = HELD.with_borrow_mut(|held| held.pop()) {
        match held {
            Held::Node(mut node) => node.dismantle(),
            Held::Other(value) => drop(value),
        }
    }
    drop(ManuallyDrop::into_inner(HELD.replace(ManuallyDrop::new(Vec::new()))));
}

#[cold]
fn hand_over(held: Held) {
    STATE.set(State::Waiting);
    HELD.with_borrow_mut(|all| all.push(held));
}

/// Drops a node's contents after the drop that runs.
#[cold]
pub(super) fn drop_node_later(node: Node) {
    hand_over(Held::Node(Box::new(node)));
}

/// Drops a value that may own a graph.
#[cold]
pub(super) fn drop_flat(value: impl Any) {
    match Outermost::enter() {
        Some(_outermost) => drop(value),
        None => hand_over(Held::Other(Box::new(value))),
    }
}
