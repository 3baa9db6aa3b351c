//! Composite layouts in the families that are about sizes, strides, threads and values: kernels of such a layout, and the
//! conversions of the layout itself. The tensors are those of `kernels` and `layout`: shapes that the layout holds, in each form
//! of the entries that the suite knows, compared within the tolerance that the layout declares.

mod kernel;
pub(super) mod large;
mod layout;
pub(super) mod sizes;
pub(super) mod strided;
pub(super) mod threads;
mod turns;
pub(super) mod values;

use super::{Scope, kernels};
use crate::case::Case;
use crate::oracle;
use crate::target::Target;
use keyway::dispatcher::registry::{self, KernelEntry};
use keyway::{DType, Layout};
use std::collections::BTreeSet;

/// The dtypes of the cases of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dtypes {
    /// One.
    Usual,
    /// One of each kind that has code of its own: floats of 32 and of 64 bits, integers, halves, bytes.
    Each,
}

/// Kinds of dtypes, the usual one first.
const KINDS: [&[DType]; 5] = [
    &[DType::F32],
    &[DType::F64],
    &[DType::I64, DType::I32],
    &[DType::BF16, DType::F16],
    &[DType::U8, DType::BOOL],
];

/// The variant of a case about the conversions of a layout.
const CONVERSIONS: &str = "conversions";

/// Whether a case is about a layout's conversions.
pub(super) fn is_about_layout(case: &Case) -> bool {
    !case.is_about_op() && case.variant == CONVERSIONS
}

/// Whether a case of one of these families is about a composite layout or a kernel of one.
pub(super) fn is_about(case: &Case) -> bool {
    is_about_layout(case) || is_of_kernel(case)
}

/// Whether a case of one of these families is about a kernel of a composite layout, whose device and layout are its variant.
pub(crate) fn is_of_kernel(case: &Case) -> bool {
    let layout = case.variant.split_once(':').and_then(|(_, layout)| Layout::from_name(layout));
    case.is_about_op() && layout.is_some_and(|layout| !layout.is_strided())
}

/// The dtypes of the target's kernels of the same op, device and layout: one of each of the [`KINDS`], the usual one first.
fn dtypes_of(target: &Target, kernel: &KernelEntry) -> Vec<DType> {
    let same = |k: &&&KernelEntry| (k.op, k.device, k.layout) == (kernel.op, kernel.device, kernel.layout);
    let all: Vec<DType> =
        target.kernels.iter().filter(same).filter_map(|k| DType::from_code(k.dtype)).collect();
    KINDS.iter().filter_map(|kind| kind.iter().find(|dtype| all.contains(dtype)).copied()).collect()
}

/// A case for each op and composite layout that the target has kernels for, and one for each of its layouts.
pub(super) fn cases(scope: &Scope<'_>, family: &'static str, dtypes: Dtypes, cases: &mut Vec<Case>) {
    let here = |k: &&KernelEntry| !k.layout.is_strided() && k.device == scope.target.device.kind;
    let kernels: Vec<&KernelEntry> = scope.target.kernels.iter().copied().filter(|k| here(k)).collect();
    let mut seen = BTreeSet::new();
    for kernel in &kernels {
        let key = kernels::key_of(kernel);
        if !seen.insert((kernel.op, key.clone())) {
            continue;
        }
        let only = dtypes == Dtypes::Usual || scope.quick;
        let of_kinds = dtypes_of(scope.target, kernel).into_iter();
        let chosen = of_kinds.take(if only { 1 } else { KINDS.len() });
        if let Some(op) = scope.ops.iter().find(|op| op.def.name() == kernel.op) {
            if oracle::find(kernel.op).is_some() {
                cases.extend(chosen.map(|dtype| Case::of(family, op.def, dtype, 0, key.clone())));
            }
        } else if let Some(op) = scope.foreign.iter().find(|op| op.entry.name == kernel.op) {
            cases.extend(chosen.map(|dtype| Case::of_foreign(family, op.entry, dtype, 0, key.clone())));
        }
    }
    let mut layouts = registry::layouts();
    layouts.sort_by_key(|entry| entry.layout.name());
    layouts.dedup_by_key(|entry| entry.layout);
    for layout in layouts.into_iter().map(|entry| entry.layout) {
        let served = registry::layout_ops(layout, scope.target.device.kind);
        if served.is_some_and(|entry| entry.plugin.name == scope.target.plugin) {
            let mut case = Case::about(family, layout.name(), CONVERSIONS);
            case.dtype = Some(DType::F32);
            cases.push(case);
        }
    }
}
