//! The layouts that plugins declare, and their implementations for each device.

use super::access::may_serve;
use super::state::State;
use super::{LayoutEntry, LayoutOpsEntry};
use crate::base::error::{Error, Result};
use crate::base::intern::MAX_LAYOUTS;
use crate::base::key::Layout;
use crate::device::server;
use std::cmp::Reverse;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{PoisonError, RwLock};

/// The precedence of each layout, indexed by its code; 0 if it is not declared.
static PRECEDENCE: [AtomicU32; MAX_LAYOUTS] = [const { AtomicU32::new(0) }; MAX_LAYOUTS];

/// The precedence of `channels_last`, which the host declares.
const CHANNELS_LAST: u32 = 10;

/// The implementation of each layout on each kind of device: one entry, that of the preferred plugin.
type Serving = Vec<(u16, &'static LayoutOpsEntry)>;

static SERVING: RwLock<Serving> = RwLock::new(Vec::new());

/// Selects the layout that decides if arguments of both meet: the one of higher precedence, then the one whose name sorts
/// first. Strided has the lowest precedence.
#[inline(always)]
pub(crate) fn more_special(a: Layout, b: Layout) -> Layout {
    if b == Layout::STRIDED || a == b {
        a
    } else if a == Layout::STRIDED {
        b
    } else {
        of_two_special(a, b)
    }
}

#[cold]
fn of_two_special(a: Layout, b: Layout) -> Layout {
    let rank = |layout: Layout| {
        let precedence = match layout {
            Layout::CHANNELS_LAST => CHANNELS_LAST,
            _ => PRECEDENCE.get(layout.id() as usize).map_or(0, |p| p.load(Ordering::Relaxed)),
        };
        (precedence, Reverse(layout.name()))
    };
    if rank(b) > rank(a) { b } else { a }
}

/// Publishes what is registered and not retired. Called with each generation of the table.
pub(super) fn settle(state: &State) {
    for entry in state.layouts.iter().filter(|entry| !entry.plugin.is_retired()) {
        if let Some(slot) = PRECEDENCE.get(entry.layout.id() as usize) {
            slot.store(entry.precedence, Ordering::Relaxed);
        }
    }
    *SERVING.write().unwrap_or_else(PoisonError::into_inner) = serving(state);
}

/// The preferred entry for each kind of device and layout. A plugin serves a device on the same terms as its kernels, so
/// functions are never passed memory of another plugin that they do not know.
fn serving(state: &State) -> Serving {
    let rank = |e: &LayoutOpsEntry| (e.plugin.priority(), Reverse(e.plugin.order));
    let mut serving = Serving::new();
    for &entry in state.layout_ops.iter().filter(|entry| !entry.plugin.is_retired()) {
        let aliases = state.aliases.iter().filter(|((kind, _), _)| *kind == entry.device);
        let alias_kinds = aliases.map(|(_, alias)| alias.kind).filter(|kind| server(*kind).is_some());
        for kind in std::iter::once(entry.device).chain(alias_kinds) {
            if !may_serve(entry.plugin, entry.device, server(kind)) {
                continue;
            }
            match serving.iter_mut().find(|(k, e)| (*k, e.layout) == (kind, entry.layout)) {
                Some((_, present)) if rank(entry) > rank(present) => *present = entry,
                Some(_) => {}
                None => serving.push((kind, entry)),
            }
        }
    }
    serving
}

/// The implementation of a layout on a kind of device.
pub fn layout_ops(layout: Layout, device_kind: u16) -> Option<&'static LayoutOpsEntry> {
    let serving = SERVING.read().unwrap_or_else(PoisonError::into_inner);
    serving.iter().find(|(kind, e)| e.layout == layout && *kind == device_kind).map(|(_, e)| *e)
}

/// The implementations of a layout on all devices: one entry for each kind of device.
pub fn all_layout_ops(layout: Layout) -> Vec<(u16, &'static LayoutOpsEntry)> {
    let serving = SERVING.read().unwrap_or_else(PoisonError::into_inner);
    serving.iter().copied().filter(|(_, e)| e.layout == layout).collect()
}

