//! The families of cases. Each lists its cases from the op definitions, and runs one.

mod accuracy;
mod aliasing;
mod claims;
mod context;
mod corners;
mod determinism;
mod devices;
mod drawn;
mod errors;
mod exact;
mod extremes;
mod format;
mod gradients;
mod gradients_by_oracle;
mod guards;
mod huge;
pub(crate) mod interposers;
mod kernels;
mod large;
mod layout_grads;
mod layouts;
mod leaks;
mod magnitudes;
mod numbers;
mod orders;
mod out;
mod pitched;
mod placements;
mod plugin_ops;
mod profile;
mod promotion;
mod queues;
mod random;
mod scalars;
mod scaled;
mod settings;
mod sizes;
mod soak;
mod state;
mod strided;
mod threads;
mod unclaimed;
mod values;

pub use context::Context;
pub use drawn::Draws;

use crate::case::Case;
use crate::oracle;
use crate::outcome::{Outcome, Steps};
use crate::recorder::Seen;
use crate::target::{Service, Target};
use keyway::dispatcher::op::{OpEntry, Rule};
use keyway::ops::by_name;
use keyway::ops::def::{Forms, OpDef, OpFlags};
use keyway::ops::sample::{Fill, Role, Sample, SampleArg, TensorSample};
use keyway::{DType, Tensor};
use std::collections::BTreeSet;

