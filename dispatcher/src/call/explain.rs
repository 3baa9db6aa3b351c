//! Explanation of the candidates of a key, and advice if none serves it.

use crate::base::dtype::DType;
use crate::base::error::{Error, MissingKernel};
use crate::base::intern::DEVICES;
use crate::base::key::{Device, Layout};
use crate::base::plugin::PluginEntry;
use crate::device::{is_there, server};
use crate::op::{Arg, Args, OpEntry};
use crate::registry::table::current;
use crate::registry::{
    CHANGED_BY, InterposerInfo, KernelEntry, interposers_of, is_preferred, kernels, plugins, serving,
};
use serde::Serialize;
use smallvec::SmallVec;
use std::fmt;

/// One candidate of a key, in the order in which they are tried.
#[derive(Clone, Debug, Serialize)]
pub struct Candidate {
    /// The kind of candidate: a kernel of a plugin, a kernel of a parent layout, a decomposition, a fallback.
    pub what: String,
    /// Whether this candidate serves the key.
    pub chosen: bool,
    /// The reason why it is selected or not.
    pub reason: String,
}

/// Every candidate for a key.
#[derive(Clone, Debug, Serialize)]
pub struct Explanation {
    /// The op's schema.
    pub op: String,
    /// The kinds of its parameters and results as letters: the signature of a kernel.
    pub signature: String,
    /// Device, layout and dtype.
    pub key: String,
    /// The interposers that run before any candidate is tried, the outermost first.
    pub interposers: Vec<InterposerInfo>,
    /// The candidates in the order in which they are tried, then the kernels that are skipped.
    pub candidates: Vec<Candidate>,
    /// Settings of the user that have no effect on this key, a sentence each.
    pub notes: Vec<String>,
    /// A summary of the candidate that serves the key.
    pub verdict: String,
}

/// The output of `keyway explain`: the op, the signature and the serving candidate, then a line for each interposer,
/// each candidate and each note.
impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\nsignature {}\n{}: {}", self.op, self.signature, self.key, self.verdict)?;
        for (i, interposer) in self.interposers.iter().enumerate() {
            let order = if i == 0 { "first" } else { "next" };
            let when = if interposer.default_on { "" } else { " where a thread switches it on" };
            write!(f, "\n  interposer `{}` of `{}` acts {order}{when}", interposer.name, interposer.plugin)?;
        }
        for (rank, candidate) in self.candidates.iter().enumerate() {
            let mark = if candidate.chosen { "serves, " } else { "" };
            write!(f, "\n  {}. {}: {mark}{}", rank + 1, candidate.what, candidate.reason)?;
        }
        self.notes.iter().try_for_each(|note| write!(f, "\n  {note}"))
    }
}

fn key_text(device: Device, layout: Layout, dtype: DType) -> String {
    format!("({device}, {layout}, {dtype})")
}

fn kernel_text(kernel: &KernelEntry) -> String {
    format!(
        "kernel of `{}` {} for ({}, {}, {})",
        kernel.plugin.name,
        kernel.plugin.version,
        DEVICES.name(kernel.device),
        kernel.layout,
        crate::base::intern::DTYPES.name(kernel.dtype),
    )
}

