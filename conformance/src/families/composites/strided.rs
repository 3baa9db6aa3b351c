//! Tensors of composite layouts whose components are transposed, sliced, stepped, or have other strides than row-major ones: all
//! components, or one alone; and strided arguments beside them. A layout may refuse such components; results are right.

use super::kernel::{Subject, Tally};
use super::layout;
use super::turns::Turns;
use crate::families::Context;
use crate::families::placements::{self, Call};
use crate::memory::{Arrangement, Placed, read_strided};
use crate::outcome::Steps;
use keyway::{Device, Result, Tensor};

/// Samples.
const KINDS: usize = 4;
/// The arrangements of components and strided tensors.
const ARRANGEMENTS: [Arrangement; 5] = [
    Arrangement::Transposed,
    Arrangement::Sliced,
    Arrangement::Stepped,
    Arrangement::OddUnits,
    Arrangement::Shifted,
];

/// Runs a case of the family.
///
/// # Errors
/// A wrong result.
pub fn run(context: &Context<'_>) -> Steps {
    if let Some(subject) = layout::Subject::of(context)? {
        return conversions(&subject);
    }
    let subject = Subject::of(context)?;
    let (mut tally, mut turns) = (Tally::default(), Turns::default());
    let forms = placements::forms(subject.layout).len();
    for kind in subject.kinds(KINDS)? {
        let inputs = subject.inputs(&kind.sample, 0);
        let (other, choice) = turns.of(forms, kind.choices.len());
        for (nth, form) in [0, other].into_iter().enumerate() {
            let choice = kind.choices[(choice + nth) % kind.choices.len()];
            let Some(placed) = subject.place(&kind.sample, &inputs, choice, form)? else { continue };
            for arrangement in ARRANGEMENTS {
                for which in whichever(&placed) {
                    if let Some(placed) = arranged(&placed, arrangement, which, subject.device) {
                        tally.count(subject.judge(&kind.sample, &placed, 1.0)?);
                    }
                }
            }
        }
    }
    tally.any()
}

/// The parts that have other strides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Which {
    /// Every tensor and component.
    Every,
    /// The strided tensors.
    Strided,
    /// One component of each composite tensor.
    Component(usize),
}

impl Which {
    fn name(self) -> String {
        match self {
            Which::Every => "every tensor".to_string(),
            Which::Strided => "strided tensors".to_string(),
            Which::Component(nth) => format!("component {nth}"),
        }
    }
}

fn whichever(placed: &Call) -> Vec<Which> {
    let components = |t: &Tensor| t.as_ref().components().len();
    let most = placed.tensors.iter().map(components).max().unwrap_or(0);
    [Which::Every, Which::Strided].into_iter().chain((0..most).map(Which::Component)).collect()
}

/// The call with other strides; `None` if that changes nothing, or the layout refuses it.
fn arranged(placed: &Call, arrangement: Arrangement, which: Which, device: Device) -> Option<Call> {
    let mut changed = false;
    let mut tensors = Vec::new();
    for tensor in &placed.tensors {
        let strided = tensor.as_ref().is_strided();
        let made = match which {
            Which::Every | Which::Strided if strided => {
                placed_again(tensor, arrangement, device, &mut changed)
            }
            Which::Every if !strided => components(tensor, arrangement, None, device, &mut changed),
            Which::Component(nth) if !strided => {
                components(tensor, arrangement, Some(nth), device, &mut changed)
            }
            _ => Ok(tensor.clone()),
        };
        tensors.push(made.ok()?);
    }
    let name = format!("{}, {} {}", placed.name, which.name(), arrangement.name());
    changed.then(|| Call { tensors, name, ..placed.clone() })
}

/// A strided tensor in another arrangement.
fn placed_again(
    tensor: &Tensor,
    arrangement: Arrangement,
    device: Device,
    changed: &mut bool,
) -> Result<Tensor> {
    let Some(values) = read_strided(tensor)?.filter(|values| arrangement.suits(&values.sizes)) else {
        return Ok(tensor.clone());
    };
    *changed = true;
    Ok(Placed::new(&values, arrangement, device)?.tensor)
}

/// A composite tensor whose components, or one of them, are in another arrangement.
fn components(
    tensor: &Tensor,
    arrangement: Arrangement,
    only: Option<usize>,
    device: Device,
    changed: &mut bool,
) -> Result<Tensor> {
    let parts = tensor.components()?.into_iter().enumerate().map(|(nth, part)| {
        match only.is_none_or(|only| only == nth) {
            true => placed_again(&part, arrangement, device, changed),
            false => Ok(part),
        }
    });
    let parts = parts.collect::<Result<Vec<_>>>()?;
    let attrs: Vec<_> = tensor.as_ref().attributes().iter().collect();
    Tensor::from_components_with(tensor.layout(), tensor.shape(), tensor.dtype(), &parts, &attrs)
}

/// Conversions from strided tensors in each arrangement, and back from components in each.
fn conversions(subject: &layout::Subject<'_>) -> Steps {
    let device = subject.device;
    for shape in subject.shapes()? {
        for values in subject.fillings(&shape)? {
            let mut of_strided = ARRANGEMENTS.to_vec();
            of_strided.extend([Arrangement::ChannelsLast, Arrangement::ChannelsSlice]);
            for arrangement in of_strided.into_iter().filter(|a| a.suits(&shape.sizes)) {
                let strided = Placed::new(&values, arrangement, device)?.tensor;
                let what = format!("a tensor converted from a strided one, {},", arrangement.name());
                subject.same(&what, &shape, &values, &subject.convert(&shape, &strided)?)?;
            }
            let strided = Placed::new(&values, Arrangement::Contiguous, device)?.tensor;
            let composite = subject.convert(&shape, &strided)?;
            let count = composite.as_ref().components().len();
            for arrangement in ARRANGEMENTS {
                for only in [None].into_iter().chain((0..count).map(Some)) {
                    let mut changed = false;
                    let made = components(&composite, arrangement, only, device, &mut changed);
                    if let (Ok(made), true) = (made, changed) {
                        let which = only.map_or_else(|| "all".to_string(), |nth| nth.to_string());
                        let what = format!("a tensor with components {which} {}", arrangement.name());
                        subject.same(&what, &shape, &values, &made)?;
                    }
                }
            }
        }
    }
    Ok(())
}
