//! Lists of one number for each spatial dimension: sizes, and how windows and kernels move over images.

use super::rules::wrong_value;
use keyway_dispatcher::error::Result;
use keyway_dispatcher::op::Args;
use std::ops::RangeInclusive;

/// Any size from this one on.
pub(crate) fn size_from(least: i64) -> RangeInclusive<i64> {
    least..=i64::MAX
}

/// Elements of a window, of its step and of its dilation. No memory holds an image that needs more, and below this bound no
/// sum or product that says where a window reads can overflow, whichever backend computes it.
pub(crate) const MOVES: RangeInclusive<i64> = 1..=1 << 40;

/// Elements of a border.
pub(crate) const BORDER: RangeInclusive<i64> = 0..=*MOVES.end();

/// The list in argument `i`, one number of this range for each of `rank` dimensions.
///
/// # Errors
/// `Value` for another length or other numbers.
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
