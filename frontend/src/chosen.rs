//! Thread-local values set by guards: the most recent live guard determines the value, in whatever order guards are dropped.

use std::cell::{Cell, RefCell};

/// The values of a thread's live guards, in the order of their creation.
pub(crate) struct Chosen<T> {
    all: RefCell<Vec<(u64, T)>>,
    made: Cell<u64>,
}

impl<T: Copy> Chosen<T> {
    pub(crate) const fn new() -> Chosen<T> {
        Chosen { all: RefCell::new(Vec::new()), made: Cell::new(0) }
    }

    /// Adds the value of a new guard; the number of the guard.
    pub(crate) fn push(&self, value: T) -> u64 {
        let number = self.made.get() + 1;
        self.made.set(number);
        self.all.borrow_mut().push((number, value));
        number
    }

    /// Removes the value of a guard; returns whether no guard remains.
    pub(crate) fn remove(&self, number: u64) -> bool {
        let mut all = self.all.borrow_mut();
        all.retain(|(own, _)| *own != number);
        all.is_empty()
    }

    /// The value of the most recent live guard.
    pub(crate) fn last(&self) -> Option<T> {
        self.all.borrow().last().map(|(_, value)| *value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guards_end_in_any_order() {
        let chosen = Chosen::new();
        let (a, b, c) = (chosen.push('a'), chosen.push('b'), chosen.push('c'));
        assert_eq!(chosen.last(), Some('c'));
        assert!(!chosen.remove(b) && chosen.last() == Some('c'));
        assert!(!chosen.remove(c) && chosen.last() == Some('a'));
        assert!(chosen.remove(a) && chosen.last().is_none());
    }
}
