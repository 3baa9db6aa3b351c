//! `col2im`

use super::geometry::{Places, each_under};
use super::im2col::{self, CASES, options};
use crate::Tensor;
use crate::error::Result;
use crate::ops::composite::{cast, float_tensor, one, tensor, widened};
use crate::ops::def::{Derivative, Dtypes, OpDef};
use crate::ops::rules::{wrong_shape, wrong_value};
use crate::ops::sample::{SampleArg, error, plain, sample};
use keyway_dispatcher::dims::Dims;
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Args, Plan, Rule, Strides};

/// The sizes of the images, and the window positions in them.
fn geometry(args: &Args<'_>) -> RuleResult<(Dims, Places)> {
    let x = float_tensor(args, 0)?;
    let &[batch, rows, count] = x.sizes() else {
        let expected = "of 3 dimensions, [batch, channels * window, positions]".to_string();
        return Err(wrong_shape(args, 0, expected, x.sizes()));
    };
    let (height, width) = match args.ints(1)? {
        &[height, width] if height > 0 && width > 0 => (height as usize, width as usize),
        _ => return Err(wrong_value(args, 1, "2 numbers of 1 or more, height and width".into())),
    };
    let places = Places::of(args, 2, [height, width])?;
    let window = places.window();
    if !rows.is_multiple_of(window) || count != places.count() {
        let expected = format!(
            "of shape [_, n * {window}, {}], the elements and the positions of the window",
            places.count()
        );
        return Err(wrong_shape(args, 0, expected, x.sizes()));
    }
    Ok((Dims::from_slice(&[batch, rows / window, height, width]), places))
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let (sizes, dtype) = (geometry(args)?.0, args.tensor(0)?.dtype());
    Ok(Plan::one(dtype, sizes, dtype, Strides::Contiguous))
}

fn compose(args: &Args<'_>) -> Result<Tensor> {
    let (own, (sizes, places)) = (tensor(args, 0)?, geometry(args)?);
    let x = widened(&own)?;
    let [kh, kw] = places.kernel;
    let split = x.reshape_as_sizes(&[sizes[0], sizes[1], kh, kw, places.counts[0], places.counts[1]])?;
    let sums = x.new_zeros(&sizes[..])?;
    each_under(&sums, &split, &places, |to, from| to.add_(&from).map(drop))?;
    cast(sums, own.dtype())
}

/// `col2im`: sums columns of sliding windows into images; overlapping elements are added.
pub static DEF: OpDef = OpDef::new(
    "col2im(Tensor self, int[] output_size, int[] kernel_size, int[] dilation, int[] padding, \
     int[] stride) -> Tensor",
    Rule::Structured(rule),
    Derivative::of_grad(|b, g| {
        g.set(0, || {
            let [kernel, dilation, padding, stride] = [2, 3, 4, 5].map(|i| b.arg(i));
            im2col::DEF.run(&[b.grad(0)?.into(), kernel, dilation, padding, stride])
        })
    }),
    || {
        let call = |(sizes, lists): &(&[usize], [[i64; 2]; 4])| {
            let [kernel, dilation, padding, stride] = *lists;
            let place = |d: usize| {
                let free = sizes[d + 2] as i64 + 2 * padding[d] - dilation[d] * (kernel[d] - 1) - 1;
                (free / stride[d] + 1) as usize
            };
            let columns = [sizes[0], sizes[1] * (kernel[0] * kernel[1]) as usize, place(0) * place(1)];
            let output = SampleArg::Ints(vec![sizes[2] as i64, sizes[3] as i64]);
            sample([plain(&columns), output].into_iter().chain(options(*lists)))
        };
        CASES.iter().map(call).collect()
    },
)
.dtypes(Dtypes::FLOAT)
.errors(|| {
    let call = |columns: &[usize], output: &[i64], kernel: [i64; 2], message| {
        let lists = options([kernel, [1, 1], [0, 0], [1, 1]]);
        error([plain(columns), SampleArg::Ints(output.to_vec())].into_iter().chain(lists), message)
    };
    vec![
        call(&[4, 4], &[3, 3], [2, 2], "of 3 dimensions"),
        call(&[1, 4, 4], &[3], [2, 2], "2 numbers of 1 or more, height and width"),
        call(&[1, 6, 4], &[3, 3], [2, 2], "of shape [_, n * 4, 4]"),
        call(&[1, 4, 5], &[3, 3], [2, 2], "of shape [_, n * 4, 4]"),
        call(&[1, 4, 4], &[3, 1], [2, 2], "reaches over 2 elements of 1"),
    ]
})
.decomposed(|args| one(compose(args)));