impl State {
    /// Refuses a declaration that the host or another plugin contradicts.
    pub(crate) fn check_layout(&self, entry: &LayoutEntry) -> Result<()> {
        let refuse = |reason: String| {
            Err(Error::Registration { what: "layout", name: entry.layout.name().to_string(), reason })
        };
        if entry.layout == Layout::STRIDED || entry.layout == Layout::CHANNELS_LAST {
            return refuse("it is the host's own; give yours another name".to_string());
        }
        if entry.precedence == 0 {
            return refuse("its precedence must be at least 1, but is 0, that of `strided`".to_string());
        }
        if entry.components.is_empty() {
            return refuse("it has no component; one buffer is a layout of one component".to_string());
        }
        let names: Vec<&String> = entry.components.iter().chain(&entry.attrs).collect();
        if let Some(twice) = names.iter().enumerate().find(|(i, name)| names[..*i].contains(name)) {
            return refuse(format!("its components and attributes have the name `{}` twice", twice.1));
        }
        let live = self.layouts.iter().filter(|e| !e.plugin.is_retired());
        let summary = |e: &LayoutEntry| {
            let rest = e.conversion.summary();
            format!(
                "components {:?}, attributes {:?}, precedence {}{rest}",
                e.components, e.attrs, e.precedence
            )
        };
        match live.into_iter().find(|e| e.layout == entry.layout && summary(e) != summary(entry)) {
            Some(present) => refuse(format!(
                "`{}` declares it with {}, but `{}` with {}; both must declare the same, so remove one of the two plugins",
                present.plugin.name,
                summary(present),
                entry.plugin.name,
                summary(entry),
            )),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::plugin::PluginEntry;
    use keyway_sdk::abi::RawStr;
    use keyway_sdk::abi::layout::LayoutOpsApi;

    fn plugin(name: &'static str, order: usize) -> &'static PluginEntry {
        Box::leak(Box::new(PluginEntry {
            name,
            version: String::new(),
            variant: String::new(),
            path: std::path::PathBuf::new(),
            order,
            compatible_with: Vec::new(),
            unresolved_devices: Vec::new(),
            priority: 0.into(),
            retired: false.into(),
        }))
    }

    fn declared(
        name: &str,
        precedence: u32,
        components: &[&str],
        attrs: &[&str],
        plugin: &'static PluginEntry,
    ) -> &'static LayoutEntry {
        let list = |names: &[&str]| names.iter().map(ToString::to_string).collect();
        let layout = Layout::intern(name).unwrap();
        let (components, attrs) = (list(components), list(attrs));
        Box::leak(Box::new(LayoutEntry {
            layout,
            precedence,
            components,
            attrs,
            conversion: Default::default(),
            plugin,
        }))
    }

    #[test]
    fn declarations_that_contradict_are_refused() {
        let (first, second) = (plugin("test/first", 0), plugin("test/second", 1));
        let mut state = State::default();
        let refused = |state: &State, entry: &LayoutEntry, parts: &[&str]| {
            let text = state.check_layout(entry).unwrap_err().to_string();
            assert!(parts.iter().all(|part| text.contains(part)), "{text}");
        };
        let present = declared("test/pairs", 100, &["keys", "values"], &["sorted"], first);
        state.check_layout(present).unwrap();
        state.layouts.push(present);
        state.check_layout(declared("test/pairs", 100, &["keys", "values"], &["sorted"], second)).unwrap();
        let both = ["test/pairs", "`test/first` declares", "`test/second` with", "must declare the same"];
        for other in [
            declared("test/pairs", 100, &["values", "keys"], &["sorted"], second),
            declared("test/pairs", 100, &["keys", "values"], &[], second),
            declared("test/pairs", 99, &["keys", "values"], &["sorted"], second),
        ] {
            refused(&state, other, &both);
            first.retired.store(true, Ordering::Relaxed);
            state.check_layout(other).unwrap();
            first.retired.store(false, Ordering::Relaxed);
        }
        refused(&state, declared("strided", 100, &["values"], &[], second), &["the host's own"]);
        refused(&state, declared("channels_last", 100, &["values"], &[], second), &["the host's own"]);
        refused(&state, declared("test/least", 0, &["values"], &[], second), &["at least 1, but is 0"]);
        refused(&state, declared("test/none", 100, &[], &["n"], second), &["no component"]);
        refused(&state, declared("test/twice", 100, &["a", "b"], &["a"], second), &["the name `a` twice"]);
    }

    #[test]
    fn the_higher_priority_serves_and_then_the_earlier_plugin() {
        let (first, second) = (plugin("test/first", 0), plugin("test/second", 1));
        let layout = Layout::intern("test/served").unwrap();
        let entry = |device, plugin| -> &'static LayoutOpsEntry {
            let api = Box::leak(Box::new(LayoutOpsApi {
                struct_size: size_of::<LayoutOpsApi>() as u32,
                reserved: 0,
                layout: RawStr::new("test/served"),
                device: RawStr::EMPTY,
                shapes: RawStr::EMPTY,
                accepts: None,
                validate: None,
                to_strided: None,
                from_strided: None,
                project: None,
            }));
            Box::leak(Box::new(LayoutOpsEntry { layout, device, shapes: "", api, plugin }))
        };
        let state = State {
            layout_ops: vec![entry(0, second), entry(0, first), entry(903, second)],
            ..State::default()
        };
        let names = || serving(&state).iter().map(|(kind, e)| (*kind, e.plugin.name)).collect::<Vec<_>>();
        assert_eq!(names(), [(0, "test/first"), (903, "test/second")]);
        second.priority.store(1, Ordering::Relaxed);
        assert_eq!(names(), [(0, "test/second"), (903, "test/second")]);
        second.retired.store(true, Ordering::Relaxed);
        assert_eq!(names(), [(0, "test/first")]);
    }

    #[test]
    fn precedence_is_declared_and_names_break_ties() {
        // Declared in this order, so that the order of loading would give another result.
        let [high, tied, low, undeclared] =
            ["b.test/high", "a.test/high", "test/low", "test/undeclared"].map(|n| Layout::intern(n).unwrap());
        for (layout, precedence) in [(high, 100), (tied, 100), (low, 5)] {
            PRECEDENCE[layout.id() as usize].store(precedence, Ordering::Relaxed);
        }
        let order = [tied, high, Layout::CHANNELS_LAST, low, undeclared, Layout::STRIDED];
        for (i, &a) in order.iter().enumerate() {
            for &b in &order[i..] {
                assert_eq!((more_special(a, b), more_special(b, a)), (a, a), "{a} and {b}");
            }
        }
    }
}
