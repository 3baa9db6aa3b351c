//! The families of cases. Each lists its cases from the op definitions, and runs one case.

mod accuracy;
mod aliasing;
mod at_once;
mod claims;
mod complex;
pub(crate) mod composites;
mod context;
mod corners;
mod determinism;
mod devices;
mod drawn;
mod errors;
mod exact;
mod extremes;
mod fft;
mod format;
mod gradients;
mod gradients_by_oracle;
mod guards;
mod huge;
mod interposers;
mod kernels;
mod large;
mod layout_grads;
mod layouts;
mod leaks;
mod lengths;
mod linalg;
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
mod samples;
mod scalars;
mod scaled;
mod scope;
mod settings;
mod sizes;
mod soak;
mod state;
mod strided;
mod threads;
mod unclaimed;
mod values;
mod weighted;

pub use context::Context;
pub(crate) use drawn::source::Source;
use samples::{full, in_four_dims, typical, with_sizes};
pub use samples::{has_tested, tensors, tested};
pub use scope::{
    Draws, Family, Foreign, Op, Scope, allowed, factor, has_out, is_computed, is_in, names_sizes, preferred,
};

use crate::case::Case;
use crate::outcome::Outcome;
use crate::recorder::Seen;

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
    fft::FAMILY,
    linalg::FAMILY,
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
    lengths::FAMILY,
    drawn::FAMILY,
    gradients::FAMILY,
    gradients::SECOND,
    gradients::STRIDED,
    format::FAMILY,
    determinism::FAMILY,
    complex::FAMILY,
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

/// The families that also test each further device of a kind: its kernels are those of the first one, and may be wrong on
/// it if they depend on the device's index, or use state of another device.
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

/// Lists every case of the families that `wanted` selects, on the target's first device and on each further one: on another
/// of the same kind the quick cases of some families, on one of another kind all that the target is responsible for.
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

/// Whether the target served part of a case that ran these kernels. Parts other than kernels are a layout, a device, or a
/// registration.
pub fn serves(context: &Context<'_>, seen: &Seen) -> bool {
    let family = context.case.family;
    [layouts::FAMILY.name, profile::FAMILY.name, interposers::FAMILY.name].contains(&family)
        || composites::is_about_layout(context.case)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::Number;
    use crate::{inputs, oracle};
    use keyway::DType;
    use keyway::ops::def::OpFlags;

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
    const OTHERS: [&str; 10] = [
        "drawn",
        "fft",
        "linalg",
        "layout",
        "layout_grads",
        "plugin_ops",
        "profile",
        "huge",
        "queues",
        "interposers",
    ];

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
