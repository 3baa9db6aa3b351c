//! Why a key is served by whom, and what to do where nobody serves it.

use crate::base::dtype::DType;
use crate::base::error::{Error, MissingKernel};
use crate::base::key::{Device, Layout};
use crate::op::{Arg, Args, OpEntry};
use crate::registry::table::{Cell, current};
use crate::registry::{KernelEntry, kernels};
use serde::Serialize;
use std::sync::atomic::Ordering;

/// One candidate for a key, in the order in which they are asked.
#[derive(Clone, Debug, Serialize)]
pub struct Candidate {
    /// What it is: a kernel of a plugin, a parent layout's kernel, a decomposition, a fallback.
    pub what: String,
    /// Whether it serves the key.
    pub chosen: bool,
    /// Why, or why not.
    pub reason: String,
}

/// Every candidate for a key.
#[derive(Clone, Debug, Serialize)]
pub struct Explanation {
    /// The op's schema.
    pub op: String,
    /// Device, layout and dtype.
    pub key: String,
    /// Candidates in order.
    pub candidates: Vec<Candidate>,
    /// Who serves the key, in a few words.
    pub verdict: String,
}

fn key_text(device: Device, layout: Layout, dtype: DType) -> String {
    format!("({device}, {layout}, {dtype})")
}

fn kernel_text(kernel: &KernelEntry) -> String {
    format!(
        "kernel of `{}` {} for ({}, {}, {})",
        kernel.plugin.name,
        kernel.plugin.version,
        crate::base::intern::DEVICES.name(kernel.device),
        kernel.layout,
        crate::base::intern::DTYPES.name(kernel.dtype),
    )
}

/// Lists every candidate for a key with the reason why it serves or was passed over.
pub fn explain(op: &'static OpEntry, device: Device, layout: Layout, dtype: DType) -> Explanation {
    let generation = current();
    let mut candidates = Vec::new();
    let cell = match generation.op(op) {
        Some(rows) => generation.cell(rows, device, layout, dtype),
        None => Cell::Missing,
    };
    if op.spec.rule.is_view() && layout.id() <= Layout::CHANNELS_LAST.id() {
        candidates.push(Candidate {
            what: "the host".to_string(),
            chosen: true,
            reason: "a view of a strided tensor is metadata only".to_string(),
        });
    }
    let served_by_host = !candidates.is_empty();
    let parent = generation
        .layout(layout)
        .and_then(|l| l.parent)
        .or_else(|| (layout == Layout::CHANNELS_LAST).then_some(Layout::STRIDED));
    for kernel in kernels().into_iter().filter(|k| k.op == op.name && k.device == device.kind) {
        if kernel.dtype != dtype.code() || (kernel.layout != layout && Some(kernel.layout) != parent) {
            continue;
        }
        let chosen = !served_by_host && matches!(cell, Cell::Kernel(winner) if std::ptr::eq(winner, kernel));
        let reason = if kernel.plugin.retired.load(Ordering::Relaxed) {
            "its plugin is retired".to_string()
        } else if kernel.signature != op.schema.signature {
            format!("it was written against `{}`, but the op is `{}`", kernel.signature, op.schema.signature)
        } else if chosen && kernel.layout == layout {
            "the exact key".to_string()
        } else if chosen {
            format!("`{}` is the parent of `{layout}`, and there is no closer kernel", kernel.layout)
        } else if kernel.layout != layout {
            "a kernel for the exact layout goes first".to_string()
        } else {
            "another plugin has the higher priority or was found first".to_string()
        };
        candidates.push(Candidate { what: kernel_text(kernel), chosen, reason });
    }
    candidates.sort_by_key(|c| !c.chosen);
    if op.spec.decomposition.is_some() {
        let chosen = matches!(cell, Cell::Decompose) && !served_by_host;
        let reason = if chosen { "there is no kernel" } else { "a kernel goes first" };
        candidates.push(Candidate { what: "other ops".into(), chosen, reason: reason.into() });
    }
    if let Cell::Fallback { to, .. } = cell {
        candidates.push(Candidate {
            what: format!("fallback to `{}`", crate::base::intern::DEVICES.name(to)),
            chosen: true,
            reason: "the device's policy allows it".into(),
        });
    }
    let verdict = match candidates.iter().find(|c| c.chosen) {
        Some(chosen) => format!("served by {}", chosen.what),
        None => "nothing serves this key".to_string(),
    };
    Explanation { op: op.schema.text.to_string(), key: key_text(device, layout, dtype), candidates, verdict }
}

/// The error for a key that nobody serves.
#[cold]
pub(crate) fn missing(args: &Args<'_>, device: Device, layout: Layout, dtype: DType) -> Error {
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
    let mine: Vec<&KernelEntry> = all
        .iter()
        .copied()
        .filter(|k| k.op == args.name() && !k.plugin.retired.load(Ordering::Relaxed))
        .collect();
    let mut lines: Vec<(String, Vec<&'static str>)> = Vec::new();
    for kernel in &mine {
        let head = format!(
            "`{}` for ({}, {})",
            kernel.plugin.name,
            crate::base::intern::DEVICES.name(kernel.device),
            kernel.layout
        );
        let name = crate::base::intern::DTYPES.name(kernel.dtype);
        match lines.iter_mut().find(|(h, _)| *h == head) {
            Some((_, dtypes)) => dtypes.push(name),
            None => lines.push((head, vec![name])),
        }
    }
    let distance = |k: &KernelEntry| {
        4 * u32::from(k.device != device.kind)
            + 2 * u32::from(k.layout != layout)
            + u32::from(k.dtype != dtype.code())
    };
    let nearest = mine.iter().min_by_key(|k| distance(k)).map(|k| kernel_text(k));
    let no_backend = !all.iter().any(|k| k.device == device.kind);
    let help = if no_backend {
        format!(
            "no backend for `{}` is installed: put its library into a folder that `keyway backend paths` lists",
            device.name()
        )
    } else {
        format!(
            "run `keyway explain {} --device {} --layout {layout} --dtype {dtype}`, or convert with `to_dtype` or `to_device`",
            args.name(),
            device.name()
        )
    };
    Error::MissingKernel(Box::new(MissingKernel {
        op: args.name(),
        key: key_text(device, layout, dtype),
        arguments,
        registered: lines
            .into_iter()
            .map(|(head, dtypes)| format!("{head}: {}", dtypes.join(", ")))
            .collect(),
        nearest,
        help,
    }))
}
