//! The times of ops in memory formats and layouts that plugins declare, for planning without measurements.

use super::PreferenceEntry;
use super::access::may_serve;
use super::state::{State, lock};
use crate::base::dtype::DType;
use crate::base::key::Layout;
use crate::device::server;
use std::cmp::Reverse;

/// The declarations of plugins in use, by op, device and format; of several for the same, the effective one is first. Those
/// without effect ([`unreached`](super::unreached)) are included.
pub fn preferences() -> Vec<&'static PreferenceEntry> {
    of_state(&lock().state)
}

fn of_state(state: &State) -> Vec<&'static PreferenceEntry> {
    let mut all: Vec<_> = state.preferences.iter().copied().filter(|p| !p.plugin.is_retired()).collect();
    all.sort_by_key(|p| (p.op, p.device, p.format.name(), Reverse(p.plugin.priority()), p.plugin.order));
    all
}

/// The effective declaration for an op on a kind of device in a format: that of the plugin with the highest priority, then
/// of the first that was loaded. The plugin has a kernel that serves the format on the device, in this dtype if there is one.
pub fn preference(
    op: &str,
    device_kind: u16,
    format: Layout,
    dtype: Option<DType>,
) -> Option<&'static PreferenceEntry> {
    let batch = lock();
    let of_key = |p: &PreferenceEntry| (p.op, p.device, p.format) == (op, device_kind, format);
    of_state(&batch.state).into_iter().find(|p| of_key(p) && is_served(&batch.state, p, dtype))
}

/// Whether the plugin of a declaration has a kernel that serves the format, one of that layout or of its parent, in this dtype
/// if there is one.
pub(super) fn is_served(state: &State, declared: &PreferenceEntry, dtype: Option<DType>) -> bool {
    let PreferenceEntry { op, device, format, plugin, .. } = *declared;
    let Some(known) = state.by_name.get(op) else { return false };
    may_serve(plugin, device, server(device))
        && state.kernels_of.get(op).into_iter().flatten().any(|kernel| {
            std::ptr::eq(kernel.plugin, plugin)
                && kernel.device == device
                && (kernel.layout == format || Some(kernel.layout) == format.parent())
                && kernel.signature == known.schema.signature
                && dtype.is_none_or(|dtype| kernel.dtype == dtype.code())
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::plugin::PluginEntry;
    use std::sync::atomic::Ordering;

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

    #[test]
    fn the_higher_priority_counts_and_then_the_earlier_plugin() {
        let (first, second) = (plugin("test/first", 0), plugin("test/second", 1));
        let declared = |op, plugin| -> &'static PreferenceEntry {
            let format = Layout::CHANNELS_LAST;
            Box::leak(Box::new(PreferenceEntry { op, device: 0, format, cost: 0.5, plugin }))
        };
        let state = State {
            preferences: vec![declared("conv", second), declared("conv", first), declared("abs", second)],
            ..State::default()
        };
        let names = || of_state(&state).iter().map(|p| (p.op, p.plugin.name)).collect::<Vec<_>>();
        let [abs, early, late] = [("abs", "test/second"), ("conv", "test/first"), ("conv", "test/second")];
        assert_eq!(names(), [abs, early, late]);
        second.priority.store(1, Ordering::Relaxed);
        assert_eq!(names(), [abs, late, early]);
        second.retired.store(true, Ordering::Relaxed);
        assert_eq!(names(), [early]);
        assert!(!is_served(&state, state.preferences[1], None), "there is no op and no kernel");
    }
}
