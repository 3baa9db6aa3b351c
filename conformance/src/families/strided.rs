//! Results against the oracle, on inputs that are transposed, sliced, stepped, expanded, channels_last, or have odd strides
//! for dimensions of size 1: all of them, or one with the others contiguous. A kernel may check the strides of one argument
//! and ignore those of another.

use super::{Context, Family, Scope, composites};
use crate::call::Prepared;
use crate::case::Case;
use crate::compare;
use crate::inputs;
use crate::memory::{Arrangement, repeated};
use crate::outcome::{Steps, Stop};
use keyway::ops::def::OpFlags;
use keyway::ops::sample::{Role, Sample, TensorSample};
use std::cell::Cell;

/// The definition of this family of cases.
pub const FAMILY: Family = Family {
    name: "strided",
    about: "results on transposed, sliced, stepped, expanded, channels_last and odd-unit inputs, all or one alone; components of composite layouts with strides",
    cases,
    run,
};

fn cases(scope: &Scope<'_>, cases: &mut Vec<Case>) {
    let mut turn = 0;
    scope.each(|op, dtype, nth, sample| {
        // Implemented by the host, whose own tests check their strides.
        if op.def.is(OpFlags::STRIDE_DEPENDENT) {
            return;
        }
        let suits = |a: &Arrangement| super::tensors(sample).any(|t| applies(*a, t));
        let suiting: Vec<Arrangement> = Arrangement::STRIDED.into_iter().filter(suits).collect();
        turn += 1;
        for (i, arrangement) in suiting.iter().enumerate() {
            // Quick: one arrangement for each sample, a different one each time.
            if !scope.quick || i == turn % suiting.len() {
                cases.push(Case::of(FAMILY.name, op.def, dtype, nth, arrangement.name()));
            }
        }
        let alone = alone(sample);
        // All arrangements of one dtype; for the others, and with quick, a different one each time.
        let every = !scope.quick && scope.served(op.def) == Some(dtype);
        for (i, (arrangement, tensor)) in alone.iter().enumerate() {
            if every || i == turn % alone.len() {
                let variant = format!("{}-{tensor}", arrangement.name());
                cases.push(Case::of(FAMILY.name, op.def, dtype, nth, variant));
            }
        }
    });
    composites::cases(scope, FAMILY.name, composites::Dtypes::Usual, cases);
}

/// The arrangements in which a single tensor is a different test than all together, with the tensor's index.
fn alone(sample: &Sample) -> Vec<(Arrangement, usize)> {
    let all: Vec<&TensorSample> = super::tensors(sample).collect();
    let mut found = Vec::new();
    for arrangement in [Arrangement::Transposed, Arrangement::Stepped] {
        let suiting: Vec<usize> = (0..all.len()).filter(|&nth| applies(arrangement, all[nth])).collect();
        if suiting.len() > 1 {
            found.extend(suiting.into_iter().map(|nth| (arrangement, nth)));
        }
    }
    found
}

/// Whether a tensor can have this arrangement. Only tensors under test are expanded: indices that must differ or ascend cannot
/// repeat.
fn applies(arrangement: Arrangement, tensor: &TensorSample) -> bool {
    arrangement.suits(&tensor.sizes) && (arrangement != Arrangement::Expanded || tensor.role == Role::Tested)
}

fn run(context: &Context<'_>) -> Steps {
    if composites::is_about(context.case) {
        return composites::strided::run(context);
    }
    let def = context.def()?;
    let variant = context.case.variant.as_str();
    let (name, alone) = match variant.split_once('-') {
        Some((name, position)) => (name, position.parse::<usize>().ok()),
        None => (variant, None),
    };
    let arrangement = Arrangement::from_name(name)
        .ok_or_else(|| Stop::Skipped(format!("there is no arrangement `{variant}`")))?;
    let (sample, mut inputs) = context.inputs()?;
    let wanted = |nth: usize| alone.is_none_or(|alone| alone == nth);
    let tensors = super::tensors(&sample).enumerate();
    let chosen: Vec<bool> = tensors.map(|(nth, t)| wanted(nth) && applies(arrangement, t)).collect();
    if arrangement == Arrangement::Expanded {
        let mut chosen = chosen.iter();
        inputs::map_arrays(&mut inputs, |array| {
            if chosen.next() == Some(&true) {
                *array = repeated(array);
            }
        });
    }
    let expected = context.expected(&inputs)?;
    let turn = Cell::new(0);
    let prepared = Prepared::new(&inputs, context.target.device, |_| {
        let nth = turn.replace(turn.get() + 1);
        if chosen.get(nth) == Some(&true) { arrangement } else { Arrangement::Contiguous }
    })?;
    let got = context.call(&prepared)?;
    Ok(compare::outputs(&expected, &got, super::factor(def, &sample))?)
}
