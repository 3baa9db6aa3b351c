//! `embedding_bag`
//!
//! Arguments:
//! - `offsets`: where each bag begins in a vector of indices; None if each row of a matrix is one.
//! - `per_sample_weights`: the factor of each row, for sums; None for 1.
//! - `include_last_offset`: whether the last offset is the end of the last bag.
//! - `mode`: `sum`, `mean` or `max`.
//! - `weight`: the table, one row for each index.
//! - `indices`: the rows to read.

use super::bags::{Cells, as_grid};
use crate::autograd::is_grad_enabled;
use crate::error::{Result, called};
use crate::ops::composite::{cast, counting, float_tensor, one, optional, tensor};
use crate::ops::def::{Derivative, Dtypes, OpDef};
use crate::ops::index::geometry::{index as index_of, row, wrong_shape, wrong_value};
use crate::ops::sample::{ErrorSample, Fill, Sample, SampleArg, error, fixed, index, plain, sample};
use crate::{DType, Tensor};
use keyway_dispatcher::dims::{Dims, wrap_dim};
use keyway_dispatcher::error::{Error, Result as RuleResult};
use keyway_dispatcher::op::{Arg, Args, Plan, Rule, Strides};

/// The reduction over the rows of a bag.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, nn::{BagMode, BagOptions}};
/// let (rows, bag) = (Tensor::new([[1.0f32], [4.0]])?, Tensor::new([[0i64, 1, 1]])?);
/// for (mode, result) in [(BagMode::Sum, 9.0), (BagMode::Mean, 3.0), (BagMode::Max, 4.0)] {
///     let y = rows.embedding_bag_with(&bag, BagOptions { mode, ..BagOptions::default() })?;
///     assert_eq!(y.to_vec::<f32>()?, [result]);
/// }
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum BagMode {
    /// The sum.
    Sum,
    /// The mean.
    #[default]
    Mean,
    /// The maximum of each column.
    Max,
}

impl BagMode {
    const ALL: [(BagMode, &'static str); 3] =
        [(BagMode::Sum, "sum"), (BagMode::Mean, "mean"), (BagMode::Max, "max")];

    fn name(self) -> &'static str {
        BagMode::ALL.iter().find(|(mode, _)| *mode == self).map_or("", |(_, name)| name)
    }
}

/// The options of [`Tensor::embedding_bag_with`].
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, nn::{BagMode, BagOptions}};
/// let (rows, indices) = (Tensor::new([[1.0f32], [4.0]])?, Tensor::new([0i64, 1, 1])?);
/// let offsets = Tensor::new([0i64, 1])?;
/// let options = BagOptions { offsets: Some(&offsets), mode: BagMode::Sum, ..BagOptions::default() };
/// assert_eq!(rows.embedding_bag_with(&indices, options)?.to_vec::<f32>()?, [1.0, 8.0]);
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct BagOptions<'a> {
    /// The start of each bag in one-dimensional indices, ascending from 0.
    pub offsets: Option<&'a Tensor>,
    /// The reduction over the rows of a bag.
    pub mode: BagMode,
    /// A factor for each index; only for sums.
    pub per_sample_weights: Option<&'a Tensor>,
    /// Whether the last offset is the end of the last bag; indices after it are ignored. Otherwise the last bag ends with the
    /// indices.
    pub include_last_offset: bool,
    /// The padding index: excluded from the reduction and from the gradient.
    pub padding_idx: Option<i64>,
    /// Whether the gradient of the weight is sparse, as in [`Tensor::embedding_sparse`].
    pub sparse: bool,
}

