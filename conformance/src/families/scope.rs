//! The definition of a family, and the scope from which it lists its cases.

use super::context::Context;
use super::samples::{full, has_tested, typical};
use crate::case::Case;
use crate::oracle;
use crate::outcome::Steps;
use crate::target::{Service, Target};
use keyway::dispatcher::op::{OpEntry, Rule};
use keyway::ops::by_name;
use keyway::ops::def::{Forms, OpDef, OpFlags};
use keyway::ops::sample::Sample;
use keyway::{DType, Tensor};
use std::collections::BTreeSet;

/// A family.
pub struct Family {
    /// The family's name in case ids.
    pub name: &'static str,
    /// A description of its checks in one line.
    pub about: &'static str,
    /// Lists the family's cases.
    pub cases: fn(&Scope<'_>, &mut Vec<Case>),
    /// Runs one case.
    pub run: fn(&Context<'_>) -> Steps,
}

/// The kinds of calls that are drawn.
#[derive(Clone, Copy, Debug, Default)]
pub struct Draws<'a> {
    /// The seed.
    pub seed: u64,
    /// Whether to draw as many calls as an hour allows.
    pub thorough: bool,
    /// The ids of requested single cases, including those of shrunk calls.
    pub ids: &'a [String],
}

/// The scope of a listing of cases.
pub struct Scope<'a> {
    /// The tested plugin and device.
    pub target: &'a Target,
    /// The ops that it is responsible for, with their samples.
    pub ops: &'a [Op],
    /// The ops of its plugin.
    pub foreign: &'a [Foreign],
    /// Whether a part of the cases suffices.
    pub quick: bool,
    /// Whether to include cases of more than 2^31 elements.
    pub huge: bool,
    /// The tier of ops that the target must have kernels for, if requested.
    pub profile: Option<&'a str>,
    /// The draws of the family `drawn`.
    pub draws: Draws<'a>,
}

/// An op with its samples, which are created once.
pub struct Op {
    /// The definition.
    pub def: &'static OpDef,
    /// The op's valid samples.
    pub samples: Vec<Sample>,
}

/// An op of the target's plugin.
pub struct Foreign {
    /// The op.
    pub entry: &'static OpEntry,
    /// The op's valid samples; none if the plugin's samples cannot be read.
    pub samples: Vec<Sample>,
}

impl Foreign {
    /// The op with its samples.
    pub fn new(entry: &'static OpEntry) -> Foreign {
        Foreign { entry, samples: by_name::samples(entry.name).unwrap_or_default() }
    }
}

impl Op {
    /// The index of the sample for cases with a single one.
    pub fn typical(&self) -> Option<usize> {
        typical(&self.samples)
    }

    /// Up to three samples with elements: the first, the middle and the last one.
    pub fn three(&self) -> BTreeSet<usize> {
        let full = full(&self.samples);
        [full.first(), full.get(full.len() / 2), full.last()].into_iter().flatten().copied().collect()
    }
}

/// Kinds of dtypes: with different accumulators, or vectors of different lengths.
const KINDS: [&[DType]; 4] =
    [&[DType::F64], &[DType::I64, DType::I32], &[DType::BF16, DType::F16], &[DType::U8, DType::BOOL]];

