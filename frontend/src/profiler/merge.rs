//! Nested profiles: the records of an inner profile are added to the outer one.

use super::kind::{Kind, Tally};
use super::state::{Added, State, What};

impl State {
    /// Adds the records of a nested profile.
    pub(super) fn absorb(&mut self, inner: State) {
        let mut indices = vec![0; inner.kinds.len()];
        for (code, at) in inner.codes {
            let kind = &inner.kinds[at];
            let mut code = code.into_vec();
            let found = self.codes.get(&code[..]).copied();
            let fresh = || Kind { tally: Tally::default(), ..kind.clone() };
            indices[at] = found.unwrap_or_else(|| self.learn(&mut code, fresh));
            self.kinds[indices[at]].tally.add(kind.tally);
        }
        let shift = inner.start.saturating_duration_since(self.start);
        for ((at, place), found) in inner.reorderings {
            self.add_reordering((indices[at], place), found);
        }
        for (key, (at, found)) in inner.changes {
            self.add_change(key, (at + shift, found));
        }
        let (Some(events), Some(new)) = (&mut self.events, inner.events) else { return };
        events.dropped += new.dropped;
        let first = events.kept.len();
        let count = events.most.saturating_sub(first).min(new.kept.len());
        // Only open events are searched for.
        if new.kept.iter().any(|event| matches!(event.what, What::Open)) {
            self.added.push(Added { number: inner.number, first, count });
            let within = inner.added.into_iter().map(|added| Added { first: first + added.first, ..added });
            self.added.extend(within.filter(|added| added.first + added.count <= first + count));
        }
        for mut event in new.kept {
            if events.kept.len() >= events.most {
                events.dropped += 1;
                continue;
            }
            event.start += shift;
            if let What::Call(at) | What::Reordering(at, _) = &mut event.what {
                *at = indices[*at];
            }
            events.kept.push(event);
        }
    }
}