/// Lists every candidate of a key in the order in which they are tried, then the kernels that are skipped.
pub fn explain(op: &'static OpEntry, device: Device, layout: Layout, dtype: DType) -> Explanation {
    let generation = current();
    let listed = match generation.op(op) {
        Some(rows) => serving::candidates(generation, rows, device, layout, dtype),
        None => SmallVec::new(),
    };
    let missing_part = serving::first_missing_part(op, device, layout, dtype);
    let mut found: Vec<Candidate> = Vec::new();
    for (rank, candidate) in listed.iter().enumerate() {
        let first = !found.iter().any(|earlier| earlier.chosen);
        let before = kernels_of(&listed[..rank]).collect();
        let key = Key { op, layout, dtype };
        found.push(one(candidate, key, Rank { first, before }, missing_part));
    }
    found.extend(not_asked(op, device, layout, dtype, &listed));
    let asked = |kernel: &KernelEntry| {
        let same =
            |c: &serving::Candidate| matches!(c, serving::Candidate::Kernel(k) if std::ptr::eq(*k, kernel));
        listed.iter().any(same)
    };
    for kernel in kernels().into_iter().filter(|k| k.op == op.name && k.dtype == dtype.code()) {
        let near = kernel.layout == layout || Some(kernel.layout) == layout.parent();
        if near && same_device(kernel, device) && !asked(kernel) {
            found.push(Candidate {
                what: kernel_text(kernel),
                chosen: false,
                reason: passed_over(op, kernel, device),
            });
        }
    }
    let verdict = match found.iter().find(|c| c.chosen) {
        Some(chosen) => format!("served by {}", chosen.what),
        None => "nothing serves this key".to_string(),
    };
    Explanation {
        op: op.schema.text.to_string(),
        signature: op.schema.signature.clone(),
        key: key_text(device, layout, dtype),
        interposers: interposers_of(op),
        candidates: found,
        notes: idle_preferences(&listed),
        verdict,
    }
}

/// Whether a kernel was registered for this device, or for the device type of which this one is another plugin's version.
fn same_device(kernel: &KernelEntry, device: Device) -> bool {
    let (wanted, asked) = (DEVICES.name(kernel.device), device.name());
    wanted == asked || asked.split_once('@').is_some_and(|(name, _)| name == wanted)
}

/// The key that is explained, without the device.
#[derive(Clone, Copy)]
struct Key {
    op: &'static OpEntry,
    layout: Layout,
    dtype: DType,
}

/// The rank of a candidate.
struct Rank {
    /// Whether no previous candidate can serve the key.
    first: bool,
    /// The kernels before it.
    before: Vec<&'static KernelEntry>,
}

fn kernels_of(listed: &[serving::Candidate]) -> impl Iterator<Item = &'static KernelEntry> {
    listed.iter().filter_map(|candidate| match candidate {
        serving::Candidate::Kernel(kernel) => Some(*kernel),
        _ => None,
    })
}

/// A sentence for each preferred plugin that has no kernel among the candidates.
fn idle_preferences(listed: &[serving::Candidate]) -> Vec<String> {
    let idle = |plugin: &&PluginEntry| {
        is_preferred(plugin)
            && !plugin.is_retired()
            && kernels_of(listed).all(|k| k.plugin.name != plugin.name)
    };
    let note = |plugin: &PluginEntry| {
        format!(
            "`{}` is preferred, but no kernel of it serves this key: that has no effect here",
            plugin.name
        )
    };
    plugins().into_iter().filter(idle).map(note).collect()
}

/// The reason why a kernel is ranked after the kernels before it.
fn asked_after(kernel: &KernelEntry, layout: Layout, before: &[&KernelEntry]) -> String {
    let mut reasons: Vec<String> = Vec::new();
    for earlier in before {
        let (name, rank) = (earlier.plugin.name, earlier.plugin.priority());
        let reason = match is_preferred(earlier.plugin) {
            _ if earlier.layout == layout && kernel.layout != layout => "is for the exact layout",
            _ if rank <= kernel.plugin.priority() => "was found first",
            true if is_preferred(kernel.plugin) => "is preferred more",
            true => "is preferred",
            false => "has the higher priority",
        };
        let reason = format!("`{name}` {reason}");
        if !reasons.contains(&reason) {
            reasons.push(reason);
        }
    }
    match reasons.is_empty() {
        true => "asked if those before refuse".to_string(),
        false => format!("asked if those before refuse: {}", reasons.join(", ")),
    }
}

