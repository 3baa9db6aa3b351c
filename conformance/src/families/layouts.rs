//! Composite layouts that the target brings: round trips, printing, moving, gradients.

use super::{Context, Family, Scope};
use crate::array::{Array, Number};
use crate::case::Case;
use crate::compare::{self, Tolerance};
use crate::memory::{Arrangement, Placed, read};
use crate::outcome::{Failure, Steps, Stop};
use keyway::dispatcher::registry;
use keyway::{DType, Device, Layout, Tensor};

/// The family.
pub const FAMILY: Family = Family {
    name: "layout",
    about: "composite layouts: round trip, printing, moving, gradients",
    cases,
    run,
};

fn cases(scope: &Scope<'_>, cases: &mut Vec<Case>) {
    for layout in registry::layouts() {
        let composite = !layout.components.is_empty();
        if composite && layout.plugin.name == scope.target.plugin {
            for variant in ["round_trip", "zeros", "printing", "moving", "gradients"] {
                let mut case = Case::about(FAMILY.name, layout.layout.name(), variant);
                case.dtype = Some(DType::F32);
                cases.push(case);
            }
        }
    }
}

/// A matrix of which two elements in three are zero.
fn matrix(dtype: DType) -> Array {
    Array::from_fn(dtype, [4, 6], |i| {
        let place = i[0] * 6 + i[1];
        Number::Float(if place.is_multiple_of(3) { 0.5 + place as f64 } else { 0.0 })
    })
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
    let (dtype, device) = (context.dtype(), context.target.device);
    let layout = Layout::from_name(&context.case.subject)
        .ok_or_else(|| Stop::Skipped(format!("there is no layout `{}`", context.case.subject)))?;
    let values = if context.case.variant == "zeros" {
        matrix(dtype).map(dtype, |_| Number::Float(0.0))
    } else {
        matrix(dtype)
    };
    let dense = Placed::new(&values, Arrangement::Contiguous, device)?.tensor;
    let composite = dense.to_layout(layout)?;
    if composite.layout() != layout || composite.sizes() != dense.sizes() || composite.dtype() != dtype {
        return Err(Failure::new(
            "the converted tensor",
            format!("{layout} {:?} {dtype}", dense.sizes()),
            format!("{} {:?} {}", composite.layout(), composite.sizes(), composite.dtype()),
        )
        .into());
    }
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
        "gradients" => {
            let leaf =
                Placed::new(&values, Arrangement::Contiguous, device)?.tensor.set_requires_grad(true)?;
            leaf.to_layout(layout)?.to_strided()?.mul(3.0)?.sum()?.backward()?;
            let gradient = leaf
                .grad()
                .ok_or_else(|| Stop::from(Failure::new("the gradient of the source", "one", "none")))?;
            let threes = values.map(dtype, |_| Number::Float(3.0));
            same("the gradient through the layout", &threes, &gradient.to_strided()?)
        }
        other => Err(Stop::Skipped(format!("there is no variant `{other}`"))),
    }
}
