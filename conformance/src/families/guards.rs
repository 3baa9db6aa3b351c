//! Guard bands around every buffer passed to a kernel; inputs must be unchanged.

use super::{Context, Family, Scope, has_out};
use crate::call::{Prepared, damaged};
use crate::case::Case;
use crate::memory::{Arrangement, Placed};
use crate::outcome::Steps;
use keyway::dispatcher::op::Out;
use keyway::ops::def::OpFlags;

/// The definition of this family of cases.
pub const FAMILY: Family =
    Family { name: "guards", about: "no write outside an output, none to an input", cases, run };

fn cases(scope: &Scope<'_>, cases: &mut Vec<Case>) {
    scope.each(|op, dtype, nth, _| {
        cases.push(Case::of(FAMILY.name, op.def, dtype, nth, "contiguous"));
        if !scope.quick && !op.def.is(OpFlags::STRIDE_DEPENDENT) {
            cases.push(Case::of(FAMILY.name, op.def, dtype, nth, "sliced"));
        }
    });
}

fn run(context: &Context<'_>) -> Steps {
    let def = context.def()?;
    let (_, inputs) = context.inputs()?;
    let device = context.target.device;
    let variant = Arrangement::from_name(&context.case.variant).unwrap_or(Arrangement::Contiguous);
    let wanted = match (context.images(), variant) {
        (Arrangement::ChannelsLast, Arrangement::Sliced) => Arrangement::ChannelsSlice,
        (Arrangement::ChannelsLast, _) => Arrangement::ChannelsLast,
        (_, variant) => variant,
    };
    let arrange = |sizes: &[usize]| if wanted.suits(sizes) { wanted } else { Arrangement::Contiguous };
    let prepared = Prepared::new(&inputs, device, arrange)?;
    if has_out(def) {
        let outs = context
            .expected(&inputs)?
            .iter()
            .map(|e| Placed::garbage(&e.sizes, e.dtype, arrange(&e.sizes), device))
            .collect::<Result<Vec<_>, _>>()?;
        let given: Vec<_> = outs.iter().map(|o| o.tensor.as_ref()).collect();
        let made = prepared.call_watched(def.entry()?, Out::Given(&given), &outs)?;
        made.map_err(|e| context.refused(e))?;
        for (nth, out) in outs.iter().enumerate() {
            if let Some(damage) = out.damage(false)? {
                return Err(damaged(&format!("output {nth}"), damage).into());
            }
        }
    } else {
        context.call(&prepared)?;
    }
    prepared.check_untouched(None)
}
