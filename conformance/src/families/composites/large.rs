//! Large tensors of composite layouts: each size changed, alone and with the others, and enough elements that work is split.

use super::kernel::{Kind, Subject, Tally};
use super::layout;
use super::turns::Turns;
use crate::families::placements;
use crate::families::{Context, tensors};
use crate::growth::{self, Named, enlarged};
use crate::outcome::Steps;
use keyway::ops::sample::Sample;

/// Elements of the largest tensor of a call whose work is split: if all are stored, and otherwise.
const MANY: [f64; 2] = [40_000.0, 20_000.0];
/// The most steps of such a call.
const STEPS: usize = 2_000_000;
/// Samples with changed sizes.
const KINDS: usize = 4;
/// Shapes of a layout.
const SHAPES: usize = 6;
/// Lengths that replace one size, each with the most steps that a call may take.
const LENGTHS: [(usize, usize); 2] = [(67, 4_000), (1030, 8_000)];
/// The most steps of a call with all sizes changed.
const STEPS_TOGETHER: usize = 5_000;

/// Runs a case of the family.
///
/// # Errors
/// A wrong result.
pub fn run(context: &Context<'_>) -> Steps {
    if let Some(subject) = layout::Subject::of(context)? {
        return conversions(&subject);
    }
    let subject = Subject::of(context)?;
    let kinds = subject.kinds(KINDS)?;
    let (mut tally, mut turns) = (Tally::default(), Turns::default());
    for kind in kinds.iter().filter(|_| subject.is_usual()) {
        for changes in changes(&kind.sample) {
            changed(&subject, kind, &changes, &mut turns, &mut tally)?;
        }
    }
    let numel = |kind: &&Kind| tensors(&kind.sample).map(|t| t.sizes.iter().product::<usize>()).max();
    if let Some(kind) = kinds.iter().max_by_key(numel) {
        split(&subject, kind, &mut turns, &mut tally)?;
    }
    tally.larger()
}

/// The sizes of a sample that are changed together.
fn changes(sample: &Sample) -> Vec<Vec<(usize, usize)>> {
    let sizes = growth::sizes(sample);
    let together = (0..sizes.len().min(2)).filter_map(|turn| growth::together(sample, turn, STEPS_TOGETHER));
    let alone = sizes.iter().flat_map(|&size| {
        let fits = move |(length, steps): &(usize, usize)| {
            growth::steps(&growth::resized(sample, &[(size, *length)], Named::Nothing)) <= *steps
        };
        LENGTHS.into_iter().filter(fits).map(move |(length, _)| vec![(size, length)])
    });
    together.chain(alone).collect()
}

/// The sample with changed sizes, or multiples of the old ones.
fn changed(
    subject: &Subject<'_>,
    kind: &Kind,
    changes: &[(usize, usize)],
    turns: &mut Turns,
    tally: &mut Tally,
) -> Steps {
    let multiples = changes.iter().map(|&(from, to)| (from, to.next_multiple_of(from))).collect();
    let mut tried: Vec<Sample> = Vec::new();
    for changes in [changes.to_vec(), multiples] {
        for named in [Named::Limits, Named::Nothing, Named::Lists] {
            let sample = growth::resized(&kind.sample, &changes, named);
            if tried.contains(&sample) {
                continue;
            }
            if next(subject, kind, &sample, turns, tally)? {
                return Ok(());
            }
            tried.push(sample);
        }
    }
    Ok(())
}

/// The next choice of the tensors in the layout and the next form of the entries; whether one is served.
fn next(
    subject: &Subject<'_>,
    kind: &Kind,
    sample: &Sample,
    turns: &mut Turns,
    tally: &mut Tally,
) -> Steps<bool> {
    let forms = placements::forms(subject.layout).len();
    let inputs = subject.inputs(sample, 0);
    let (other, choice) = turns.of(forms, kind.choices.len());
    for form in [other, 0] {
        let Some(placed) = subject.place(sample, &inputs, kind.choices[choice], form)? else { continue };
        if tally.count(subject.judge(sample, &placed, subject.loose())?) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Many elements: in the usual form of the entries, in another, and with all elements stored.
fn split(subject: &Subject<'_>, kind: &Kind, turns: &mut Turns, tally: &mut Tally) -> Steps {
    let last = placements::forms(subject.layout).len() - 1;
    let (other, choice) = turns.of(last.max(1), kind.choices.len());
    for (nth, (form, mut elements)) in
        [(last, MANY[0]), (0, MANY[1]), (other, MANY[1])].into_iter().enumerate()
    {
        let mut sample = enlarged(&kind.sample, elements);
        while growth::steps(&sample) > STEPS && elements > 1.0 {
            elements /= 2.0;
            sample = enlarged(&kind.sample, elements);
        }
        let inputs = subject.inputs(&sample, 1);
        let choice = kind.choices[(choice + nth) % kind.choices.len()];
        if let Some(placed) = subject.place(&sample, &inputs, choice, form)? {
            tally.count(subject.judge(&sample, &placed, subject.loose())?);
        }
    }
    Ok(())
}

/// Conversions of the layout's samples with each size changed, and with all multiplied.
fn conversions(subject: &layout::Subject<'_>) -> Steps {
    for shape in subject.shapes()?.into_iter().take(SHAPES) {
        let mut all = vec![shape.enlarged(MANY[0])];
        for dim in 0..shape.sizes.len() {
            for (length, _) in LENGTHS {
                let mut sizes = shape.sizes.clone();
                sizes[dim] = length;
                all.push(sizes.clone());
                sizes[dim] = length.next_multiple_of(shape.sizes[dim]);
                all.push(sizes);
                // A layout of square matrices.
                all.push(shape.sizes.iter().map(|_| length.min(130)).collect());
            }
        }
        all.dedup();
        for sizes in all {
            if sizes.iter().product::<usize>() as f64 <= MANY[0] && subject.accepts(&sizes)? {
                let shape = shape.with(sizes);
                for values in subject.fillings(&shape)? {
                    subject.round_trip("a tensor", &shape, &values)?;
                }
            }
        }
    }
    Ok(())
}
