//! Costs from declarations: estimated times in row-major order, times the relative times that plugins declare.

use super::order::FORMATS;
use super::record::{Choice, Node, Origin, Recorded};
use crate::{Device, Error, MemoryFormat, Result};
use keyway_dispatcher::key::Layout;
use keyway_dispatcher::registry::{self, PreferenceEntry};
use serde::Serialize;

/// The memory bandwidth of the estimates of [`Costs::Declared`](super::Costs::Declared), in bytes per second. It scales all
/// estimates alike, so that no choice depends on it.
pub const ESTIMATED_BANDWIDTH: f64 = 1e10;

/// The bytes that could be moved in the time of one multiply-add, in the estimates of
/// [`Costs::Declared`](super::Costs::Declared): the machine balance of a roofline model (S. Williams et al., 2009). A core of a
/// CPU with AVX2 computes some 40e9 multiply-adds per second in f32 and moves some 10 GB.
pub const ESTIMATED_BYTES_PER_PRODUCT: f64 = 0.25;

/// The time of an op in a memory format or layout as a plugin declares it.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// for declared in keyway::plan::preferences()? {
///     println!("{} on {} in {}: {}", declared.op, declared.device, declared.format, declared.cost);
/// }
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[non_exhaustive]
pub struct Preference {
    /// The op.
    pub op: &'static str,
    /// The kind of device, such as `cpu`.
    pub device: &'static str,
    /// The memory format or layout.
    pub format: &'static str,
    /// The time in this format over that in row-major order, without conversions; from 0.001 to 1000.
    pub cost: f64,
    /// The plugin that declares it.
    pub plugin: &'static str,
}

impl Preference {
    /// Whether plans choose this format: a memory format. Layouts of plugins are listed and not planned.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// let planned = |declared: &keyway::plan::Preference| declared.format == "channels_last";
    /// assert!(keyway::plan::preferences()?.iter().all(|declared| declared.is_planned() == planned(declared)));
    /// # Ok(()) }
    /// ```
    pub fn is_planned(&self) -> bool {
        FORMATS.iter().any(|format| format.name() == self.format)
    }
}

/// The times that the loaded plugins declare for their ops in memory formats and layouts, by op, device and format. Of several
/// plugins that declare the same, the one of the highest priority counts; declarations without effect, such as those for unknown
/// ops, are left out.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// assert!(keyway::plan::preferences()?.iter().all(|declared| declared.cost > 0.0));
/// # Ok(()) }
/// ```
///
/// # Errors
/// The errors of loading the backends.
pub fn preferences() -> Result<Vec<Preference>> {
    crate::runtime::start()?;
    let counts = |entry: &&PreferenceEntry| {
        registry::preference(entry.op, entry.device, entry.format, None)
            .is_some_and(|first| std::ptr::eq(first, *entry))
    };
    let described = |entry: &PreferenceEntry| Preference {
        op: entry.op,
        device: Device { kind: entry.device, index: 0 }.name(),
        format: entry.format.name(),
        cost: entry.cost,
        plugin: entry.plugin.name,
    };
    Ok(registry::preferences().into_iter().filter(counts).map(described).collect())
}

/// The declared time of a call in a format relative to row-major order, if a plugin declares one: a plugin with a kernel for the
/// dtype of the call, else any.
fn declared(call: &Recorded, format: MemoryFormat) -> Option<f64> {
    let layout = Layout::from_name(format.name())?;
    let of = |dtype| registry::preference(call.op, call.device.kind, layout, dtype);
    of(Some(call.dtype)).or_else(|| of(None)).map(|entry| entry.cost)
}

/// The estimated seconds of a call in row-major order: images, kernels and the first result are moved once, and each
/// multiply-add takes [`ESTIMATED_BYTES_PER_PRODUCT`].
fn row_major(call: &Recorded) -> f64 {
    let bytes = (call.bytes + call.result_bytes) as f64;
    (bytes + call.products as f64 * ESTIMATED_BYTES_PER_PRODUCT) / ESTIMATED_BANDWIDTH
}

/// Replaces the costs of all calls by estimates with declared relative times.
///
/// # Errors
/// There are calls with a choice of format, and no plugin declares a memory format for any of their ops.
pub(super) fn price(nodes: &mut [Node]) -> Result<()> {
    let (mut chosen, mut undeclared): (bool, Vec<String>) = (false, Vec::new());
    for node in nodes {
        let Origin::Call(call) = &mut node.origin else { continue };
        let estimate = row_major(call);
        let costs = FORMATS.map(|format| declared(call, format));
        if call.choice == Choice::Free {
            let of = format!("`{}` on `{}`", call.op, call.device.name());
            match costs.iter().any(Option::is_some) {
                true => chosen = true,
                false if !undeclared.contains(&of) => undeclared.push(of),
                false => {}
            }
        }
        for input in &mut call.inputs {
            for (from, costs) in input.conversion.iter_mut().enumerate() {
                for (_, cost) in costs.iter_mut().enumerate().filter(|(to, _)| from != *to) {
                    // Each element is read and written once.
                    *cost = 2.0 * input.bytes as f64 / ESTIMATED_BANDWIDTH;
                }
            }
        }
        for (seconds, cost) in std::iter::zip(&mut call.seconds, costs) {
            // A call that fails in a format remains excluded.
            if seconds.is_finite() {
                *seconds = estimate * cost.unwrap_or(1.0);
            }
        }
        call.set_as_given();
    }
    if chosen || undeclared.is_empty() {
        return Ok(());
    }
    Err(Error::other(format!(
        "plan: expected a loaded backend to declare a memory format for an op of the module, got none for {}; plan with measured \
         costs (`Costs::Measured`), or install a backend that declares formats, such as `keyway-channels-last` for `cpu`",
        undeclared.join(", ")
    )))
}
