//! Samples shared by the reductions over several dimensions: arguments `(self, dim, .., keepdim)`.

use crate::ops::sample::{ErrorSample, Sample, SampleArg, error, plain, sample};

/// One call; `rest` is between the dimensions and `keepdim`.
pub(super) fn over(input: SampleArg, dims: Option<&[i64]>, rest: &[SampleArg], keepdim: bool) -> Sample {
    let dims = dims.map_or(SampleArg::None, |d| SampleArg::Ints(d.to_vec()));
    let rest = rest.iter().cloned();
    sample([input, dims].into_iter().chain(rest).chain([SampleArg::Bool(keepdim)]))
}

/// Every rank from 0 to 5, with and without dimensions; the first sample has a single element.
pub(super) fn over_dims(input: fn(&[usize]) -> SampleArg, rest: &[SampleArg]) -> Vec<Sample> {
    let call = |sizes: &[usize], dims, keep| over(input(sizes), dims, rest, keep);
    vec![
        call(&[], None, false),
        call(&[7], None, false),
        call(&[3, 4], None, true),
        call(&[3, 4], Some(&[0]), false),
        call(&[3, 4], Some(&[-1]), true),
        call(&[2, 3, 4], Some(&[0, 2]), false),
        call(&[2, 3, 2, 2], Some(&[1, -1]), true),
        call(&[2, 1, 2, 3, 2], Some(&[0, 3]), false),
        call(&[0, 3], Some(&[1]), false),
    ]
}

/// Invalid dimensions.
pub(super) fn dim_errors(rest: &[SampleArg]) -> Vec<ErrorSample> {
    let call = |sizes: &[usize], dims: &[i64]| over(plain(sizes), Some(dims), rest, false).args;
    vec![error(call(&[3], &[1]), "out of range"), error(call(&[3, 3], &[0, -2]), "different dimensions")]
}