impl Tensor {
    /// Means of rows of this float matrix: each row of the matrix `indices` is a bag of row indices. The mean of an empty
    /// bag is zero. The CPU kernel adds long bags in blocks of 1024 rows and the block sums in f64.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let weight = Tensor::from_vec(vec![1.0f32, 2.0, 4.0], (3, 1))?;
    /// let bags = Tensor::new([[0i64, 1], [2, 2]])?;
    /// assert_eq!(weight.embedding_bag(&bags)?.to_vec::<f32>()?, [1.5, 4.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A weight that is not a float matrix; an index outside `0..rows`; indices that are not a matrix.
    pub fn embedding_bag(&self, indices: &Tensor) -> Result<Tensor> {
        self.embedding_bag_with(indices, BagOptions::default())
    }

    /// [`Tensor::embedding_bag`] with options: reduces by sum, mean or maximum; one-dimensional indices are split into bags by
    /// `offsets`, which are read on the host.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// use keyway::nn::{BagMode, BagOptions};
    /// let weight = Tensor::from_vec(vec![1.0f32, 2.0, 4.0], (3, 1))?;
    /// let at = Tensor::new([0i64, 1, 2])?;
    /// let offsets = Tensor::new([0i64, 2])?;
    /// let options = BagOptions { offsets: Some(&offsets), mode: BagMode::Sum, ..Default::default() };
    /// assert_eq!(weight.embedding_bag_with(&at, options)?.to_vec::<f32>()?, [3.0, 4.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The same; offsets that are missing, given for a matrix or not ascending from 0; weights of another shape than the
    /// indices, or for a mode other than the sum.
    pub fn embedding_bag_with(&self, indices: &Tensor, options: BagOptions<'_>) -> Result<Tensor> {
        called("embedding_bag", &["self", "indices", "options"], || {
            if options.sparse {
                crate::tensor::sparse_layout(crate::tensor::COO, DEF.name(), self.device())?;
                // Invalid arguments are refused below.
                if self.requires_grad() && is_grad_enabled() && self.rank() == 2 {
                    return by_sparse_rows(self, indices, options);
                }
            }
            DEF.run(&[
                self.into(),
                indices.into(),
                Arg::optional(options.offsets),
                Arg::Str(options.mode.name()),
                Arg::optional(options.per_sample_weights),
                Arg::Bool(options.include_last_offset),
                Arg::optional(options.padding_idx),
            ])
        })
    }
}

/// Computes bags only from the gathered rows, so that the gradient of the weight is sparse.
fn by_sparse_rows(weight: &Tensor, indices: &Tensor, options: BagOptions<'_>) -> Result<Tensor> {
    let (n, device) = (indices.elem_count(), indices.device());
    let mut rows = weight.embedding_sparse_with(&indices.reshape_as_sizes(&[n])?, options.padding_idx)?;
    let (mut places, mut padding_idx) = (counting(indices.shape(), device)?, None);
    if let Some(padding) = options.padding_idx {
        // A separate padding row after the others.
        let row = wrap_dim(DEF.name(), padding, weight.shape()[0])? as i64;
        let blank = Tensor::zeros_with([1, weight.shape()[1]], (weight.dtype(), weight.device()))?;
        rows = Tensor::cat(&[&rows, &blank], 0)?;
        places = places.masked_fill(&indices.eq(row)?, n as i64)?;
        padding_idx = Some(n as i64);
    }
    rows.embedding_bag_with(&places, BagOptions { padding_idx, sparse: false, ..options })
}

