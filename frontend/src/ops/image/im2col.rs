//! `im2col`

use super::col2im;
use super::geometry::{Places, columns, each_under};
use crate::Tensor;
use crate::error::Result;
use crate::ops::composite::{float_tensor, one, tensor};
use crate::ops::def::{Derivative, Dtypes, OpDef};
use crate::ops::memory::clone;
use crate::ops::pool::spatial;
use crate::ops::rules::wrong_shape;
use crate::ops::sample::{SampleArg, error, plain, sample};
use keyway_dispatcher::dims::Dims;
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Plan, Rule, Strides};

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let x = float_tensor(args, 0)?;
    let &[batch, channels, height, width] = x.sizes() else {
        let expected = "of 4 dimensions, [batch, channels, height, width]".to_string();
        return Err(wrong_shape(args, 0, expected, x.sizes()));
    };
    let places = Places::of(args, 1, [height, width])?;
    let rows = channels.saturating_mul(places.window());
    let sizes = Dims::from_slice(&[batch, rows, places.count()]);
    Ok(Plan::one(x.dtype(), sizes, x.dtype(), Strides::Contiguous))
}

fn compose(args: &Args<'_>) -> Result<Tensor> {
    let x = tensor(args, 0)?;
    let &[batch, channels, height, width] = x.shape() else { return Ok(x) };
    let places = Places::of(args, 1, [height, width])?;
    let [top, left] = places.padding;
    let sizes = [batch, channels.saturating_mul(places.window()), places.count()];
    let elements = |sizes: &[usize]| sizes.iter().map(|&size| size as f64).product::<f64>();
    let padded = elements(&[batch, channels])
        * (height as f64 + 2.0 * top as f64)
        * (width as f64 + 2.0 * left as f64);
    if (top, left) != (0, 0) && padded > elements(x.shape()) + elements(&sizes) {
        return element_by_element(&x, &places)?.reshape_as_sizes(&sizes);
    }
    let padded = if (top, left) == (0, 0) { x } else { x.constant_pad(&[left, left, top, top], 0)? };
    // An overlapping view `[batch, channels, positions.., window..]`.
    let windows = columns(&padded, &places)?;
    // Always a copy: the result is not recorded as a view.
    let windows = windows.permute([0, 1, 4, 5, 2, 3])?;
    clone::DEF.run(&[(&windows).into(), Arg::Str("contiguous")])?.reshape_as_sizes(&sizes)
}

/// im2col by one strided copy for each window element, to `[batch, channels, window.., positions..]`; it does not allocate
/// the padded image, which may be large and mostly unread.
fn element_by_element(x: &Tensor, places: &Places) -> Result<Tensor> {
    let ([kh, kw], [rows, columns]) = (places.kernel, places.counts);
    let made = x.new_zeros([x.shape()[0], x.shape()[1], kh, kw, rows, columns])?;
    each_under(x, &made, places, |from, to| to.copy_(&from).map(drop))?;
    Ok(made)
}

/// Image sizes, and kernel, dilation, padding and stride.
pub(super) const CASES: [(&[usize], [[i64; 2]; 4]); 8] = [
    (&[2, 3, 4, 5], [[2, 3], [1, 1], [0, 0], [1, 1]]),
    (&[1, 2, 5, 4], [[3, 3], [1, 1], [1, 1], [2, 1]]),
    (&[2, 2, 5, 6], [[2, 2], [2, 3], [1, 0], [1, 2]]),
    (&[1, 1, 3, 3], [[1, 1], [1, 1], [0, 0], [1, 1]]),
    (&[1, 2, 4, 4], [[2, 2], [1, 1], [0, 0], [2, 2]]),
    // Paddings that are mostly unread, outside and inside the image.
    (&[2, 2, 3, 4], [[2, 2], [9, 3], [7, 1], [5, 1]]),
    (&[1, 2, 3, 3], [[3, 3], [20, 20], [20, 20], [1, 2]]),
    (&[0, 2, 3, 3], [[2, 2], [1, 1], [1, 1], [1, 1]]),
];

/// Converts lists to arguments.
pub(super) fn options(lists: [[i64; 2]; 4]) -> impl Iterator<Item = SampleArg> {
    lists.into_iter().map(|list| SampleArg::Ints(list.to_vec()))
}

/// `im2col`: the sliding windows of images as columns.
pub static DEF: OpDef = OpDef::new(
    "im2col(Tensor self, int[] kernel_size, int[] dilation, int[] padding, int[] stride) -> Tensor",
    Rule::Structured(rule),
    Derivative::of_grad(|b, g| {
        g.set(0, || {
            let sizes = spatial(b.sizes(0));
            let [kernel, dilation, padding, stride] = [1, 2, 3, 4].map(|i| b.arg(i));
            col2im::DEF.run(&[b.grad(0)?.into(), Arg::Ints(&sizes), kernel, dilation, padding, stride])
        })
    }),
    || CASES.iter().map(|(sizes, lists)| sample([plain(sizes)].into_iter().chain(options(*lists)))).collect(),
)
.dtypes(Dtypes::FLOAT)
.errors(|| {
    let call = |sizes: &[usize], lists: [[i64; 2]; 4], message| {
        error([plain(sizes)].into_iter().chain(options(lists)), message)
    };
    let image: &[usize] = &[1, 2, 4, 4];
    vec![
        call(&[2, 4, 4], [[2, 2], [1, 1], [0, 0], [1, 1]], "of 4 dimensions"),
        call(image, [[0, 2], [1, 1], [0, 0], [1, 1]], "2 numbers of 1 or more"),
        call(image, [[2, 2], [1, 0], [0, 0], [1, 1]], "2 numbers of 1 or more"),
        call(image, [[2, 2], [1, 1], [-1, 0], [1, 1]], "2 numbers of 0 or more"),
        call(image, [[2, 2], [1, 1], [0, 0], [1, 0]], "2 numbers of 1 or more"),
        call(image, [[2, 3], [1, 3], [0, 1], [1, 1]], "reaches over 7 elements of 6"),
    ]
})
.decomposed(|args| one(compose(args)));
