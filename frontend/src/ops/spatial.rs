//! List arguments with one value per spatial dimension: sizes, and the parameters of windows and kernels.

use crate::op::rules::wrong_value;
use keyway_dispatcher::error::Result;
use keyway_dispatcher::op::Args;
use std::ops::RangeInclusive;

/// The range of sizes from `least` on.
pub(crate) fn size_from(least: i64) -> RangeInclusive<i64> {
    least..=i64::MAX
}

/// The range of window sizes, strides and dilations. No memory holds an image that needs more, and below this bound no sum or
/// product in the address computation of a window overflows, in any backend.
pub(crate) const MOVES: RangeInclusive<i64> = 1..=1 << 40;

/// The range of paddings.
pub(crate) const BORDER: RangeInclusive<i64> = 0..=*MOVES.end();

/// List argument `i`, with one value in this range for each of `rank` dimensions.
///
/// # Errors
/// `Value` for another length or values out of range.
pub(crate) fn list<'a>(
    args: &Args<'a>,
    i: usize,
    rank: usize,
    range: &RangeInclusive<i64>,
) -> Result<&'a [i64]> {
    let given = args.ints(i)?;
    if given.len() == rank && given.iter().all(|v| range.contains(v)) {
        return Ok(given);
    }
    let most = match *range.end() {
        i64::MAX => String::new(),
        most => format!(" and at most {most}"),
    };
    let least = range.start();
    let expected = format!("{rank} numbers of {least} or more{most}, one for each spatial dimension");
    Err(wrong_value(args, i, expected))
}