fn mode(args: &Args<'_>) -> RuleResult<BagMode> {
    let name = args.str(3)?;
    match BagMode::ALL.iter().find(|(_, n)| *n == name) {
        Some((mode, _)) => Ok(*mode),
        None => Err(wrong_value(args, 3, "`sum`, `mean` or `max`".into())),
    }
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let (weight, indices) = (float_tensor(args, 0)?, index_of(args, 1)?);
    let &[rows, columns] = weight.sizes() else {
        return Err(wrong_shape(args, 0, "a matrix of one row for each index".into(), weight.sizes()));
    };
    let mode = mode(args)?;
    if let Some(factors) = args.optional_tensor(4)? {
        if mode != BagMode::Sum {
            return Err(wrong_value(args, 3, "`sum` where weights are given".into()));
        }
        if factors.sizes() != indices.sizes() {
            let expected = format!("of the indices' shape {:?}", indices.sizes());
            return Err(wrong_shape(args, 4, expected, factors.sizes()));
        }
    }
    if args.optional_int(6)?.is_some() {
        row(args, 6, rows)?;
    }
    let with_end = args.bool(5)?;
    let bags = match (args.optional_tensor(2)?, indices.sizes()) {
        (None, &[bags, _]) => bags,
        (None, [_]) => {
            return Err(wrong_value(args, 2, "a tensor, where the indices are of one dimension".into()));
        }
        (None, sizes) => return Err(wrong_shape(args, 1, "of 1 or 2 dimensions".into(), sizes)),
        (Some(_), [_]) => {
            let offsets = index_of(args, 2)?;
            if offsets.ndim() != 1 || (with_end && offsets.numel() == 0) {
                return Err(wrong_offsets(args, indices.numel()));
            }
            offsets.numel() - usize::from(with_end)
        }
        (Some(_), sizes) => {
            let expected = "of one dimension where offsets are given".to_string();
            return Err(wrong_shape(args, 1, expected, sizes));
        }
    };
    let sizes = Dims::from_slice(&[bags, columns]);
    let mut plan = Plan::one(weight.dtype(), sizes, weight.dtype(), Strides::Contiguous);
    plan.cast = 0b1_0001;
    plan.cast_index = 0b110;
    Ok(plan)
}

fn compose(args: &Args<'_>) -> Result<Tensor> {
    let (weight, indices) = (tensor(args, 0)?, cast(tensor(args, 1)?, DType::I64)?);
    let (rows, columns) = (weight.shape()[0], weight.shape()[1]);
    let (mode, factors) = (mode(args)?, optional(args, 4)?);
    let padding = args.optional_int(6)?.map(|row| wrap_dim(args.name(), row, rows)).transpose()?;
    let absent = |indices: &Tensor| padding.map(|row| indices.eq(row as i64)).transpose();
    let made = match ends(args, indices.elem_count())? {
        None => Cells::of(&weight, &indices, factors.as_ref(), absent(&indices)?)?.by_rows(mode)?,
        Some(ends) if mode == BagMode::Max => {
            let (grid, outside) = as_grid(&ends, &indices)?;
            let absent = absent(&grid)?.map_or(Ok(outside.clone()), |absent| absent.logical_or(&outside))?;
            Cells::of(&weight, &grid, None, Some(absent))?.by_rows(mode)?
        }
        Some(ends) => {
            // Indices after the end of the last bag are ignored.
            let part = |t: &Tensor| t.narrow(0, 0, ends.last().copied().unwrap_or(0));
            let (indices, factors) = (part(&indices)?, factors.as_ref().map(part).transpose()?);
            Cells::of(&weight, &indices, factors.as_ref(), absent(&indices)?)?
                .by_ends(mode, &ends, columns)?
        }
    };
    cast(made, weight.dtype())
}

#[cold]
fn wrong_offsets(args: &Args<'_>, indices: usize) -> Error {
    let expected =
        format!("one dimension of integers, ascending from 0 to at most {indices}, the number of indices");
    wrong_value(args, 2, expected)
}

/// The end of each bag of `indices` indices, if offsets are given. Reads the offsets' values, as a kernel would.
fn ends(args: &Args<'_>, indices: usize) -> Result<Option<Vec<usize>>> {
    let Some(offsets) = optional(args, 2)? else { return Ok(None) };
    let starts = cast(offsets, DType::I64)?.to_vec::<i64>()?;
    let ascending =
        starts.windows(2).all(|pair| pair[0] <= pair[1]) && starts.first().is_none_or(|&s| s == 0);
    if !ascending || starts.last().is_some_and(|&last| last as usize > indices) {
        return Err(wrong_offsets(args, indices).into());
    }
    let mut ends: Vec<usize> = starts.iter().skip(1).map(|&s| s as usize).collect();
    if !args.bool(5)? && !starts.is_empty() {
        ends.push(indices);
    }
    Ok(Some(ends))
}

