//! Tensors of composite layouts at the sizes at which kernels split, block and vectorise: long rows, more columns than 16 bits
//! count, many rows, images of many channels.

use super::kernel::{Kind, Subject, Tally};
use super::layout;
use super::turns::Turns;
use crate::families::placements;
use crate::families::sizes::calls;
use crate::families::{Context, tensors, with_sizes};
use crate::growth::{self, Named};
use crate::outcome::Steps;
use keyway::ops::sample::Sample;

/// The sizes of samples whose tensors have one shape, and of layouts.
const ALIKE: [&[usize]; 6] =
    [&[1, 66_001], &[4_099, 5], &[2, 67, 9, 17], &[3, 130, 5], &[2, 35, 4, 5, 3], &[131, 131]];
/// Above as many elements a call is made in one form of the entries.
const FEW: usize = 5_000;
/// The most elements of a call that is defined for an op.
const MOST: usize = 100_000;
/// Lengths of one size of a sample, the first within this number of steps.
const LENGTHS: [usize; 2] = [66_001, 5_003];
const STEPS: usize = 600_000;
/// Samples.
const KINDS: usize = 2;

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
    let mut kinds = subject.kinds(KINDS)?;
    let alike = kinds.iter().position(|kind| with_sizes(&kind.sample, ALIKE[0]).is_some());
    if let Some(nth) = alike {
        let kind = kinds.swap_remove(nth);
        for sample in ALIKE.iter().filter_map(|sizes| with_sizes(&kind.sample, sizes)) {
            judge(&subject, &kind, &sample, &mut turns, &mut tally)?;
        }
        kinds.clear();
    }
    let numel = |sample: &Sample| tensors(sample).map(|t| t.sizes.iter().product::<usize>()).max();
    for sample in calls::of(context.case.name()).into_iter().filter(|s| numel(s) <= Some(MOST)) {
        let choices = (0..placements::choices(&sample)).collect();
        let kind = Kind { sample, choices };
        judge(&subject, &kind, &kind.sample, &mut turns, &mut tally)?;
    }
    for kind in &kinds {
        for size in growth::sizes(&kind.sample) {
            for length in LENGTHS {
                let of = |named| growth::resized(&kind.sample, &[(size, length)], named);
                if growth::steps(&of(Named::Nothing)) > STEPS {
                    continue;
                }
                let mut any = false;
                for named in [Named::Limits, Named::Lists] {
                    any = any || judge(&subject, kind, &of(named), &mut turns, &mut tally)?;
                }
                if any {
                    break;
                }
            }
        }
    }
    tally.larger()
}

/// A call in the first form of the entries, of few elements one in another form too; whether one is served.
fn judge(
    subject: &Subject<'_>,
    kind: &Kind,
    sample: &Sample,
    turns: &mut Turns,
    tally: &mut Tally,
) -> Steps<bool> {
    let inputs = subject.inputs(sample, 0);
    let numel = tensors(sample).map(|t| t.sizes.iter().product::<usize>()).max().unwrap_or(0);
    let forms = placements::forms(subject.layout).len();
    let (other, choice) = turns.of(forms, kind.choices.len());
    let mut any = false;
    for (nth, form) in [0, other].into_iter().enumerate().take(if numel > FEW { 1 } else { 2 }) {
        let choice = kind.choices[(choice + nth) % kind.choices.len()];
        let Some(placed) = subject.place(sample, &inputs, choice, form)? else { continue };
        any |= tally.count(subject.judge(sample, &placed, subject.loose())?);
    }
    Ok(any)
}

fn conversions(subject: &layout::Subject<'_>) -> Steps {
    for sizes in ALIKE {
        if subject.accepts(sizes)? {
            let shape = subject.plain(sizes);
            for values in subject.fillings(&shape)? {
                subject.round_trip("a tensor", &shape, &values)?;
            }
        }
    }
    Ok(())
}
