//! `pad`

use crate::Tensor;
use crate::error::Result;
use crate::ops::def::{Derivative, Dtypes, Entry, Forms, OpDef};
use crate::ops::index::constant_pad::padded_sizes;
use crate::ops::index::geometry::wrong_value;
use crate::ops::sample::{SampleArg, error, plain, sample};
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Outputs, Rule};

/// What a border is made of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PadMode {
    /// One value.
    Constant,
    /// The elements mirrored at the edge, which is not repeated.
    Reflect,
    /// The edge.
    Replicate,
    /// The other end of what negative widths leave.
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
    /// The tensor with a border. The widths are two numbers for each dimension, before and after, beginning
    /// with the last; a negative width cuts off. `value` is for the constant mode.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// use keyway::ops::index::pad::PadMode;
    /// let a = Tensor::from_slice(&[1, 2, 3])?;
    /// assert_eq!(a.pad(&[2, 0], PadMode::Reflect, 0)?.to_vec::<i32>()?, [3, 2, 1, 2, 3]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::constant_pad`]; a width that the mode has not enough elements for.
    pub fn pad<'a>(&'a self, widths: &[i64], mode: PadMode, value: impl Into<Arg<'a>>) -> Result<Tensor> {
        let value = value.into();
        DEF.run(&[self.into(), Arg::Ints(widths), Arg::Str(mode.name()), value])
    }
}

/// Where each element of a padded dimension comes from.
fn places(args: &Args<'_>, mode: PadMode, size: usize, before: i64, after: i64) -> RuleResult<Vec<i64>> {
    let size = size as i64;
    // What negative widths leave of the dimension: a circular border is taken from it alone.
    let (first, end) = ((-before).max(0), size - (-after).max(0));
    let most = match mode {
        PadMode::Reflect => size - 1,
        PadMode::Circular => (end - first).max(0),
        PadMode::Constant | PadMode::Replicate => {
            if size > 0 {
                i64::MAX
            } else {
                0
            }
        }
    };
    if before > most || after > most {
        return Err(wrong_value(
            args,
            1,
            format!("widths of at most {} for a dimension of size {size}", most.max(0)),
        ));
    }
    let one = |i: i64| match mode {
        PadMode::Reflect if i < 0 => -i,
        PadMode::Reflect if i >= size => 2 * (size - 1) - i,
        PadMode::Circular => first + (i - first).rem_euclid(end - first),
        _ => i.clamp(0, size - 1),
    };
    Ok((-before..size + after).map(one).collect())
}

fn compose(args: &Args<'_>) -> RuleResult<Outputs> {
    let mut t = Tensor::from_ref(args.tensor(0)?.clone());
    let widths = args.ints(1)?;
    let sizes = padded_sizes(args)?;
    let name = args.str(2)?;
    let Some((mode, _)) = PadMode::ALL.iter().find(|(_, n)| *n == name) else {
        return Err(wrong_value(args, 2, "`constant`, `reflect`, `replicate` or `circular`".into()));
    };
    if *mode == PadMode::Constant {
        return Ok(Outputs::from_iter([t.constant_pad(widths, args.get(3))?.into_ref()]));
    }
    keyway_dispatcher::dims::numel(args.name(), &sizes)?;
    for (k, pair) in widths.chunks_exact(2).enumerate().filter(|(_, pair)| **pair != [0, 0]) {
        let d = t.ndim() - 1 - k;
        let (mut before, mut after) = (pair[0], pair[1]);
        if *mode == PadMode::Circular && before.min(after) < 0 {
            // What is cut off is no part of the circle, as in PyTorch.
            let size = t.sizes()[d] as i64;
            let (from, to) = ((-before).max(0), size - (-after).max(0));
            t = t.narrow(d as i64, from, (to - from).max(0) as usize)?;
            (before, after) = (before.max(0), after.max(0));
        }
        let table = Tensor::from_slice(&places(args, *mode, t.sizes()[d], before, after)?)?;
        t = t.index_select(d as i64, &table.to_device(t.device())?)?;
    }
    Ok(Outputs::from_iter([t.into_ref()]))
}

/// `pad`
pub static DEF: OpDef = OpDef {
    schema: "pad(Tensor self, int[] pad, str mode=constant, Scalar value=0) -> Tensor",
    rule: Rule::Host(compose),
    decomposition: None,
    derivative: Derivative::Composite,
    forms: Forms::New,
    dtypes: Dtypes::ALL,
    samples: || {
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
    errors: || {
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
    },
    entry: Entry::new(),
};