/// Whether the fallback device can serve the key, and the reason.
fn fallback(to: u16, Key { op, layout, dtype }: Key) -> (bool, String) {
    let name = DEVICES.name(to);
    if !is_there(to) {
        let reason =
            format!("the device's policy names it, but no backend for `{name}` is installed; {CHANGED_BY}");
        return (false, reason);
    }
    match serving::server(op, Device { kind: to, index: 0 }, layout, dtype) {
        Some(_) => (true, "the device's policy allows it".to_string()),
        None => {
            (false, format!("the device's policy names it, but nothing serves the key on `{name}` either"))
        }
    }
}

/// For a composite op on a device with a fallback, the candidate that is skipped, with the reason: either the whole call
/// moves to the fallback device, or none of it does.
fn not_asked(
    op: &'static OpEntry,
    device: Device,
    layout: Layout,
    dtype: DType,
    listed: &[serving::Candidate],
) -> Option<Candidate> {
    let to = current().fallback(device.kind).target()?;
    op.spec.decomposition?;
    let leaving = serving::first_leaving_part(op, device, layout, dtype);
    let leaves = listed.iter().any(|c| matches!(c, serving::Candidate::Fallback { .. }));
    let (what, reason) = match leaving {
        Some((part, dtype)) if leaves => (
            "other ops".to_string(),
            format!(
                "not asked: its part `{part}` is not served here for {dtype}, and an op leaves its device whole"
            ),
        ),
        _ => {
            let reason = match leaving {
                None => "not asked: each part of the op is served here".to_string(),
                Some(_) => format!("not asked for the op: {}", fallback(to, Key { op, layout, dtype }).1),
            };
            (format!("fallback to `{}`", DEVICES.name(to)), reason)
        }
    };
    Some(Candidate { what, chosen: false, reason })
}

