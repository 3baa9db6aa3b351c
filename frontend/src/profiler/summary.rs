//! The report and the trace of a profile, from its records.

use super::kind::{Kind, Tally};
use super::report::{FormatChange, OpStats, Reordering, Report, Shapes, device_memory, nanoseconds, total};
use super::state::{Recorded, State, What};
use super::trace::{Event, EventKind, Thread, Trace, nest};
use keyway_dispatcher::ledger::Fallback;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// The kinds of calls as rows.
fn rows(kinds: &[Kind]) -> Vec<OpStats> {
    let mut groups: BTreeMap<(&str, &str, &str), (Tally, Vec<Shapes>)> = BTreeMap::new();
    for Kind { op, info, tally, .. } in kinds.iter().filter(|kind| kind.tally.calls > 0) {
        let (sum, shapes) = groups.entry((op, &info.served_by, &info.key)).or_default();
        sum.add(*tally);
        shapes.push(Shapes {
            inputs: info.inputs.clone(),
            outputs: info.outputs.clone(),
            calls: tally.calls,
            self_ns: nanoseconds(tally.own),
            total_ns: nanoseconds(tally.total),
            bytes: tally.bytes,
            scratch_bytes: tally.scratch,
        });
    }
    let row = |((op, served_by, key), (sum, mut shapes)): ((&str, &str, &str), (Tally, Vec<Shapes>))| {
        shapes.sort_by_key(|shapes| std::cmp::Reverse((shapes.calls, shapes.self_ns)));
        OpStats {
            op: op.to_string(),
            served_by: served_by.to_string(),
            key: key.to_string(),
            calls: sum.calls,
            // Computed from the parts, so that they add up after rounding.
            self_ns: total(shapes.iter().map(|part| part.self_ns)),
            total_ns: total(shapes.iter().map(|part| part.total_ns)),
            bytes: sum.bytes,
            scratch_bytes: sum.scratch,
            shapes,
        }
    };
    let mut rows: Vec<OpStats> = groups.into_iter().map(row).collect();
    // The groups are sorted by name, which breaks ties.
    rows.sort_by_key(|row| std::cmp::Reverse(row.self_ns));
    rows
}

impl State {
    pub(super) fn report(&self, time: Duration, fallbacks: Vec<Fallback>) -> Report {
        let mut reorderings: Vec<Reordering> = self.reorderings.values().cloned().collect();
        reorderings.sort_by(|a, b| b.ns.cmp(&a.ns).then_with(|| a.location().cmp(&b.location())));
        let mut changes: Vec<_> = self.changes.values().collect();
        changes.sort_by(|a, b| (a.0, &a.1.op).cmp(&(b.0, &b.1.op)));
        Report {
            rows: rows(&self.kinds),
            reorderings,
            format_changes: changes.into_iter().map(|(_, change)| change.clone()).collect(),
            seconds: time.as_secs_f64(),
            memory: device_memory(),
            fallbacks,
        }
    }

    /// The events of finished calls, with this report, at most `most` of them. More may be recorded for an enclosing profile.
    pub(super) fn trace(&self, report: Report, most: Option<usize>) -> Trace {
        let (most, is_wanted) = (most.unwrap_or(0), most.is_some());
        let kept = self.events.as_ref().map_or(&[][..], |events| &events.kept);
        let beyond = kept.len().saturating_sub(most);
        let kept = &kept[..kept.len() - beyond];
        let mut events: Vec<Event> = kept.iter().filter_map(|event| self.event(event)).collect();
        if is_wanted {
            let told = |(at, change): &(Duration, FormatChange)| Event {
                name: format!("{} makes {} of {}", change.op, change.to, change.from).into(),
                kind: EventKind::FormatChange(change.location().into()),
                start_ns: nanoseconds(*at),
                duration_ns: 0,
                scratch_bytes: 0,
            };
            events.extend(self.changes.values().map(told));
            // Stable: of two events with the same beginning the outer one remains first.
            events.sort_by_key(|event| event.start_ns);
            events = nest(events);
        }
        let dropped = self.events.as_ref().map_or(0, |events| events.dropped) + beyond as u64;
        let dropped = if is_wanted { dropped } else { 0 };
        Trace { report, events, dropped, thread: Thread::current() }
    }

    fn event(&self, Recorded { start, time, scratch, what }: &Recorded) -> Option<Event> {
        let op = |index: usize| (Arc::from(self.kinds[index].op), self.kinds[index].info.clone());
        let (name, kind) = match what {
            What::Open => return None,
            What::Scope(name) => (name.clone(), EventKind::Scope),
            What::Call(index) => {
                let (name, info) = op(*index);
                (name, EventKind::Op(info))
            }
            What::Reordering(index, caller) => {
                let (name, info) = op(*index);
                (name, EventKind::Reordering(info, caller.clone()))
            }
        };
        let (start_ns, duration_ns) = (nanoseconds(*start), nanoseconds(*time));
        Some(Event { name, kind, start_ns, duration_ns, scratch_bytes: *scratch })
    }
}
