//! `index`
//!
//! Arguments:
//! - `indices`: index tensors, one for each of `dims`.
//! - `dims`: the dimensions that the indices index, ascending.

use crate::error::{Result, called};
use crate::ops::def::{Derivative, Forms, OpDef, OpFlags};
use crate::ops::index::geometry::{check_index, wrong_shape, wrong_value, zeros};
use crate::ops::index::index_put::put_at;
use crate::ops::rules::keeping;
use crate::ops::sample::{Fill, Role, Sample, SampleArg, TensorSample, error, plain, sample};
use crate::{DType, Device, Tensor};
use keyway_dispatcher::dims::{Dims, broadcast};
use keyway_dispatcher::error::{Error, Result as RuleResult};
use keyway_dispatcher::op::{Arg, Args, Plan, Rule};

impl Tensor {
    /// Advanced indexing: the elements `self[i0, i1, ..]` as in NumPy and PyTorch. Integer tensors broadcast together and
    /// index one dimension each, negative values count from the end; a bool mask indexes as many dimensions as it has, at
    /// its true positions; `None` selects a whole dimension. The dimensions of the indices replace the indexed ones if
    /// these are adjacent, otherwise they come first.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::from_vec(vec![1, 2, 3, 4], (2, 2))?;
    /// let at = Tensor::new([-1i64, 0])?;
    /// assert_eq!(a.index(&[None, Some(&at)])?.to_vec::<i32>()?, [2, 1, 4, 3]);
    /// assert_eq!(a.index(&[Some(&a.gt(2)?)])?.to_vec::<i32>()?, [3, 4]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// More indices than dimensions; shapes that do not broadcast; a mask of another shape; an index outside
    /// `-size..size`.
    pub fn index(&self, indices: &[Option<&Tensor>]) -> Result<Tensor> {
        called("index", &["self", "indices"], || {
            let (indices, dims) = resolve(self, "index", indices)?;
            at(self, &indices, &dims)
        })
    }
}

/// Calls `index` with an integer tensor for each of `dims`.
pub(super) fn at(t: &Tensor, indices: &[Tensor], dims: &[i64]) -> Result<Tensor> {
    let list: Vec<_> = indices.iter().map(|i| i.as_ref()).collect();
    DEF.run(&[t.into(), Arg::Tensors(&list), Arg::Ints(dims)])
}

/// Converts masks to the indices of their true elements, and returns the dimension of each index.
pub(super) fn resolve(
    t: &Tensor,
    op: &'static str,
    indices: &[Option<&Tensor>],
) -> Result<(Vec<Tensor>, Vec<i64>)> {
    let (mut tensors, mut dims, mut next) = (Vec::new(), Vec::new(), 0);
    for given in indices {
        let width = given.filter(|i| i.dtype() == DType::BOOL).map_or(1, Tensor::rank);
        let Some(own) = t.shape().get(next..next + width).filter(|_| width > 0) else {
            let expected =
                format!("indices for at most the {} dimensions, masks of one dimension or more", t.rank());
            let got = format!("an index for dimension {next} of width {width}");
            return Err(Error::Value { op, argument: "indices", expected, got }.into());
        };
        // A 0-d index in host memory is accepted for any device.
        let on_host = |index: &Tensor| index.rank() == 0 && index.device() == Device::CPU;
        if let Some(index) = given.filter(|index| index.device() != t.device() && !on_host(index)) {
            let (expected, got) = (t.device(), index.device());
            return Err(Error::DeviceMismatch { op, argument: "indices", expected, got }.into());
        }
        match given {
            Some(mask) if mask.dtype() == DType::BOOL => {
                if mask.shape() != own {
                    let expected = format!("a mask of shape {own:?}, as dimensions {next}.. are");
                    let got = mask.shape().into();
                    return Err(Error::Shape { op, argument: "indices", expected, got }.into());
                }
                let places = mask.nonzero()?;
                for k in 0..width {
                    let column = Tensor::new([k as i64])?.to_device(t.device())?;
                    tensors.push(places.index_select(1, &column)?.reshape_as_sizes(&[places.shape()[0]])?);
                    dims.push((next + k) as i64);
                }
            }
            Some(index) => {
                tensors.push((*index).clone());
                dims.push(next as i64);
            }
            None => {}
        }
        next += width;
    }
    Ok((tensors, dims))
}