fn one(
    candidate: &serving::Candidate,
    key: Key,
    Rank { first, before }: Rank,
    missing_part: Option<(&'static str, DType)>,
) -> Candidate {
    use serving::Candidate as Listed;
    let layout = key.layout;
    let mut can = true;
    let (what, reason) = match candidate {
        Listed::View => ("the host".to_string(), "a view of a strided tensor is metadata only".to_string()),
        Listed::Host => ("the host".to_string(), "it moves bytes or changes a layout itself".to_string()),
        Listed::Kernel(kernel) => {
            let preferred = if is_preferred(kernel.plugin) { "; its plugin is preferred" } else { "" };
            let reason = match (first, kernel.layout == layout) {
                (true, true) => format!("the exact key{preferred}"),
                (true, false) => format!(
                    "`{}` is the parent of `{layout}`, and there is no closer kernel{preferred}",
                    kernel.layout
                ),
                (false, _) => asked_after(kernel, layout, &before),
            };
            (kernel_text(kernel), reason)
        }
        Listed::Decomposition => {
            let reason = match missing_part {
                Some((part, dtype)) => {
                    can = false;
                    format!("its part `{part}` has no kernel for {dtype}, so a call that needs it fails")
                }
                // Views, which need no kernel for strided tensors, are not among the parts.
                None if first && layout != Layout::STRIDED => {
                    "there is no kernel; whether each of its parts takes this layout shows in the call"
                        .to_string()
                }
                None if first => "there is no kernel".to_string(),
                None => "asked if those before refuse; its parts are recorded for gradients".to_string(),
            };
            ("other ops".to_string(), reason)
        }
        Listed::Fallback { to, .. } => {
            let reason;
            (can, reason) = fallback(*to, key);
            (format!("fallback to `{}`", DEVICES.name(*to)), reason)
        }
    };
    Candidate { what, chosen: first && can, reason }
}

/// The reason why a kernel is not a candidate for this key.
fn passed_over(op: &OpEntry, kernel: &KernelEntry, device: Device) -> String {
    if kernel.plugin.is_retired() {
        return "its plugin is retired".to_string();
    }
    if kernel.signature != op.schema.signature {
        return format!(
            "it was written against `{}`, but the op is `{}`",
            kernel.signature, op.schema.signature
        );
    }
    match server(device.kind) {
        Some(owner) => format!(
            "the memory of `{device}` is that of `{}`, with which its plugin does not declare itself compatible",
            owner.plugin.name
        ),
        None => format!("no plugin brings the device `{}`", device.name()),
    }
}

/// The error for a key that no candidate serves.
#[cold]
pub(crate) fn missing(
    args: &Args<'_>,
    device: Device,
    layout: Layout,
    dtype: DType,
    refused: Vec<String>,
) -> Error {
    let arguments = args
        .values
        .iter()
        .enumerate()
        .filter_map(|(i, arg)| match arg {
            Arg::Tensor(t) => Some(format!("{} {t:?}", args.op.schema.param_name(i))),
            Arg::Tensors(list) => Some(format!("{} {list:?}", args.op.schema.param_name(i))),
            _ => None,
        })
        .collect();
    let all = kernels();
    let mine: Vec<&KernelEntry> =
        all.iter().copied().filter(|k| k.op == args.name() && !k.plugin.is_retired()).collect();
    let shown = worth_showing(&mine, device, layout, dtype, !refused.is_empty());
    let mut lines: Vec<(String, Vec<&'static str>)> = Vec::new();
    for kernel in &shown {
        let head =
            format!("`{}` for ({}, {})", kernel.plugin.name, DEVICES.name(kernel.device), kernel.layout);
        let name = crate::base::intern::DTYPES.name(kernel.dtype);
        match lines.iter_mut().find(|(h, _)| *h == head) {
            Some((_, dtypes)) => dtypes.push(name),
            None => lines.push((head, vec![name])),
        }
    }
    let distance =
        |k: &KernelEntry| (k.device != device.kind, k.layout != layout, dtype_distance(dtype, k.dtype));
    let nearest = shown.iter().min_by_key(|k| distance(k)).map(|k| kernel_text(k));
    let help = match all.iter().any(|k| same_device(k, device)) {
        true => help(args, device, layout, dtype, &mine, !refused.is_empty()),
        false => match server(device.kind) {
            Some(entry) => format!(
                "`{}` brings the device `{}`, but no kernel for it is loaded: add a library with kernels for it, or let its calls \
                 fall back to another device, with `--fallback`, KEYWAY_FALLBACK or `set_device_fallback`{}",
                entry.plugin.name,
                device.name(),
                crate::base::lacking::after()
            ),
            None => format!(
                "no backend for `{}` is installed: put its library into a folder that `keyway backend paths` lists{}",
                device.name(),
                crate::base::lacking::after()
            ),
        },
    };
    Error::MissingKernel(Box::new(MissingKernel {
        op: args.name(),
        within: Vec::new(),
        refused,
        key: key_text(device, layout, dtype),
        arguments,
        registered: lines
            .into_iter()
            .map(|(head, dtypes)| format!("{head}: {}", dtypes.join(", ")))
            .collect(),
        nearest,
        fallback: None,
        help,
    }))
}

/// The distance of a kernel's dtype from the wanted one, as a sort key: another category is farthest, then one that cannot
/// represent every value, then one of another width.
fn dtype_distance(wanted: DType, code: u16) -> (bool, bool, u32, bool) {
    let Some(dtype) = DType::from_code(code) else { return (true, true, u32::MAX, true) };
    let widths = dtype.size().abs_diff(wanted.size());
    let holds = wanted.promote(dtype) == Some(dtype);
    (
        dtype.category() != wanted.category(),
        !holds,
        u32::try_from(widths).unwrap_or(u32::MAX),
        dtype != wanted,
    )
}

/// The kernels of an op that a converted tensor could use; other kernels only if there are none of these. Empty if the
/// kernel for the key itself refused: its reason is more useful.
fn worth_showing<'a>(
    kernels: &[&'a KernelEntry],
    device: Device,
    layout: Layout,
    dtype: DType,
    is_refused: bool,
) -> Vec<&'a KernelEntry> {
    let is_own = |k: &KernelEntry| k.device == device.kind && k.layout == layout && k.dtype == dtype.code();
    if is_refused && kernels.iter().any(|k| is_own(k)) {
        return Vec::new();
    }
    let is_near = |k: &KernelEntry| k.device == device.kind && (k.layout == layout || k.layout.is_strided());
    let near: Vec<_> = kernels.iter().filter(|k| is_near(k)).copied().collect();
    if near.is_empty() { kernels.to_vec() } else { near }
}

/// Advice for a key that no kernel of the op serves, or that one refused.
fn help(
    args: &Args<'_>,
    device: Device,
    layout: Layout,
    dtype: DType,
    kernels: &[&KernelEntry],
    is_refused: bool,
) -> String {
    let name = device.name();
    let any = |which: &dyn Fn(&KernelEntry) -> bool| kernels.iter().any(|k| which(k));
    let is_here = |k: &KernelEntry| k.device == device.kind;
    let mut ways = Vec::new();
    // Ops without kernels, such as those that only create views, support strided tensors.
    if !layout.is_strided() && (kernels.is_empty() || any(&|k| is_here(k) && k.layout.is_strided())) {
        ways.push(
            "make the tensor strided with `to_dense()` (`--layout-fallback warn` or `set_layout_fallback` does so for every such \
             call)",
        );
    }
    if !is_refused && any(&|k| is_here(k) && k.layout == layout && k.dtype != dtype.code()) {
        ways.push(match dtype.is_complex() {
            true => {
                "apply it to `abs()`, or to `real()` and `imag()`, if it is not defined for complex numbers"
            }
            false => "cast with `to_dtype`",
        });
    }
    let has_devices = |kind| {
        kind == Device::CPU.kind || server(kind).is_some_and(|entry| crate::device::count(entry).0 > 0)
    };
    if any(&|k| !is_here(k) && k.layout == layout && has_devices(k.device)) {
        ways.push("move the tensor with `to_device`");
    }
    if device != Device::CPU {
        ways.push("let the CPU do it with `--fallback cpu` or `set_fallback`");
    }
    let library = args.op.spec.library.filter(|_| kernels.is_empty());
    let install = library.map(|library| {
        format!("install the library `{library}`, which has its kernels, with `keyway backend install`")
    });
    match &install {
        Some(install) => ways.insert(0, install),
        None if ways.is_empty() => ways.push("install a backend that serves it"),
        None => {}
    }
    format!(
        "run `keyway explain {} --device {name} --layout {layout} --dtype {dtype}`; {}",
        args.name(),
        ways.join(", or ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_dtype_is_of_the_same_category_and_width() {
        let nearest = |wanted: DType, there: &[DType]| {
            *there.iter().min_by_key(|dtype| dtype_distance(wanted, dtype.code())).expect("a dtype")
        };
        let (b, f, i) = (
            DType::BOOL,
            [DType::BF16, DType::F16, DType::F64, DType::F32],
            [DType::I8, DType::I16, DType::I64],
        );
        assert_eq!(nearest(DType::I32, &[b, i[0], i[1], i[2], f[3]]), DType::I64);
        assert_eq!(nearest(DType::U8, &[b, f[0], i[0], i[1], i[2]]), DType::I16);
        assert_eq!(nearest(DType::U64, &[f[3], i[0], i[2]]), DType::I64);
        assert_eq!(nearest(DType::F32, &[f[0], f[1], f[2], i[2]]), DType::F64);
        assert_eq!(nearest(DType::F64, &[f[0], f[1], f[3], i[2]]), DType::F32);
        assert_eq!(nearest(DType::BF16, &[f[1], f[2], f[3]]), DType::F32);
        assert_eq!(nearest(DType::F16, &f), DType::F16);
        assert_eq!(nearest(DType::I64, &f), DType::F64);
    }
}