/// A family.
pub struct Family {
    /// Its name in case ids.
    pub name: &'static str,
    /// Description of its checks, in one line.
    pub about: &'static str,
    /// Its cases.
    pub cases: fn(&Scope<'_>, &mut Vec<Case>),
    /// Runs one.
    pub run: fn(&Context<'_>) -> Steps,
}

/// Every family, in the order of the report.
pub const ALL: &[Family] = &[
    values::FAMILY,
    strided::FAMILY,
    pitched::FAMILY,
    out::FAMILY,
    orders::FAMILY,
    guards::FAMILY,
    aliasing::FAMILY,
    claims::FAMILY,
    kernels::FAMILY,
    plugin_ops::FAMILY,
    promotion::FAMILY,
    errors::FAMILY,
    extremes::FAMILY,
    exact::FAMILY,
    accuracy::FAMILY,
    magnitudes::FAMILY,
    corners::FAMILY,
    corners::DERIVATIVES,
    numbers::FAMILY,
    scalars::FAMILY,
    large::FAMILY,
    sizes::FAMILY,
    scaled::FAMILY,
    drawn::FAMILY,
    gradients::FAMILY,
    gradients::SECOND,
    gradients::STRIDED,
    format::FAMILY,
    determinism::FAMILY,
    random::FAMILY,
    state::FAMILY,
    settings::FAMILY,
    threads::FAMILY,
    soak::FAMILY,
    leaks::FAMILY,
    devices::FAMILY,
    queues::FAMILY,
    interposers::FAMILY,
    layouts::FAMILY,
    layout_grads::FAMILY,
    profile::FAMILY,
    huge::FAMILY,
];

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

/// An op with its samples, which are made once.
pub struct Op {
    /// The definition.
    pub def: &'static OpDef,
    /// Its valid samples.
    pub samples: Vec<Sample>,
}

/// An op of the target's plugin.
pub struct Foreign {
    /// The op.
    pub entry: &'static OpEntry,
    /// Its valid samples; none if the plugin's samples cannot be read.
    pub samples: Vec<Sample>,
}

impl Foreign {
    /// The op with its samples.
    pub fn new(entry: &'static OpEntry) -> Foreign {
        Foreign { entry, samples: by_name::samples(entry.name).unwrap_or_default() }
    }
}

impl Op {
    /// The sample for cases with a single one.
    pub fn typical(&self) -> Option<usize> {
        typical(&self.samples)
    }

    /// Up to three samples with elements: the first, the middle and the last one.
    pub fn three(&self) -> BTreeSet<usize> {
        let full = full(&self.samples);
        [full.first(), full.get(full.len() / 2), full.last()].into_iter().flatten().copied().collect()
    }
}

/// Kinds of dtypes: with other accumulators, or vectors of another length.
const KINDS: [&[DType]; 4] =
    [&[DType::F64], &[DType::I64, DType::I32], &[DType::BF16, DType::F16], &[DType::U8, DType::BOOL]];

/// The middle one of the samples with elements, of those whose values another seed changes if there are such.
fn typical(samples: &[Sample]) -> Option<usize> {
    let drawn = |s: &Sample| tested(s).any(|t| !matches!(t.fill, Fill::Values(_)));
    let mut full = full(samples);
    if full.iter().any(|&nth| drawn(&samples[nth])) {
        full.retain(|&nth| drawn(&samples[nth]));
    }
    full.get(full.len() / 2).copied().or_else(|| (!samples.is_empty()).then_some(0))
}

/// The samples all of whose tensors have elements.
fn full(samples: &[Sample]) -> Vec<usize> {
    let full = |s: &Sample| tensors(s).all(|t| t.sizes.iter().all(|&n| n > 0));
    (0..samples.len()).filter(|&nth| full(&samples[nth])).collect()
}

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
    fn one_each(&self, family: &'static str, variant: &str, cases: &mut Vec<Case>) {
        for op in self.ops {
            if let (Some(dtype), Some(nth)) = (preferred(op.def), op.typical()) {
                cases.push(Case::of(family, op.def, dtype, nth, variant));
            }
        }
        self.one_foreign_each(family, variant, cases);
    }

    /// The same cases in the dtypes of [`Scope::others`].
    fn others_each(&self, family: &'static str, variant: &str, cases: &mut Vec<Case>) {
        for op in self.ops {
            let Some(nth) = op.typical() else { continue };
            for dtype in self.others(op.def).into_iter().filter(|&d| Some(d) != preferred(op.def)) {
                cases.push(Case::of(family, op.def, dtype, nth, variant));
            }
        }
    }

    /// A case for each op of the target's plugin, in the first dtype that it accepts.
    fn one_foreign_each(&self, family: &'static str, variant: &str, cases: &mut Vec<Case>) {
        for op in self.foreign {
            let dtype = plugin_ops::dtypes(self, op.entry).into_iter().next();
            if let (Some(dtype), Some(nth)) = (dtype, typical(&op.samples)) {
                cases.push(Case::of_foreign(family, op.entry, dtype, nth, variant));
            }
        }
    }

    /// The dtypes under test of an op.
    pub fn dtypes(&self, def: &OpDef) -> Vec<DType> {
        let quick = [DType::F32, DType::BF16, DType::I64, DType::BOOL];
        let all = DType::REAL.into_iter().filter(|&d| def.dtypes.has(d));
        all.filter(|d| !self.quick || quick.contains(d)).collect()
    }

    /// The dtype for cases with a single one: one that the target has a kernel of, if any.
    pub fn served(&self, def: &'static OpDef) -> Option<DType> {
        let entry = def.entry().ok()?;
        let kernel = |d: DType| def.dtypes.has(d) && self.target.service(entry, d) == Service::Kernel;
        let usual = preferred(def);
        usual.filter(|&d| kernel(d)).or_else(|| DType::REAL.into_iter().find(|&d| kernel(d))).or(usual)
    }

    /// Dtypes besides that of [`Scope::served`] for which kernels have code of their own: one of each kind that the target has a
    /// kernel of.
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

/// The tensors of a sample that are of the dtype under test.
pub fn tested(sample: &Sample) -> impl Iterator<Item = &TensorSample> {
    tensors(sample).filter(|t| t.role == Role::Tested)
}

/// Whether a sample has a tensor of the dtype under test.
pub fn has_tested(sample: &Sample) -> bool {
    tested(sample).next().is_some()
}

/// The tensors of a sample, lists flattened.
pub fn tensors(sample: &Sample) -> impl Iterator<Item = &TensorSample> {
    sample.args.iter().flat_map(|arg| match arg {
        SampleArg::Tensor(t) => std::slice::from_ref(t),
        SampleArg::Tensors(list) => list.as_slice(),
        _ => &[],
    })
}

/// Batch, channels, height, width; none is 1, so that the two formats differ.
const IMAGES: [usize; 4] = [2, 3, 4, 5];

/// The sample with tensors of four or more dimensions: unchanged, or, if all its tensors have one shape, with that replaced.
/// Element-wise ops accept that.
fn in_four_dims(sample: &Sample) -> Option<Sample> {
    if tensors(sample).any(|t| t.role == Role::Tested && t.sizes.len() > 3) {
        return Some(sample.clone());
    }
    with_sizes(sample, &IMAGES)
}

/// The sample with other sizes, if all its tensors have one shape with elements and dimensions.
fn with_sizes(sample: &Sample, sizes: &[usize]) -> Option<Sample> {
    let first = tensors(sample).next()?;
    let alike = tensors(sample).all(|t| t.sizes == first.sizes);
    if !alike || first.sizes.is_empty() || first.sizes.contains(&0) {
        return None;
    }
    let mut sample = sample.clone();
    for arg in &mut sample.args {
        match arg {
            SampleArg::Tensor(t) => t.sizes = sizes.to_vec(),
            SampleArg::Tensors(list) => list.iter_mut().for_each(|t| t.sizes = sizes.to_vec()),
            _ => {}
        }
    }
    Some(sample)
}

/// Whether the op belongs to one of these families of the frontend, such as `pointwise::ALL`.
pub fn is_in(def: &OpDef, families: &[&[&'static OpDef]]) -> bool {
    families.iter().copied().flatten().any(|&d| std::ptr::eq(d, def))
}

/// The dtype for cases where one must do.
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

/// The families that also test each further device of a kind: its kernels are those of the first one, and wrong there if they
/// depend on the device's index, or use state of another device.
const EACH_DEVICE: [&str; 7] = [
    values::FAMILY.name,
    out::FAMILY.name,
    large::FAMILY.name,
    sizes::FAMILY.name,
    state::FAMILY.name,
    devices::FAMILY.name,
    queues::FAMILY.name,
];
/// The families about registration, which are the same for every device of a kind.
const REGISTERED: [&str; 6] = [
    claims::FAMILY.name,
    kernels::FAMILY.name,
    layouts::FAMILY.name,
    layout_grads::FAMILY.name,
    profile::FAMILY.name,
    interposers::FAMILY.name,
];

/// Lists every case of the families that `wanted` selects, on the target's first device and on each further one: on another of
/// the same kind the quick cases of some families, on one of another kind all that the target is responsible for.
pub fn list_all(scope: &Scope<'_>, wanted: impl Fn(&str) -> bool) -> Vec<Case> {
    let mut cases = list(scope, &wanted);
    for further in scope.target.further() {
        let (device, kind) = (further.device, scope.target.device.kind);
        let there = Scope {
            target: &further,
            quick: scope.quick || device.kind == kind || device.index > 0,
            ..*scope
        };
        let judged = |family: &str| match further.has_kernels_here() {
            true if device.kind == kind || device.index > 0 => EACH_DEVICE.contains(&family),
            true => !REGISTERED.contains(&family),
            false => [devices::FAMILY.name, queues::FAMILY.name].contains(&family),
        };
        let more = list(&there, |family| wanted(family) && judged(family));
        cases.extend(more.into_iter().map(|case| case.on(device)));
    }
    cases
}

/// Lists every case of the families that `wanted` selects, on the target's device.
pub fn list(scope: &Scope<'_>, wanted: impl Fn(&str) -> bool) -> Vec<Case> {
    let mut cases = Vec::new();
    for family in ALL.iter().filter(|f| wanted(f.name)) {
        (family.cases)(scope, &mut cases);
    }
    cases
}

/// The name of the family of drawn calls, which is limited by time.
pub const DRAWN: &str = drawn::FAMILY.name;

/// Whether the target had a part in a case that ran these kernels. Parts other than kernels are a layout, a device, or a
/// registration.
pub fn serves(context: &Context<'_>, seen: &Seen) -> bool {
    let family = context.case.family;
    [layouts::FAMILY.name, profile::FAMILY.name, interposers::FAMILY.name].contains(&family)
        || ([devices::FAMILY.name, queues::FAMILY.name].contains(&family)
            && !context.case.is_about_op()
            && context.target.carries_device())
        || seen.has_kernel_of(context.target.plugin)
}

/// Runs a case.
pub fn run(context: &Context<'_>) -> Outcome {
    match ALL.iter().find(|f| f.name == context.case.family) {
        Some(family) => (family.run)(context).into(),
        None => Outcome::Skipped { reason: format!("there is no family `{}`", context.case.family) },
    }
}

/// Whether the op refused tensors of these shapes: it has an argument that names sizes, which is invalid with other sizes than
/// its sample's. The host reports that before any kernel is called.
pub fn names_sizes(result: &keyway::Result<Vec<Tensor>>) -> bool {
    matches!(result, Err(keyway::Error::Dispatch(keyway::dispatcher::Error::Shape { .. })))
}

/// Factor of the dtype's tolerance for the results of an op: 1, or 0 for exact ones.
pub fn allowed(def: &OpDef) -> f64 {
    if def.is(OpFlags::EXACT) || def.rule.is_view() { 0.0 } else { 1.0 }
}

/// Factor of the dtype's tolerance for a sample's results.
pub fn factor(def: &OpDef, sample: &Sample) -> f64 {
    allowed(def) * sample.tolerance_factor.map_or(1.0, |(factor, _)| factor)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::Number;
    use crate::inputs;

    #[test]
    fn exact_ops_give_numbers_that_their_dtype_holds() {
        let mut judged = 0;
        for def in keyway::ops::all().filter(|d| allowed(d) == 0.0 && !d.is(OpFlags::CASTS)) {
            let Some(oracle) = oracle::find(def.name()) else { continue };
            for dtype in [DType::F16, DType::BF16, DType::F32].into_iter().filter(|&d| def.dtypes.has(d)) {
                for (nth, sample) in (def.samples)().iter().enumerate() {
                    let made = oracle(&inputs::of_sample(&sample.args, dtype, nth as u64));
                    for array in made.iter().flatten() {
                        let held = |v: &Number| *v == v.cast(array.dtype) || v.float().is_nan();
                        assert!(array.values.iter().all(held), "{} {dtype} {nth}", def.name());
                        judged += array.numel();
                    }
                }
            }
        }
        assert!(judged > 1000, "{judged}");
    }

    #[test]
    fn facts_are_stated_of_ops_that_they_can_hold_of() {
        use keyway::ops::{pointwise, reduce};
        for def in keyway::ops::all() {
            let name = def.name();
            assert!(!def.is(OpFlags::SIGNED_ZEROS) || is_in(def, &[pointwise::ALL]), "{name}");
            assert!(!def.is(OpFlags::MAY_OVERFLOW) || is_in(def, &[reduce::ALL]), "{name}");
            assert!(!def.is(OpFlags::STRIDE_DEPENDENT) || def.rule.is_view(), "{name}");
        }
    }

    /// The rows of the README's table: family, cases, checks.
    fn rows() -> Vec<[String; 3]> {
        let rows = include_str!("../../README.md").lines().filter(|line| line.starts_with("| `"));
        let cells = rows.map(|row| row.trim_matches('|').split('|').map(|c| c.trim().replace('`', "")));
        cells.map(|row| row.collect::<Vec<_>>().try_into().expect("three cells")).collect()
    }

    #[test]
    fn the_readme_lists_what_each_family_checks() {
        let there: Vec<_> = ALL.iter().map(|f| [f.name, f.about].map(String::from)).collect();
        assert_eq!(rows().into_iter().map(|[name, _, about]| [name, about]).collect::<Vec<_>>(), there);
    }

    /// The families without a case for the CPU backend in an ordinary run, or limited by time.
    const OTHERS: [&str; 8] =
        ["drawn", "layout", "layout_grads", "plugin_ops", "profile", "huge", "queues", "interposers"];

    #[test]
    fn the_counts_in_the_readme_add_up() {
        let judged = rows().into_iter().filter(|[name, ..]| !OTHERS.contains(&name.as_str()));
        let sum: u32 =
            judged.map(|[_, count, _]| count.replace(',', "").parse::<u32>().expect("a count")).sum();
        let (ops, thousands, rest) = (keyway::ops::all().count(), sum / 1000, sum % 1000);
        let text = format!("{ops} ops, {thousands},{rest:03} cases");
        assert!(include_str!("../../README.md").contains(&text), "{text}");
    }
}