/// The shape of the result of a call `(self, indices, dims)`, after checks.
pub(super) fn indexed_shape(args: &Args<'_>) -> RuleResult<Dims> {
    let (t, indices, dims) = (args.tensor(0)?, args.tensors(1)?, args.ints(2)?);
    let ascending = dims.windows(2).all(|pair| pair[0] < pair[1]);
    let inside = dims.iter().all(|&d| (0..t.ndim() as i64).contains(&d));
    if dims.len() != indices.len() || !ascending || !inside {
        let expected =
            format!("{} ascending dimensions below {}, one for each index", indices.len(), t.ndim());
        return Err(wrong_value(args, 2, expected));
    }
    let mut shape = Dims::new();
    for index in indices {
        check_index(args, 1, index)?;
        shape = broadcast(args.name(), &shape, index.sizes())?;
    }
    let empty = shape.contains(&0);
    if let Some(&d) = dims.iter().find(|&&d| !empty && t.sizes()[d as usize] == 0) {
        return Err(wrong_shape(args, 0, format!("not empty in dimension {d}, which is indexed"), t.sizes()));
    }
    let neighbours = dims.windows(2).all(|pair| pair[1] == pair[0] + 1);
    let place = if neighbours { dims.first().map_or(0, |&d| d as usize) } else { 0 };
    let mut sizes: Dims =
        (0..t.ndim()).filter(|&d| !dims.contains(&(d as i64))).map(|d| t.sizes()[d]).collect();
    sizes.insert_many(place, shape);
    Ok(sizes)
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let t = args.tensor(0)?;
    let mut plan = keeping(t, t.dtype(), indexed_shape(args)?, t.dtype());
    plan.cast_index = 0b10;
    Ok(plan)
}

/// The list of index tensors of a sample, with indices below `n`.
pub(super) fn indices(shapes: &[&[usize]], n: i64) -> SampleArg {
    let one = |s: &&[usize]| TensorSample {
        sizes: s.to_vec(),
        fill: Fill::Index(n),
        role: Role::Fixed(DType::I64),
    };
    SampleArg::Tensors(shapes.iter().map(one).collect())
}

fn samples() -> Vec<Sample> {
    let call = |sizes: &[usize], at: &[&[usize]], n, dims: &[i64]| {
        sample([plain(sizes), indices(at, n), SampleArg::Ints(dims.to_vec())])
    };
    vec![
        call(&[5], &[&[7]], 5, &[0]),
        call(&[5], &[&[]], 5, &[0]),
        call(&[3, 4], &[&[2, 2]], 3, &[0]),
        call(&[3, 4], &[&[5]], 4, &[1]),
        call(&[3, 4], &[&[2, 1], &[3]], 3, &[0, 1]),
        call(&[3, 4, 5], &[&[2], &[2]], 3, &[0, 2]),
        call(&[2, 3, 4, 2], &[&[3], &[2, 1]], 3, &[1, 2]),
        call(&[3, 4], &[&[0]], 3, &[0]),
        call(&[3, 4], &[], 3, &[]),
    ]
}

/// `index`
pub static DEF: OpDef = OpDef::new(
    "index(Tensor self, Tensor[] indices, int[] dims) -> Tensor",
    Rule::Structured(rule),
    Derivative::of_inputs(0b10, |b, g| {
        g.set(0, || {
            let grad = b.grad(0)?;
            put_at(&zeros(grad, b.sizes(0))?, &b.inputs(1)?, b.ints(2)?, grad.into(), true)
        })
    }),
    samples,
)
.forms(Forms::Out)
.errors(|| {
    let one = |v: f64| {
        let fill = Fill::Values(vec![v]);
        SampleArg::Tensors(vec![TensorSample { sizes: vec![1], fill, role: Role::Fixed(DType::I64) }])
    };
    vec![
        error([plain(&[3]), one(3.0), SampleArg::Ints(vec![0])], "index 3"),
        error([plain(&[3]), one(-4.0), SampleArg::Ints(vec![0])], "-3..3"),
        error([plain(&[3]), one(0.0), SampleArg::Ints(vec![1])], "below 1"),
        error([plain(&[3, 3]), indices(&[&[2], &[3]], 3), SampleArg::Ints(vec![0, 1])], "do not broadcast"),
    ]
})
.with(OpFlags::EXACT)
.with(OpFlags::COMPLEX);
