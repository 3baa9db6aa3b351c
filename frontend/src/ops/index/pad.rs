//! `pad`
//!
//! Arguments:
//! - `mode`: `constant`, `reflect`, `replicate` or `circular`.
//! - `value`: the value of the padding in mode `constant`.

use crate::Tensor;
use crate::error::Result;
use crate::ops::composite::{collected, one, tensor};
use crate::ops::def::{Derivative, OpDef};
use crate::ops::index::constant_pad::padded_sizes;
use crate::ops::index::geometry::{kept, wrong_value};
use crate::ops::rules::holds;
use crate::ops::sample::{SampleArg, error, plain, sample};
use crate::tensor::IntoShape;
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Plan, Rule};

/// The padding mode.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, nn::PadMode};
/// let x = Tensor::new([1, 2, 3])?;
/// let with = |mode| x.pad_with((1, 1), mode, 0)?.to_vec::<i32>();
/// assert_eq!(with(PadMode::Constant)?, [0, 1, 2, 3, 0]);
/// assert_eq!(with(PadMode::Reflect)?, [2, 1, 2, 3, 2]);
/// assert_eq!(with(PadMode::Replicate)?, [1, 1, 2, 3, 3]);
/// assert_eq!(with(PadMode::Circular)?, [3, 1, 2, 3, 1]);
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PadMode {
    /// A constant value.
    Constant,
    /// The elements reflected at the edge, without repeating it.
    Reflect,
    /// The edge element.
    Replicate,
    /// Elements from the other end, after cropping by negative widths.
    Circular,
}

impl PadMode {
    const ALL: [(PadMode, &'static str); 4] = [
        (PadMode::Constant, "constant"),
        (PadMode::Reflect, "reflect"),
        (PadMode::Replicate, "replicate"),
        (PadMode::Circular, "circular"),
    ];

    fn name(self) -> &'static str {
        PadMode::ALL.iter().find(|(mode, _)| *mode == self).map_or("", |(_, name)| name)
    }
}

impl Tensor {
    /// Pads with 0. The widths are two numbers for each dimension, before and after, starting with the last dimension; a
    /// negative width crops. [`Tensor::pad_with`] has other modes.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::PadMode};
    /// let a = Tensor::new([1, 2, 3])?;
    /// assert_eq!(a.pad((1, 0))?.to_vec::<i32>()?, [0, 1, 2, 3]);
    /// assert_eq!(a.pad_with((2, 0), PadMode::Reflect, 0)?.to_vec::<i32>()?, [3, 2, 1, 2, 3]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of [`Tensor::constant_pad`]; a width for which the mode has too few elements.
    #[doc(alias = "pad_with_zeros")]
    pub fn pad(&self, widths: impl IntoShape) -> Result<Tensor> {
        self.pad_with(widths, PadMode::Constant, 0)
    }

    /// [`Tensor::pad`] in a mode, with `value` for the constant mode.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::PadMode};
    /// let x = Tensor::new([1, 2])?;
    /// assert_eq!(x.pad_with((2, 0), PadMode::Constant, 7)?.to_vec::<i32>()?, [7, 7, 1, 2]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The same; a width for which the mode has too few elements.
    pub fn pad_with<'a>(
        &'a self,
        widths: impl IntoShape,
        mode: PadMode,
        value: impl Into<Arg<'a>>,
    ) -> Result<Tensor> {
        let value = value.into();
        DEF.run(&[self.into(), Arg::Ints(&widths.into_ints()), Arg::Str(mode.name()), value])
    }
}

/// The widths before and after of each dimension that is padded or cropped.
fn borders(widths: &[i64], ndim: usize) -> impl Iterator<Item = (usize, i64, i64)> {
    let pairs = widths.chunks_exact(2).enumerate();
    pairs.map(move |(k, pair)| (ndim - 1 - k, pair[0], pair[1])).filter(|&(_, a, b)| (a, b) != (0, 0))
}

/// The range of a dimension of this size that negative widths leave: circular padding repeats that range.
fn left(size: i64, before: i64, after: i64) -> (i64, i64) {
    (before.saturating_neg().max(0), size - after.saturating_neg().max(0))
}

/// The maximum width for a dimension of this size.
fn most(mode: PadMode, size: i64, before: i64, after: i64) -> i64 {
    let (first, end) = left(size, before, after);
    match mode {
        PadMode::Reflect => size - 1,
        PadMode::Circular => end - first,
        PadMode::Constant => i64::MAX,
        PadMode::Replicate if size > 0 => i64::MAX,
        PadMode::Replicate => 0,
    }
    .max(0)
}