/// A sample tensor of offsets or indices.
fn integers(values: &[i64]) -> SampleArg {
    let fill = Fill::Values(values.iter().map(|&v| v as f64).collect());
    fixed(&[values.len()], DType::I64, fill)
}

fn call(
    [at, offsets, factors]: [SampleArg; 3],
    mode: BagMode,
    with_end: bool,
    padding: Option<i64>,
) -> Vec<SampleArg> {
    let padding = padding.map_or(SampleArg::None, SampleArg::Int);
    vec![
        plain(&[5, 3]),
        at,
        offsets,
        SampleArg::Str(mode.name()),
        factors,
        SampleArg::Bool(with_end),
        padding,
    ]
}

fn samples() -> Vec<Sample> {
    let none = || SampleArg::None;
    let at = || integers(&[1, 0, 4, 1, 2, 2, 3]);
    let (offsets, with_end) = (|| integers(&[0, 2, 2, 5]), || integers(&[0, 2, 2, 7]));
    let mut all = Vec::new();
    for (mode, _) in BagMode::ALL {
        all.push(call([index(&[3, 4], 5), none(), none()], mode, false, None));
        all.push(call([index(&[3, 4], 5), none(), none()], mode, false, Some(1)));
        all.push(call([at(), offsets(), none()], mode, false, None));
        all.push(call([at(), with_end(), none()], mode, true, Some(-3)));
        all.push(call([index(&[2, 0], 5), none(), none()], mode, false, None));
        all.push(call([integers(&[]), integers(&[0, 0]), none()], mode, false, None));
    }
    all.push(call([index(&[2, 3], 5), none(), plain(&[2, 3])], BagMode::Sum, false, None));
    all.push(call([at(), with_end(), plain(&[7])], BagMode::Sum, true, Some(2)));
    all.into_iter().map(sample).collect()
}

fn errors() -> Vec<ErrorSample> {
    let none = || SampleArg::None;
    let at = || integers(&[1, 0, 4]);
    let sum = BagMode::Sum;
    vec![
        error(call([at(), none(), none()], sum, false, None), "where the indices are of one dimension"),
        error(call([index(&[2, 3], 5), integers(&[0]), none()], sum, false, None), "of one dimension where"),
        error(call([at(), integers(&[0, 2, 1]), none()], sum, false, None), "ascending from 0 to at most 3"),
        error(call([at(), integers(&[1]), none()], sum, false, None), "ascending from 0 to at most 3"),
        error(call([at(), integers(&[0, 4]), none()], sum, false, None), "ascending from 0 to at most 3"),
        error(call([at(), integers(&[]), none()], sum, true, None), "ascending from 0 to at most 3"),
        error(call([at(), integers(&[0]), plain(&[2])], sum, false, None), "of the indices' shape [3]"),
        error(call([at(), integers(&[0]), plain(&[3])], BagMode::Max, false, None), "`sum` where weights"),
        error(call([integers(&[5]), integers(&[0]), none()], sum, false, None), "index 5"),
        error(call([at(), integers(&[0]), none()], sum, false, Some(5)), "a row of the 5, from -5 to 4"),
    ]
}

/// `embedding_bag`
pub static DEF: OpDef = OpDef::new(
    "embedding_bag(Tensor weight, Tensor indices, Tensor? offsets=None, str mode='mean', \
     Tensor? per_sample_weights=None, bool include_last_offset=False, \
     int? padding_idx=None) -> Tensor",
    Rule::Structured(rule),
    Derivative::Composite,
    samples,
)
.dtypes(Dtypes::FLOAT)
.errors(errors)
.decomposed(|args| one(compose(args)));
