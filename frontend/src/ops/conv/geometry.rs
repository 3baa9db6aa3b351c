//! Output sizes of convolutions, and the checks that the three ops share. Arguments 3 to 6 of each are stride, padding,
//! dilation and the number of groups.

use crate::ops::rules::{wrong_shape, wrong_value};
use crate::ops::sample::SampleArg;
use crate::ops::spatial::{BORDER, MOVES, list, size_from};
use keyway_dispatcher::dims::Dims;
use keyway_dispatcher::error::Result;
use keyway_dispatcher::op::Args;

/// The maximum number of spatial dimensions.
const MOST: usize = 3;

/// The convolution parameters: stride, padding, dilation and groups.
pub(super) struct Moves<'a> {
    stride: &'a [i64],
    padding: &'a [i64],
    dilation: &'a [i64],
    pub(super) groups: usize,
}

/// The sizes of spatial dimensions from list argument `i`.
pub(super) fn sizes(args: &Args<'_>, i: usize, rank: usize, least: i64) -> Result<Dims> {
    Ok(list(args, i, rank, &size_from(least))?.iter().map(|&v| v as usize).collect())
}

/// The number of spatial dimensions of tensor argument `i`; `names` describes its first two dimensions.
///
/// # Errors
/// `Shape` if there is none or more than [`MOST`].
pub(super) fn rank(args: &Args<'_>, i: usize, names: &str) -> Result<usize> {
    let sizes = args.tensor(i)?.sizes();
    match sizes.len().checked_sub(2) {
        Some(rank @ 1..=MOST) => Ok(rank),
        _ => Err(wrong_shape(args, i, format!("of 3 to 5 dimensions, [{names}, ..]"), sizes)),
    }
}

/// Refuses a tensor argument `i` whose number of spatial dimensions is not `rank`.
pub(super) fn same_rank(args: &Args<'_>, i: usize, rank: usize, names: &str) -> Result<()> {
    let sizes = args.tensor(i)?.sizes();
    if sizes.len() == rank + 2 {
        return Ok(());
    }
    Err(wrong_shape(args, i, format!("of {} dimensions, [{names}, ..]", rank + 2), sizes))
}

impl<'a> Moves<'a> {
    /// Reads the parameters of a call.
    pub(super) fn of(args: &Args<'a>, rank: usize) -> Result<Moves<'a>> {
        let (stride, padding, dilation) =
            (list(args, 3, rank, &MOVES)?, list(args, 4, rank, &BORDER)?, list(args, 5, rank, &MOVES)?);
        let groups = args.int(6)?;
        if groups < 1 {
            return Err(wrong_value(args, 6, "1 or more groups".into()));
        }
        Ok(Moves { stride, padding, dilation, groups: usize::try_from(groups).unwrap_or(usize::MAX) })
    }

    /// The number of channels per group.
    ///
    /// # Errors
    /// `Value` if the groups do not divide the channels.
    pub(super) fn channels(&self, args: &Args<'_>, channels: usize, of: &str) -> Result<usize> {
        if channels.is_multiple_of(self.groups) {
            return Ok(channels / self.groups);
        }
        Err(wrong_value(args, 6, format!("a divisor of the {channels} {of} channels")))
    }

    /// The spatial sizes of the output for an input and a kernel of these sizes; argument `i` determined the kernel.
    ///
    /// # Errors
    /// `Shape` or `Value` for a kernel that does not fit into the padded input.
    pub(super) fn outputs(
        &self,
        args: &Args<'_>,
        i: usize,
        sizes: &[usize],
        kernel: &[usize],
    ) -> Result<Dims> {
        let mut made = Dims::new();
        for (d, (&size, &taps)) in sizes.iter().zip(kernel).enumerate() {
            let padded = size as i128 + 2 * i128::from(self.padding[d]);
            let reach = i128::from(self.dilation[d]) * (taps as i128 - 1) + 1;
            let places = (padded - reach).div_euclid(i128::from(self.stride[d])) + 1;
            let fits = taps > 0 && reach <= padded;
            match usize::try_from(places) {
                Ok(places) if fits => made.push(places),
                _ => {
                    let text = format!(
                        "a kernel of 1 or more elements that fits the padded input: in spatial dimension {d} it reaches over \
                         {reach} elements of {padded}, which are {size} and twice a padding of {}",
                        self.padding[d]
                    );
                    return Err(match args.tensor(i) {
                        Ok(t) => wrong_shape(args, i, text, t.sizes()),
                        Err(_) => wrong_value(args, i, text),
                    });
                }
            }
        }
        Ok(made)
    }
}

/// `[first, second, spatial..]`
pub(super) fn joined(first: usize, second: usize, spatial: &[usize]) -> Dims {
    [first, second].iter().chain(spatial).copied().collect()
}

/// The sizes of an input, a weight and their output, and the last four arguments of a call.
pub(super) struct Case {
    pub(super) input: Vec<usize>,
    pub(super) weight: Vec<usize>,
    pub(super) output: Vec<usize>,
    pub(super) moves: [SampleArg; 4],
}

/// A case from sizes, stride, padding, dilation and groups; computes `output`.
pub(super) fn case(
    input: &[usize],
    weight: &[usize],
    [stride, padding, dilation]: [&[i64]; 3],
    groups: i64,
) -> Case {
    let spatial = (2..input.len()).map(|d| {
        let (s, p, l) = (stride[d - 2] as usize, padding[d - 2] as usize, dilation[d - 2] as usize);
        (input[d] + 2 * p - l * (weight[d] - 1) - 1) / s + 1
    });
    let output = [input[0], weight[0]].into_iter().chain(spatial).collect();
    let [stride, padding, dilation] = [stride, padding, dilation].map(|list| SampleArg::Ints(list.to_vec()));
    let moves = [stride, padding, dilation, SampleArg::Int(groups)];
    Case { input: input.to_vec(), weight: weight.to_vec(), output, moves }
}

/// The sample cases of each op: one to three spatial dimensions, strides, paddings, dilations, groups, single channels, an
/// empty batch.
pub(super) fn cases() -> Vec<Case> {
    let one: [&[i64]; 3] = [&[1, 1], &[0, 0], &[1, 1]];
    vec![
        case(&[2, 3, 5], &[4, 3, 3], [&[1], &[1], &[1]], 1),
        case(&[1, 4, 9], &[2, 2, 2], [&[3], &[2], &[2]], 2),
        case(&[2, 3, 4, 5], &[2, 3, 3, 2], one, 1),
        case(&[2, 2, 5, 4], &[3, 2, 3, 3], [&[1, 1], &[1, 1], &[1, 1]], 1),
        case(&[1, 2, 6, 5], &[2, 2, 2, 3], [&[2, 3], &[1, 0], &[1, 2]], 1),
        case(&[2, 4, 4, 3], &[6, 2, 2, 2], [&[2, 1], &[0, 1], &[1, 1]], 2),
        case(&[1, 3, 4, 4], &[3, 1, 3, 3], [&[1, 1], &[1, 1], &[1, 1]], 3),
        case(&[2, 3, 3, 4], &[5, 3, 1, 1], one, 1),
        case(&[2, 1, 3, 3], &[1, 1, 3, 3], [&[1, 1], &[2, 2], &[2, 2]], 1),
        case(&[2, 2, 3, 4, 3], &[2, 2, 2, 3, 2], [&[1, 2, 1], &[1, 1, 0], &[2, 1, 1]], 1),
        case(&[0, 1, 4, 4], &[1, 1, 1, 1], one, 1),
    ]
}
