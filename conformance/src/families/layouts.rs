//! Composite layouts of the target: round trips, printing, moving, components, gradients. The tensors have a shape and values
//! that the layout supports.

use super::{Context, Family, Scope, placements, unclaimed};
use crate::array::{Array, Number};
use crate::case::Case;
use crate::compare::{self, Tolerance};
use crate::known_layouts;
use crate::memory::{Arrangement, Placed, read};
use crate::outcome::{Failure, Steps, Stop};
use keyway::autograd::{BackwardOptions, grad};
use keyway::dispatcher::registry::{Conversion, LayoutSample, LayoutTolerance};
use keyway::dispatcher::{layouts, registry, table};
use keyway::{DType, Device, Layout, LayoutOptions, LayoutValue, Tensor};

/// The definition of this family of cases.
pub const FAMILY: Family = Family {
    name: "layout",
    about: "composite layouts: round trip, printing, moving, components, validity, gradients; ops without a kernel for them",
    cases,
    run,
};

fn cases(scope: &Scope<'_>, cases: &mut Vec<Case>) {
    let mut layouts = registry::layouts();
    // Several plugins may declare one layout.
    layouts.sort_by_key(|entry| entry.layout.name());
    layouts.dedup_by_key(|entry| entry.layout);
    for layout in layouts {
        let served = registry::layout_ops(layout.layout, scope.target.device.kind);
        if served.is_some_and(|entry| entry.plugin.name == scope.target.plugin) {
            for variant in ["round_trip", "zeros", "printing", "moving", "components", "invalid", "gradients"]
            {
                let mut case = Case::about(FAMILY.name, layout.layout.name(), variant);
                case.dtype = Some(DType::F32);
                cases.push(case);
            }
            for (nth, sample) in layout.conversion.samples.iter().enumerate() {
                let mut case = Case::about(FAMILY.name, layout.layout.name(), format!("{SAMPLE}{nth}"));
                case.dtype = Some(sample.dtype);
                cases.push(case);
            }
            unclaimed::cases(scope, FAMILY.name, layout.layout, cases);
        }
    }
}

/// The prefix of the variant of a case about one of the layout's samples; its index follows.
const SAMPLE: &str = "sample:";

/// Shapes of which a layout without samples should support at least one.
pub(super) const SHAPES: [&[usize]; 8] =
    [&[4, 6], &[6, 6], &[24], &[2, 4, 6], &[8, 8], &[2, 3, 4, 4], &[32, 32], &[2, 2, 3, 4, 4]];

/// A layout under test.
struct Subject {
    layout: Layout,
    conversion: Option<&'static Conversion>,
    /// The tested sample of the layout; the first for cases without a sample.
    sample: Option<&'static LayoutSample>,
}

impl Subject {
    fn of(case: &Case) -> Result<Subject, Stop> {
        let layout = Layout::from_name(&case.subject)
            .ok_or_else(|| Stop::Skipped(format!("there is no layout `{}`", case.subject)))?;
        let conversion = table::current().layout(layout).map(|entry| &entry.conversion);
        let nth = case.variant.strip_prefix(SAMPLE).and_then(|nth| nth.parse().ok()).unwrap_or(0);
        let sample = conversion.and_then(|conversion| conversion.samples.get(nth));
        Ok(Subject { layout, conversion, sample })
    }

    fn options(&self) -> LayoutOptions {
        self.sample.map(|sample| sample.options.clone()).unwrap_or_default()
    }

    fn convert(&self, strided: &Tensor) -> keyway::Result<Tensor> {
        strided.to_layout_with(self.layout, &self.options())
    }

    /// Tolerance of a round trip conversion: 0 unless the layout is lossy.
    fn tolerance(&self) -> LayoutTolerance {
        let declared = self.conversion.map(|conversion| conversion.tolerance).unwrap_or_default();
        self.sample.and_then(|sample| sample.tolerance).unwrap_or(declared)
    }

    /// Whether gradients of unstored elements are 0.
    fn projects(&self) -> bool {
        self.conversion.is_some_and(|conversion| conversion.projects_gradients)
    }

