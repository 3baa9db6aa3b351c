//! What alternates from call to call, so that a few calls cover every form.

/// Numbers calls.
#[derive(Debug, Default)]
pub struct Turns(usize);

impl Turns {
    /// An index below `first` and one below `second`, both larger than 0: every pair in turn.
    pub fn of(&mut self, first: usize, second: usize) -> (usize, usize) {
        let nth = self.0;
        self.0 += 1;
        (nth % first, (nth % first + nth / first) % second)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_pair_has_its_turn() {
        for (first, second) in [(9, 3), (9, 2), (1, 3), (2, 2), (4, 1)] {
            let mut turns = Turns::default();
            let pairs: BTreeSet<_> = (0..first * second).map(|_| turns.of(first, second)).collect();
            assert_eq!(pairs.len(), first * second, "{first} {second}");
        }
    }
}