/// The source index of each element of the padded dimension.
fn sources(mode: PadMode, size: i64, before: i64, after: i64) -> Result<Vec<i64>> {
    let (first, end) = left(size, before, after);
    let one = |i: i64| match mode {
        PadMode::Reflect if i < 0 => -i,
        PadMode::Reflect if i >= size => 2 * (size - 1) - i,
        PadMode::Circular => first + (i - first).rem_euclid(end - first),
        _ => i.clamp(0, size - 1),
    };
    collected((size + after + before) as usize, (-before..size + after).map(one))
}

fn mode(args: &Args<'_>) -> RuleResult<PadMode> {
    let name = args.str(2)?;
    match PadMode::ALL.iter().find(|(_, n)| *n == name) {
        Some((mode, _)) => Ok(*mode),
        None => Err(wrong_value(args, 2, "`constant`, `reflect`, `replicate` or `circular`".into())),
    }
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let (t, widths) = (args.tensor(0)?, args.ints(1)?);
    let (sizes, mode) = (padded_sizes(args)?, mode(args)?);
    args.float(3)?;
    if mode == PadMode::Constant {
        holds(args, 3, t.dtype())?;
    }
    for (d, before, after) in borders(widths, t.ndim()) {
        let size = t.sizes()[d];
        let most = most(mode, size as i64, before, after);
        if before > most || after > most {
            return Err(wrong_value(
                args,
                1,
                match mode {
                    PadMode::Circular if before < 0 || after < 0 => {
                        format!(
                            "widths of at most {most}, the remainder of a dimension of size {size} after negative ones"
                        )
                    }
                    _ => format!("widths of at most {most} for a dimension of size {size}"),
                },
            ));
        }
    }
    keyway_dispatcher::dims::numel(args.name(), &sizes)?;
    let strides = kept(t, &sizes);
    Ok(Plan::one(t.dtype(), sizes, t.dtype(), strides))
}

fn compose(args: &Args<'_>) -> Result<Tensor> {
    let (mut t, widths, mode) = (tensor(args, 0)?, args.ints(1)?, mode(args)?);
    if mode == PadMode::Constant {
        return t.constant_pad(widths, args.get(3));
    }
    for (d, before, after) in borders(widths, t.rank()) {
        let table = sources(mode, t.shape()[d] as i64, before, after)?;
        let length = table.len();
        let table = Tensor::from_vec(table, length)?;
        t = t.index_select(d, &table.to_device(t.device())?)?;
    }
    Ok(t)
}

/// `pad`
pub static DEF: OpDef = OpDef::new(
    "pad(Tensor self, int[] pad, str mode=constant, Scalar value=0) -> Tensor",
    Rule::Structured(rule),
    Derivative::Composite,
    || {
        let call = |sizes: &[usize], widths: &[i64], mode| {
            sample([plain(sizes), SampleArg::Ints(widths.to_vec()), SampleArg::Str(mode), SampleArg::Int(1)])
        };
        vec![
            call(&[3], &[1, 2], "constant"),
            call(&[4], &[3, 2], "reflect"),
            call(&[2, 3], &[1, 2], "reflect"),
            call(&[1, 2, 3, 4], &[1, 2, 2, 1], "reflect"),
            call(&[2, 3], &[4, 1, 2, 0], "replicate"),
            call(&[2, 3], &[3, 1, 2, 0], "circular"),
            call(&[5], &[-1, 2], "replicate"),
            call(&[5], &[2, -1], "circular"),
            call(&[], &[], "constant"),
            call(&[2, 3, 4], &[2, 1], "circular"),
            call(&[1, 2, 2, 3], &[1, 2, 0, 3], "replicate"),
            call(&[1, 2, 2, 3], &[2, 1, 1, 2], "circular"),
            call(&[1, 2, 2, 3, 2], &[1, 0, 2, 1, 1, 1], "reflect"),
            call(&[1, 2, 1, 2, 2], &[1, 2, 0, 1, 2, 0], "replicate"),
            call(&[1, 2, 1, 2, 2], &[1, 2, 0, 1, 1, 1], "circular"),
            call(&[1, 2, 1, 2, 2], &[1, 2, 0, 1, 1, 1], "constant"),
            call(&[0, 3], &[1, 1], "reflect"),
        ]
    },
)
.errors(|| {
    let call = |widths: &[i64], mode, message| {
        error(
            [plain(&[3]), SampleArg::Ints(widths.to_vec()), SampleArg::Str(mode), SampleArg::Int(0)],
            message,
        )
    };
    vec![
        call(&[3, 0], "reflect", "at most 2"),
        call(&[4, 0], "circular", "at most 3"),
        call(&[1, 1], "mirror", "`replicate`"),
        call(&[1], "constant", "two widths"),
    ]
})
.decomposed(|args| one(compose(args)));