    /// Values that the layout supports: with the sample's shape, otherwise the first supported shape, in the first
    /// supported filling.
    fn values(&self, dtype: DType, device: Device) -> Result<Array, Stop> {
        let mut shape = self.sample.map(|sample| sample.sizes.as_slice());
        for sizes in SHAPES {
            if shape.is_none() && layouts::accepts(self.layout, device, sizes).map_err(keyway::Error::from)? {
                shape = Some(sizes);
            }
        }
        let Some(sizes) = shape else {
            let expected = format!("a layout that holds one of the shapes {SHAPES:?}, or has samples");
            return Err(Failure::new("the shapes that the layout accepts", expected, "none of them").into());
        };
        let mut refusals = Vec::new();
        for filled in placements::FILLINGS {
            let values = placements::filled(dtype, sizes, filled);
            match self.convert(&Placed::new(&values, Arrangement::Contiguous, device)?.tensor) {
                Ok(_) => return Ok(values),
                Err(error) => refusals.push(error.to_string()),
            }
        }
        let expected = format!("a tensor of shape {sizes:?}, which the layout accepts");
        Err(Failure::new("the conversion to the layout", expected, refusals.join("; ")).into())
    }

    /// Compares values that went through the layout: within its tolerance, or equal.
    fn same(&self, what: &str, expected: &Array, got: &Tensor) -> Steps {
        compared(what, expected, got, Tolerance::of_layout(self.tolerance(), expected))
    }
}

fn compared(what: &str, expected: &Array, got: &Tensor, tolerance: Tolerance) -> Steps {
    let values = read(got)?
        .ok_or_else(|| Stop::from(Failure::new(what.to_string(), "numbers", "bytes that are none")))?;
    compare::array(0, expected, &values, tolerance).map_err(|mut failure| {
        failure.what = format!("{what}: {}", failure.what);
        Stop::from(failure)
    })
}

/// Values of both signs in a range of 2, drawn with the run's seed, so that each digit that a layout loses is detected.
pub(super) fn drawn(dtype: DType, sizes: &[usize], seed: u64) -> Array {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    Array::from_fn(dtype, sizes.to_vec(), |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        Number::Float((state >> 33) as f64 / f64::from(1u32 << 30) - 1.0).cast(dtype)
    })
}

fn run(context: &Context<'_>) -> Steps {
    if context.case.is_about_op() {
        return unclaimed::run(context);
    }
    let (dtype, device) = (context.dtype(), context.target.device);
    let subject = Subject::of(context.case)?;
    let layout = subject.layout;
    let mut values = subject.values(dtype, device)?;
    if context.case.variant == "zeros" {
        values = values.map(dtype, |_| Number::Float(0.0));
    }
    let dense = Placed::new(&values, Arrangement::Contiguous, device)?.tensor;
    let composite = subject.convert(&dense)?;
    if composite.layout() != layout || composite.shape() != dense.shape() || composite.dtype() != dtype {
        return Err(Failure::new(
            "the converted tensor",
            format!("{layout} {:?} {dtype}", dense.shape()),
            format!("{} {:?} {}", composite.layout(), composite.shape(), composite.dtype()),
        )
        .into());
    }
    // The host does not validate the results of kernels.
    layouts::validate(composite.as_ref()).map_err(keyway::Error::from)?;
    match context.case.variant.as_str() {
        "round_trip" | "zeros" => subject.same("there and back", &values, &composite.to_strided()?),
        "printing" => {
            let text = composite.to_string();
            let names = registry::layouts().into_iter().find(|l| l.layout == layout);
            let missing = names
                .into_iter()
                .flat_map(|l| l.components.iter())
                .find(|name| !text.contains(name.as_str()));
            match missing {
                None => Ok(()),
                Some(name) => {
                    Err(Failure::new("the printed text", format!("the component `{name}`"), text).into())
                }
            }
        }
        "moving" => {
            let there = composite.to_device(Device::CPU)?;
            let back = there.to_device(device)?;
            subject.same("moved to the host and back", &values, &back.to_strided()?)
        }
        "components" => {
            let parts = composite.components()?;
            let attrs: Vec<_> = composite.as_ref().attributes().iter().collect();
            let make = |parts: &[Tensor]| {
                Tensor::from_components_with(layout, composite.shape(), dtype, parts, &attrs)
            };
            let made = make(&parts)?;
            subject.same("made anew of its components", &values, &made.to_strided()?)?;
            let one_less = parts[1..].to_vec();
            match make(&one_less) {
                Err(_) => Ok(()),
                Ok(_) => Err(Failure::new("a component too few", "an error", "a tensor").into()),
            }
        }
        "invalid" => invalid(context, layout, &composite),
        "gradients" => {
            // The loss of a lossy layout is tested with values that all differ from 0.
            if !subject.tolerance().is_exact() {
                values = drawn(dtype, &values.sizes, context.seed);
            }
            let leaf = Placed::new(&values, Arrangement::Contiguous, device)?.tensor.requires_grad_(true)?;
            let kept = subject.convert(&leaf.detach())?.to_strided()?;
            // Started with a gradient, so that no op of any backend has a part in it.
            let mut count = 0.0;
            let passed = values.map(dtype, |_| {
                count = (count + 1.0) % 13.0;
                Number::Float(1.0 + count)
            });
            let start = Placed::new(&passed, Arrangement::Contiguous, device)?.tensor;
            let options = BackwardOptions { gradients: Some(vec![start]), ..BackwardOptions::default() };
            let outputs = [subject.convert(&leaf)?.to_strided()?];
            let gradient = grad(&outputs, &[leaf], options)?.pop().flatten();
            let gradient = gradient
                .ok_or_else(|| Stop::from(Failure::new("the gradient of the source", "one", "none")))?;
            if subject.projects() {
                return projected(&kept, &passed, &gradient.to_strided()?);
            }
            let exact = Tolerance::of(dtype);
            compared("the gradient through the layout", &passed, &gradient.to_strided()?, exact)
        }
        _ if context.case.variant.starts_with(SAMPLE) => {
            subject.same("there and back", &values, &composite.to_strided()?)?;
            holds_options(&subject, &composite)?;
            if subject.tolerance().is_exact() {
                return Ok(());
            }
            let values = drawn(dtype, &values.sizes, context.seed);
            let strided = Placed::new(&values, Arrangement::Contiguous, device)?.tensor;
            subject.same("drawn values there and back", &values, &subject.convert(&strided)?.to_strided()?)
        }
        other => Err(Stop::Skipped(format!("there is no variant `{other}`"))),
    }
}

