//! Composite layouts that the target serves: round trips, printing, moving, components, gradients. The tensors have a
//! shape that the layout says it can hold, and values that it takes.

use super::{Context, Family, Scope, placements, unclaimed};
use crate::array::{Array, Number};
use crate::case::Case;
use crate::compare::{self, Tolerance};
use crate::known_layouts;
use crate::memory::{Arrangement, Placed, read};
use crate::outcome::{Failure, Steps, Stop};
use keyway::autograd::{BackwardOptions, grad};
use keyway::dispatcher::{layouts, registry};
use keyway::{DType, Device, Layout, Tensor};

/// The family.
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
            unclaimed::cases(scope, FAMILY.name, layout.layout, cases);
        }
    }
}

/// Shapes of which a layout should hold one.
const SHAPES: [&[usize]; 8] =
    [&[4, 6], &[6, 6], &[24], &[2, 4, 6], &[8, 8], &[2, 3, 4, 4], &[32, 32], &[2, 2, 3, 4, 4]];

/// Values of the first shape that the layout can hold, and of the first filling that it takes.
fn sample(layout: Layout, dtype: DType, device: Device) -> Result<Array, Stop> {
    let mut shape = None;
    for sizes in SHAPES {
        if shape.is_none() && layouts::accepts(layout, device, sizes).map_err(keyway::Error::from)? {
            shape = Some(sizes);
        }
    }
    let Some(sizes) = shape else {
        let expected = format!("a layout that holds one of the shapes {SHAPES:?}");
        return Err(Failure::new("the shapes that the layout accepts", expected, "none of them").into());
    };
    let mut refusals = Vec::new();
    for filled in placements::FILLINGS {
        let values = placements::filled(dtype, sizes, filled);
        match Placed::new(&values, Arrangement::Contiguous, device)?.tensor.to_layout(layout) {
            Ok(_) => return Ok(values),
            Err(error) => refusals.push(error.to_string()),
        }
    }
    let expected = format!("a tensor of shape {sizes:?}, which the layout accepts");
    Err(Failure::new("the conversion to the layout", expected, refusals.join("; ")).into())
}

fn same(what: &str, expected: &Array, got: &Tensor) -> Steps {
    let values = read(got)?
        .ok_or_else(|| Stop::from(Failure::new(what.to_string(), "numbers", "bytes that are none")))?;
    compare::array(0, expected, &values, Tolerance::of(expected.dtype)).map_err(|mut failure| {
        failure.what = format!("{what}: {}", failure.what);
        Stop::from(failure)
    })
}

fn run(context: &Context<'_>) -> Steps {
    if context.case.is_about_op() {
        return unclaimed::run(context);
    }
    let (dtype, device) = (context.dtype(), context.target.device);
    let layout = Layout::from_name(&context.case.subject)
        .ok_or_else(|| Stop::Skipped(format!("there is no layout `{}`", context.case.subject)))?;
    let mut values = sample(layout, dtype, device)?;
    if context.case.variant == "zeros" {
        values = values.map(dtype, |_| Number::Float(0.0));
    }
    let dense = Placed::new(&values, Arrangement::Contiguous, device)?.tensor;
    let composite = dense.to_layout(layout)?;
    if composite.layout() != layout || composite.shape() != dense.shape() || composite.dtype() != dtype {
        return Err(Failure::new(
            "the converted tensor",
            format!("{layout} {:?} {dtype}", dense.shape()),
            format!("{} {:?} {}", composite.layout(), composite.shape(), composite.dtype()),
        )
        .into());
    }
    // What kernels make, the host does not check.
    layouts::validate(composite.as_ref()).map_err(keyway::Error::from)?;
    match context.case.variant.as_str() {
        "round_trip" | "zeros" => same("there and back", &values, &composite.to_strided()?),
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
            same("moved to the host and back", &values, &back.to_strided()?)
        }
        "components" => {
            let parts = composite.components()?;
            let made = Tensor::from_components(layout, composite.shape(), dtype, &parts, composite.attrs())?;
            same("made anew of its components", &values, &made.to_strided()?)?;
            let one_less = parts[1..].to_vec();
            match Tensor::from_components(layout, composite.shape(), dtype, &one_less, composite.attrs()) {
                Err(_) => Ok(()),
                Ok(_) => Err(Failure::new("a component too few", "an error", "a tensor").into()),
            }
        }
        "invalid" => invalid(context, layout, &composite),
        "gradients" => {
            let leaf = Placed::new(&values, Arrangement::Contiguous, device)?.tensor.requires_grad_(true)?;
            // Started with a gradient, so that no op of any backend has a part in it.
            let threes = values.map(dtype, |_| Number::Float(3.0));
            let start = Placed::new(&threes, Arrangement::Contiguous, device)?.tensor;
            let options = BackwardOptions { gradients: Some(vec![start]), ..BackwardOptions::default() };
            let outputs = [leaf.to_layout(layout)?.to_strided()?];
            let gradient = grad(&outputs, &[leaf], options)?.pop().flatten();
            let gradient = gradient
                .ok_or_else(|| Stop::from(Failure::new("the gradient of the source", "one", "none")))?;
            same("the gradient through the layout", &threes, &gradient.to_strided()?)
        }
        other => Err(Stop::Skipped(format!("there is no variant `{other}`"))),
    }
}

/// Components that do not fit each other are refused, where the suite knows what fits.
fn invalid(context: &Context<'_>, layout: Layout, valid: &Tensor) -> Steps {
    let Some(known) = known_layouts::find(layout) else {
        return Err(Stop::Skipped("what the components mean is known to the layout alone".to_string()));
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