impl Scope<'_> {
    /// Calls `visit` with each op, each dtype that it allows and each of its samples; with `quick`, three samples of four dtypes.
    pub fn each(&self, mut visit: impl FnMut(&Op, DType, usize, &Sample)) {
        for op in self.ops {
            for dtype in self.dtypes(op.def) {
                for (nth, sample) in op.samples.iter().enumerate() {
                    // A sample without a tensor of the dtype under test is one case, not one for each dtype.
                    let matters = has_tested(sample) || self.dtypes(op.def).first() == Some(&dtype);
                    if matters && self.wants(nth, op.samples.len()) {
                        visit(op, dtype, nth, sample);
                    }
                }
            }
        }
    }

    /// A case for each op, including those of the target's plugin, in the usual dtype.
    pub(super) fn one_each(&self, family: &'static str, variant: &str, cases: &mut Vec<Case>) {
        for op in self.ops {
            if let (Some(dtype), Some(nth)) = (preferred(op.def), op.typical()) {
                cases.push(Case::of(family, op.def, dtype, nth, variant));
            }
        }
        self.one_foreign_each(family, variant, cases);
    }

    /// The same cases in the dtypes of [`Scope::others`].
    pub(super) fn others_each(&self, family: &'static str, variant: &str, cases: &mut Vec<Case>) {
        for op in self.ops {
            let Some(nth) = op.typical() else { continue };
            for dtype in self.others(op.def).into_iter().filter(|&d| Some(d) != preferred(op.def)) {
                cases.push(Case::of(family, op.def, dtype, nth, variant));
            }
        }
    }

    /// A case for each op of the target's plugin, in the first dtype that it accepts.
    pub(super) fn one_foreign_each(&self, family: &'static str, variant: &str, cases: &mut Vec<Case>) {
        for op in self.foreign {
            let dtype = self.foreign_dtypes(op.entry).into_iter().next();
            if let (Some(dtype), Some(nth)) = (dtype, typical(&op.samples)) {
                cases.push(Case::of_foreign(family, op.entry, dtype, nth, variant));
            }
        }
    }

    /// The dtypes that an op of the target's plugin is called with.
    pub(super) fn foreign_dtypes(&self, op: &OpEntry) -> Vec<DType> {
        let own = self.target.kernels.iter().filter(|k| k.op == op.name);
        if own.clone().next().is_none() {
            return vec![DType::F32, DType::F64];
        }
        let dense = own.filter(|k| k.layout.is_strided());
        let found: Vec<DType> = dense.filter_map(|k| DType::from_code(k.dtype)).collect();
        DType::REAL.into_iter().filter(|d| found.contains(d)).collect()
    }

    /// The dtypes under test of an op.
    pub fn dtypes(&self, def: &OpDef) -> Vec<DType> {
        let quick = [DType::F32, DType::BF16, DType::I64, DType::BOOL];
        let all = DType::REAL.into_iter().filter(|&d| def.dtypes.has(d));
        all.filter(|d| !self.quick || quick.contains(d)).collect()
    }

    /// The dtype for cases with a single one: one that the target has a kernel for, if any.
    pub fn served(&self, def: &'static OpDef) -> Option<DType> {
        let entry = def.entry().ok()?;
        let kernel = |d: DType| def.dtypes.has(d) && self.target.service(entry, d) == Service::Kernel;
        let usual = preferred(def);
        usual.filter(|&d| kernel(d)).or_else(|| DType::REAL.into_iter().find(|&d| kernel(d))).or(usual)
    }

    /// Dtypes besides that of [`Scope::served`] for which kernels have code of their own: one of each kind that the target
    /// has a kernel for.
    pub fn others(&self, def: &'static OpDef) -> Vec<DType> {
        let Ok(entry) = def.entry() else { return Vec::new() };
        let kernel = |d: &DType| def.dtypes.has(*d) && self.target.service(entry, *d) == Service::Kernel;
        let served = self.served(def);
        let kinds = KINDS.iter().filter_map(|kind| kind.iter().copied().find(kernel));
        kinds.filter(|&dtype| Some(dtype) != served).collect()
    }

    /// The dtype in which an op's derivatives are tested: the widest float that has a kernel.
    pub fn differentiated(&self, def: &'static OpDef) -> DType {
        let served = |&dtype: &DType| {
            let service = |entry| self.target.service(entry, dtype) != Service::Missing;
            def.dtypes.has(dtype) && def.entry().is_ok_and(service)
        };
        [DType::F64, DType::F32].into_iter().find(served).unwrap_or(DType::F64)
    }

    /// Whether sample `nth` of `count` is selected: all, or three spread over them.
    pub fn wants(&self, nth: usize, count: usize) -> bool {
        !self.quick || count <= 3 || nth == 0 || nth == count / 2 || nth == count - 1
    }
}

/// Whether the op belongs to one of these families of the frontend, such as `pointwise::ALL`.
pub fn is_in(def: &OpDef, families: &[&[&'static OpDef]]) -> bool {
    families.iter().copied().flatten().any(|&d| std::ptr::eq(d, def))
}

/// The dtype for cases with a single one.
pub fn preferred(def: &OpDef) -> Option<DType> {
    [DType::F32, DType::I64, DType::BOOL].into_iter().find(|&d| def.dtypes.has(d))
}

/// Whether the op has kernels and an oracle: it is neither a view nor done by the host.
pub fn is_computed(def: &OpDef) -> bool {
    !def.rule.is_view() && !matches!(def.rule, Rule::Host(_)) && oracle::find(def.name()).is_some()
}

/// Whether the `out=` form exists.
pub fn has_out(def: &OpDef) -> bool {
    def.forms != Forms::New
}

/// Whether the op refused tensors of these shapes: it has an argument that specifies sizes, which is invalid with sizes
/// other than its sample's. The host reports that before any kernel is called.
pub fn names_sizes(result: &keyway::Result<Vec<Tensor>>) -> bool {
    matches!(result, Err(keyway::Error::Dispatch(keyway::dispatcher::Error::Shape { .. })))
}

/// The factor of the dtype's tolerance for the results of an op: 1, or 0 for exact ones.
pub fn allowed(def: &OpDef) -> f64 {
    if def.is(OpFlags::EXACT) || def.rule.is_view() { 0.0 } else { 1.0 }
}

/// Factor of the dtype's tolerance for a sample's results.
pub fn factor(def: &OpDef, sample: &Sample) -> f64 {
    allowed(def) * sample.tolerance_factor.map_or(1.0, |(factor, _)| factor)
}