/// Checks that the gradient of stored elements passes unchanged, and that of others is 0 or passes unchanged too.
fn projected(stored: &Tensor, passed: &Array, got: &Tensor) -> Steps {
    let what = "the projected gradient";
    let (Some(stored), Some(values)) = (read(stored)?, read(got)?) else {
        return Err(Failure::new(what, "numbers", "bytes that are none").into());
    };
    let dropped = |(value, got): (&Number, &Number)| !value.truth() && !got.truth();
    // With a tolerance of its whole magnitude an element may be 0, and zeros may be stored or not.
    let pairs = stored.values.iter().zip(&values.values).zip(&passed.values);
    let expected = pairs.map(|(pair, passed)| if dropped(pair) { *pair.1 } else { *passed });
    let expected = Array::new(passed.dtype, passed.sizes.clone(), expected.collect());
    compared(what, &expected, got, Tolerance::of(passed.dtype))
}

/// Checks that an attribute with the name and type of an option has the given value.
fn holds_options(subject: &Subject, composite: &Tensor) -> Steps {
    for (name, given) in subject.options().iter() {
        let number = |value: &LayoutValue| match value {
            LayoutValue::Int(v) => Some(*v as f64),
            LayoutValue::Float(v) => Some(*v),
            _ => None,
        };
        let held = composite.attr(name);
        let same = held
            .as_ref()
            .is_none_or(|held| held == given || number(held).zip(number(given)).is_some_and(|(a, b)| a == b));
        if !same {
            let held = held.map_or_else(String::new, |held| held.to_string());
            return Err(Failure::new(format!("the attribute `{name}`"), given.to_string(), held).into());
        }
    }
    Ok(())
}

/// Checks that mismatched components are refused, if the suite knows the layout.
fn invalid(context: &Context<'_>, layout: Layout, valid: &Tensor) -> Steps {
    let Some(known) = known_layouts::find(layout) else {
        return Err(Stop::Skipped("only the layout knows the meaning of the components".to_string()));
    };
    let device = context.target.device;
    let Some(values) = read(valid)? else {
        return Err(Failure::new("the components", "numbers that fit each other", "others").into());
    };
    for wrong in known_layouts::invalid(known, &values) {
        let attrs = known_layouts::attrs(layout, wrong.in_order);
        let parts = wrong
            .parts
            .iter()
            .map(|part| Ok(Placed::new(part, Arrangement::Contiguous, device)?.tensor))
            .collect::<keyway::Result<Vec<_>>>()?;
        let made = Tensor::from_components(layout, valid.shape(), valid.dtype(), &parts, &attrs);
        if made.is_ok() {
            return Err(Failure::new(wrong.what, "an error", "a tensor").into());
        }
    }
    Ok(())
}
