//! Records of one profile: calls by kind, reordering copies, format changes, and events.

use super::kind::{Kind, Tally, describe, encode};
use super::report::{FormatChange, Reordering, in_words, nanoseconds};
use super::stack::{Stack, place};
use keyway_dispatcher::ledger;
use keyway_dispatcher::op::{Call, Outputs};
use rustc_hash::FxBuildHasher;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The maximum number of kinds of calls with separate rows; further ones share one row for each op.
const MAX_KINDS: usize = 4096;
/// Maximum number of locations for each kind of memory event; further ones share one.
const MAX_PLACES: usize = 1000;
/// Label of the shared row and of the shared location.
const OTHERS: &str = "(others)";

type FxMap<K, V> = HashMap<K, V, FxBuildHasher>;

/// A slot reserved for the event of a call before it runs, so that events are ordered by their beginning.
#[derive(Clone, Copy)]
pub(super) struct Slot {
    /// Number of the profile that holds it.
    state: u64,
    index: usize,
}

/// The subject of an event.
#[derive(Clone)]
pub(super) enum What {
    /// The event has not ended.
    Open,
    /// A call of this kind.
    Call(usize),
    /// A call that reordered memory, with its callers.
    Reordering(usize, Arc<str>),
    /// A named part.
    Scope(Arc<str>),
}

/// An event; times since the profile began.
#[derive(Clone)]
pub(super) struct Recorded {
    pub(super) start: Duration,
    pub(super) time: Duration,
    pub(super) scratch: u64,
    pub(super) what: What,
}

/// The events of a profile that records them.
pub(super) struct Events {
    pub(super) kept: Vec<Recorded>,
    pub(super) most: usize,
    pub(super) dropped: u64,
}

/// A nested profile whose `count` events are stored from index `first` on.
#[derive(Clone, Copy)]
pub(super) struct Added {
    pub(super) number: u64,
    pub(super) first: usize,
    pub(super) count: usize,
}

/// The cost of a call: self time, total time, and bytes of its own scratch memory.
#[derive(Clone, Copy)]
pub(super) struct CallCost {
    pub(super) start: Instant,
    pub(super) own: Duration,
    pub(super) total: Duration,
    pub(super) scratch: u64,
}

/// The context of a call.
pub(super) struct Around<'a> {
    pub(super) stack: &'a Stack,
    /// Whether an op inside the call changed the format of images.
    pub(super) changed: bool,
}

/// The callers of an op, and the path of the modules around it.
type Place = (Vec<String>, String);

/// The location that represents all those without a separate line. At most one for each kind.
fn others() -> Place {
    (vec![OTHERS.to_string()], String::new())
}

/// Records of one profile.
pub(super) struct State {
    /// Number of the profile.
    pub(super) number: u64,
    pub(super) start: Instant,
    pub(super) codes: FxMap<Box<[u64]>, usize>,
    pub(super) kinds: Vec<Kind>,
    /// The reorderings by kind and location.
    pub(super) reorderings: FxMap<(usize, Box<str>), Reordering>,
    /// The format changes by op and location: the time of the first, and its description.
    pub(super) changes: FxMap<(&'static str, Box<str>), (Duration, FormatChange)>,
    pub(super) events: Option<Events>,
    /// Nested profiles that were added to it: an event that began in one may end now.
    pub(super) added: Vec<Added>,
    /// Buffer for the code of a call.
    code: Vec<u64>,
}

impl State {
    pub(super) fn new(number: u64, start: Instant, events: Option<usize>) -> State {
        State {
            number,
            start,
            codes: HashMap::default(),
            kinds: Vec::new(),
            reorderings: HashMap::default(),
            changes: HashMap::default(),
            events: events.map(|most| Events { kept: Vec::new(), most, dropped: 0 }),
            added: Vec::new(),
            code: Vec::new(),
        }
    }

    /// Whether it holds this slot.
    pub(super) fn keeps(&self, slot: Slot) -> bool {
        self.index(slot).is_some()
    }

    /// The index of this slot, in its own events or those of a profile that was added to it.
    fn index(&self, slot: Slot) -> Option<usize> {
        if slot.state == self.number {
            return Some(slot.index);
        }
        let added = self.added.iter().find(|added| added.number == slot.state && slot.index < added.count)?;
        Some(added.first + slot.index)
    }

    /// Number of further events that it can record; `None` if it records none.
    pub(super) fn room(&self) -> Option<usize> {
        self.events.as_ref().map(|events| events.most.saturating_sub(events.kept.len()))
    }

    /// Reserves a slot for an event that begins now; events beyond the maximum are counted.
    pub(super) fn reserve(&mut self) -> Option<Slot> {
        let (state, events) = (self.number, self.events.as_mut()?);
        if events.kept.len() >= events.most {
            events.dropped += 1;
            return None;
        }
        let (start, time) = (Duration::ZERO, Duration::ZERO);
        events.kept.push(Recorded { start, time, scratch: 0, what: What::Open });
        Some(Slot { state, index: events.kept.len() - 1 })
    }

    fn finish(&mut self, slot: Option<Slot>, start: Instant, (time, scratch): (Duration, u64), what: What) {
        // A profile that began or ended while the call ran has other slots.
        let (Some(index), Some(events)) = (slot.and_then(|slot| self.index(slot)), self.events.as_mut())
        else {
            return;
        };
        if let Some(place) = events.kept.get_mut(index) {
            *place = Recorded { start: start.saturating_duration_since(self.start), time, scratch, what };
        }
    }

