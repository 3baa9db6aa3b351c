//! Samples of vectors, and the case of one length.

use super::super::{Context, tensors, with_sizes};
use crate::array::Number;
use crate::case::Case;
use crate::outcome::{Steps, Stop};
use keyway::ops::sample::{Sample, SampleArg};

/// The variant with one length, which follows; not listed, but run if its id is given.
pub const AT: &str = "at-";

/// Adds the length to a failure, and the id of the case of this length.
pub fn at(context: &Context<'_>, length: usize, stop: Stop) -> Stop {
    if let Stop::Failed(failure) = &stop
        && !failure.got.contains("panicked")
    {
        context.shrink_to(Case { variant: format!("{AT}{length}"), ..context.case.clone() }.to_string());
    }
    match stop {
        Stop::Failed(mut failure) => {
            failure.what = format!("of {length} elements: {}", failure.what);
            failure.into()
        }
        other => other,
    }
}

/// The sample with vectors of this length.
pub fn vectors(sample: &Sample, length: usize) -> Steps<Sample> {
    let none = || Stop::Skipped("the sample's tensors differ in shape".to_string());
    let mut sized = with_sizes(sample, &[length]).ok_or_else(none)?;
    // The list of the last sizes, over which an op normalises.
    let sizes: Vec<i64> =
        tensors(sample).next().map_or(&[][..], |t| &t.sizes).iter().map(|&n| n as i64).collect();
    for arg in &mut sized.args {
        match arg {
            SampleArg::Ints(list) if !list.is_empty() && sizes.ends_with(list) => *list = vec![length as i64],
            _ => {}
        }
    }
    Ok(sized)
}

/// The absolute value of a float.
pub fn positive(value: Number) -> Number {
    match value {
        Number::Float(value) => Number::Float(value.abs()),
        other => other,
    }
}
