//! The stack of open frames of a thread.

use std::sync::Arc;

/// A frame that a thread is in.
#[derive(Clone)]
pub(super) enum Frame {
    /// A call of an op.
    Op(&'static str),
    /// The derivative of an op.
    Backward(&'static str),
    /// A module, by its name in the one around it.
    Module(Arc<str>),
    /// A region of the program that is named only for the trace.
    Region,
}

/// The frames of a thread, with increasing numbers. Frames that ended before their inner ones are marked, and compacted when
/// there are many.
pub(super) struct Stack {
    pub(super) frames: Vec<(u64, Option<Frame>)>,
    pub(super) gone: usize,
}

impl Stack {
    pub(super) fn remove(&mut self, number: u64) {
        let Ok(at) = self.frames.binary_search_by_key(&number, |(number, _)| *number) else { return };
        if self.frames[at].1.take().is_some() {
            self.gone += 1;
        }
        while self.frames.last().is_some_and(|(_, frame)| frame.is_none()) {
            self.frames.pop();
            self.gone -= 1;
        }
        if self.gone * 2 > self.frames.len() {
            self.frames.retain(|(_, frame)| frame.is_some());
            self.gone = 0;
        }
    }

    /// The frames that are open, from the outermost on.
    fn open(&self) -> impl Iterator<Item = &Frame> {
        self.frames.iter().filter_map(|(_, frame)| frame.as_ref())
    }
}

/// The ops and derivatives in a stack from the outermost on, and the path of the modules.
pub(super) fn place(stack: &Stack) -> (Vec<String>, String) {
    let (mut callers, mut path) = (Vec::new(), String::new());
    for frame in stack.open() {
        match frame {
            Frame::Op(op) => callers.push((*op).to_string()),
            Frame::Backward(op) => callers.push(format!("backward of {op}")),
            Frame::Module(name) => {
                if !path.is_empty() {
                    path.push('.');
                }
                path.push_str(name);
            }
            Frame::Region => {}
        }
    }
    (callers, path)
}