    pub(super) fn end_scope(&mut self, name: Arc<str>, start: Instant, time: Duration, slot: Option<Slot>) {
        self.finish(slot, start, (time, 0), What::Scope(name));
    }

    /// Notes a call that has ended, with its results if it has not failed; whether it, or an op inside it, has changed the
    /// format of images.
    pub(super) fn record(
        &mut self,
        call: &Call<'_>,
        outputs: Option<&Outputs>,
        CallCost { start, own, total, scratch }: CallCost,
        slot: Option<Slot>,
        around: Around<'_>,
    ) -> bool {
        let served = if outputs.is_some() { Some(ledger::last_served()) } else { None };
        let outputs = outputs.map_or(&[][..], Outputs::as_slice);
        let mut code = std::mem::take(&mut self.code);
        encode(call, served, outputs, &mut code);
        let index = match self.codes.get(&code[..]) {
            Some(&index) => index,
            None => self.learn(&mut code, || describe(call, served, outputs)),
        };
        self.code = code;
        // Calls that share a row are described each time.
        let own_kind = if self.kinds[index].shared { Some(describe(call, served, outputs)) } else { None };
        let kind = own_kind.as_ref().unwrap_or(&self.kinds[index]);
        let (bytes, reordering, change) = (kind.info.bytes, kind.reordering.clone(), kind.change);
        self.kinds[index].tally.add(Tally { calls: 1, own, total, bytes, scratch });
        let mut what = What::Call(index);
        let changed = change.is_some() || around.changed;
        let change = change.filter(|_| !around.changed);
        if reordering.is_some() || change.is_some() {
            let (callers, path) = place(around.stack);
            let caller = in_words(&callers, &path);
            if let Some(texts) = reordering {
                what = What::Reordering(index, caller.as_str().into());
                let key = (index, caller.as_str().into());
                self.note_reordering(key, texts, (callers, path), (bytes, total));
            } else if let Some(formats) = change {
                let at = start.saturating_duration_since(self.start);
                let key = (call.args.op.name, format!("{caller}, from {}", formats.0).into());
                self.note_change(key, (index, formats), (callers, path), at);
            }
        }
        self.finish(slot, start, (total, scratch), what);
        changed
    }

    /// The index of a new kind, or of the one that all further kinds of its op share.
    #[cold]
    pub(super) fn learn(&mut self, code: &mut Vec<u64>, describe: impl FnOnce() -> Kind) -> usize {
        let full = self.kinds.len() >= MAX_KINDS;
        if full {
            code.truncate(2);
            if let Some(&index) = self.codes.get(&code[..]) {
                return index;
            }
        }
        let kind = if full { describe().for_others(OTHERS) } else { describe() };
        self.kinds.push(kind);
        self.codes.insert(code[..].into(), self.kinds.len() - 1);
        self.kinds.len() - 1
    }

    fn note_reordering(
        &mut self,
        key: (usize, Box<str>),
        (from, to): (Arc<str>, Arc<str>),
        (callers, path): Place,
        (bytes, time): (u64, Duration),
    ) {
        let op = self.kinds[key.0].op.to_string();
        let (from, to, ns) = (from.to_string(), to.to_string(), nanoseconds(time));
        self.add_reordering(key, Reordering { op, callers, path, from, to, calls: 1, bytes, ns });
    }

    pub(super) fn add_reordering(&mut self, mut key: (usize, Box<str>), mut found: Reordering) {
        if self.reorderings.len() >= MAX_PLACES && !self.reorderings.contains_key(&key) {
            key.1 = OTHERS.into();
            (found.callers, found.path) = others();
        }
        match self.reorderings.entry(key) {
            Entry::Vacant(place) => {
                place.insert(found);
            }
            Entry::Occupied(mut place) => {
                let sum = place.get_mut();
                sum.calls += found.calls;
                sum.bytes += found.bytes;
                sum.ns = sum.ns.saturating_add(found.ns);
            }
        }
    }

    fn note_change(
        &mut self,
        key: (&'static str, Box<str>),
        (index, (from, to)): (usize, (&'static str, &'static str)),
        (callers, path): Place,
        at: Duration,
    ) {
        let kind = &self.kinds[index];
        let change = FormatChange {
            op: kind.op.to_string(),
            served_by: kind.info.served_by.clone(),
            callers,
            path,
            from: from.to_string(),
            to: to.to_string(),
            inputs: kind.info.inputs.clone(),
            outputs: kind.info.outputs.clone(),
            calls: 1,
        };
        self.add_change(key, (at, change));
    }

    pub(super) fn add_change(
        &mut self,
        mut key: (&'static str, Box<str>),
        (at, mut found): (Duration, FormatChange),
    ) {
        if self.changes.len() >= MAX_PLACES && !self.changes.contains_key(&key) {
            key.1 = OTHERS.into();
            (found.callers, found.path) = others();
        }
        match self.changes.entry(key) {
            Entry::Vacant(place) => {
                place.insert((at, found));
            }
            Entry::Occupied(mut place) => place.get_mut().1.calls += found.calls,
        }
    }
}
