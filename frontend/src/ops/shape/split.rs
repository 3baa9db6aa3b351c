//! `split`
//!
//! Arguments:
//! - `split_sizes`: the size of each part along `dim`.

use crate::Tensor;
use crate::error::{Result, called};
use crate::ops::def::{Derivative, OpDef, OpFlags};
use crate::ops::sample::{Sample, SampleArg, error, plain, sample};
use crate::tensor::Int;
use keyway_dispatcher::dims::Dims;
use keyway_dispatcher::error::{Error, Result as RuleResult};
use keyway_dispatcher::memory::host_vec;
use keyway_dispatcher::op::{Arg, Args, Rule, ViewSpec};
use smallvec::SmallVec;

/// The minimum memory of one sparse part: the tensor, its components and their storage.
const PART_BYTES: usize = 1 << 10;

/// An empty vector with capacity for `count` sparse parts, each a separate tensor. Counts that exceed memory are refused
/// before the first part is created, instead of exhausting memory.
pub(super) fn room_for_parts(count: usize) -> Result<Vec<Tensor>> {
    // `black_box` prevents the compiler from removing the unused allocation.
    drop(std::hint::black_box(host_vec::<[u8; PART_BYTES]>(count)?));
    Ok(host_vec(count)?)
}

impl Tensor {
    /// Views of `sizes` consecutive indices of dimension `dim`. For a sparse tensor the parts are new tensors, and its entries
    /// are scanned for each.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::new([1, 2, 3])?;
    /// let parts = a.split_sizes(&[1, 2], 0)?;
    /// assert_eq!(parts[1].to_vec::<i32>()?, [2, 3]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Sizes that do not sum to that of the dimension, a dimension out of range.
    #[doc(alias = "split_with_sizes")]
    pub fn split_sizes(&self, sizes: &[usize], dim: impl Int) -> Result<Vec<Tensor>> {
        called("split_sizes", &["self", "split_sizes", "dim"], || {
            let sum = || sizes.iter().try_fold(0usize, |sum, &size| sum.checked_add(size));
            if !self.as_ref().is_strided() && sum() == Some(self.dim(dim)?) {
                let mut parts = room_for_parts(sizes.len())?;
                let mut start = 0;
                for &size in sizes {
                    parts.push(self.narrow(dim, start, size)?);
                    start += size as i64;
                }
                return Ok(parts);
            }
            let sizes: SmallVec<[i64; 8]> = sizes.iter().map(|s| s.to_i64()).collect();
            DEF.run_all(&[self.into(), Arg::Ints(&sizes), Arg::Int(dim.to_i64())])
        })
    }

    /// Views of `size` consecutive indices of dimension `dim`; the last may be smaller.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::new([1, 2, 3])?;
    /// let parts = a.split(2, 0)?;
    /// assert_eq!(parts[1].to_vec::<i32>()?, [3]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A size of 0, a dimension out of range.
    pub fn split(&self, size: usize, dim: impl Int) -> Result<Vec<Tensor>> {
        called("split", &["self", "size", "dim"], || {
            let whole = self.dim(dim)?;
            if size == 0 && whole > 0 {
                return Err(Error::Value {
                    op: "split",
                    argument: "split_size",
                    expected: "1 or more".to_string(),
                    got: "0".to_string(),
                }
                .into());
            }
            let size = size.max(1);
            let count = whole.div_ceil(size).max(1);
            let mut sizes = host_vec(count)?;
            sizes.extend((0..count).map(|i| size.min(whole - i * size)));
            self.split_sizes(&sizes, dim)
        })
    }

    /// At most `chunks` views of equal size along dimension `dim`; the last may be smaller.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::new([1, 2, 3, 4, 5])?;
    /// assert_eq!(a.chunk(3, 0)?[2].to_vec::<i32>()?, [5]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A `chunks` of 0, a dimension out of range.
    pub fn chunk(&self, chunks: usize, dim: impl Int) -> Result<Vec<Tensor>> {
        called("chunk", &["self", "chunks", "dim"], || {
            if chunks == 0 {
                return Err(Error::Value {
                    op: "chunk",
                    argument: "chunks",
                    expected: "1 or more".to_string(),
                    got: "0".to_string(),
                }
                .into());
            }
            self.split(self.dim(dim)?.div_ceil(chunks), dim)
        })
    }

    /// Exactly `sections` views along dimension `dim`, whose sizes differ by at most 1, the larger ones first.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let parts = Tensor::new([1, 2, 3, 4, 5])?.tensor_split(3, 0)?;
    /// assert_eq!(parts[2].to_vec::<i32>()?, [5]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A `sections` of 0, a dimension out of range, a 0-d tensor.
    #[doc(alias = "array_split")]
    pub fn tensor_split(&self, sections: usize, dim: impl Int) -> Result<Vec<Tensor>> {
        called("tensor_split", &["self", "sections", "dim"], || {
            if sections == 0 {
                return Err(Error::Value {
                    op: "tensor_split",
                    argument: "sections",
                    expected: "1 or more".to_string(),
                    got: "0".to_string(),
                }
                .into());
            }
            let whole = self.dim(dim)?;
            let mut sizes = host_vec(sections)?;
            sizes.extend((0..sections).map(|k| whole / sections + usize::from(k < whole % sections)));
            self.split_sizes(&sizes, dim)
        })
    }

    /// Splits dimension `dim` into views at `indices`: from each index up to the next one, plus the parts before the first and
    /// from the last on. Negative indices count from the end; indices out of range are clamped.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let parts = Tensor::new([1, 2, 3, 4])?.tensor_split_at(&[1, -1], 0)?;
    /// assert_eq!(parts[1].to_vec::<i32>()?, [2, 3]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A dimension out of range, a 0-d tensor.
    #[doc(alias = "tensor_split")]
    pub fn tensor_split_at(&self, indices: &[i64], dim: impl Int) -> Result<Vec<Tensor>> {
        called("tensor_split_at", &["self", "indices", "dim"], || {
            if self.rank() == 0 {
                return self.split_sizes(&[1], dim);
            }
            let whole = self.dim(dim)? as i64;
            let bound = |i: i64| if i < 0 { i.saturating_add(whole) } else { i }.clamp(0, whole);
            let starts = std::iter::once(0).chain(indices.iter().map(|&i| bound(i)));
            let ends = indices.iter().map(|&i| bound(i)).chain([whole]);
            starts
                .zip(ends)
                .map(|(start, end)| self.narrow(dim, start, (end - start).max(0) as usize))
                .collect()
        })
    }
}

fn rule(args: &Args<'_>) -> RuleResult<Vec<ViewSpec>> {
    let t = args.tensor(0)?;
    let sizes = args.ints(1)?;
    if t.ndim() == 0 {
        let expected = "of one dimension at least".to_string();
        return Err(Error::Shape { op: args.name(), argument: "self", expected, got: Box::default() });
    }
    let dim = args.dim(2, t.ndim())?;
    let whole = t.sizes()[dim];
    let sum = sizes.iter().try_fold(0i64, |sum, &s| if s < 0 { None } else { sum.checked_add(s) });
    if sum != Some(whole as i64) {
        return Err(Error::Value {
            op: args.name(),
            argument: "split_sizes",
            expected: format!("sizes whose sum is {whole}, the size of dimension {dim}"),
            got: format!("{sizes:?}"),
        });
    }
    let mut at = 0;
    let part = |&size: &i64| {
        let mut part = Dims::from_slice(t.sizes());
        part[dim] = size as usize;
        let offset = t.offset() + if size > 0 { at * t.strides()[dim] } else { 0 };
        at += size as usize;
        ViewSpec { offset, sizes: part, strides: Some(Dims::from_slice(t.strides())) }
    };
    Ok(sizes.iter().map(part).collect())
}

fn samples() -> Vec<Sample> {
    let call = |n: &[usize], sizes: &[i64], dim| {
        sample([plain(n), SampleArg::Ints(sizes.to_vec()), SampleArg::Int(dim)])
    };
    vec![
        call(&[5], &[2, 3], 0),
        call(&[2, 4], &[1, 0, 3], -1),
        call(&[3, 2], &[3], 0),
        call(&[2, 3, 2], &[1, 2], 1),
        call(&[2, 3, 2, 2], &[1, 1], -1),
        call(&[2, 1, 2, 3, 2], &[2, 1], 3),
        call(&[0, 2], &[0], 0),
    ]
}

/// `split`
pub static DEF: OpDef = OpDef::new(
    "split(Tensor self, int[] split_sizes, int dim=0) -> Tensor[]",
    Rule::Views(rule),
    Derivative::of_grad(|b, g| {
        g.set(0, || {
            let (sizes, dim) = (b.ints(1)?, b.int(2)?);
            let whole = b.grad(0)?.new_uninit(b.sizes(0))?;
            let mut at = 0;
            for (i, &size) in sizes.iter().enumerate() {
                whole.slice(dim, Some(at), Some(at + size), 1)?.copy_(b.grad(i)?)?;
                at += size;
            }
            Ok(whole)
        })
    }),
    samples,
)
.errors(|| {
    vec![
        error([plain(&[3]), SampleArg::Ints(vec![1, 1]), SampleArg::Int(0)], "whose sum is 3"),
        error([plain(&[3]), SampleArg::Ints(vec![3]), SampleArg::Int(1)], "out of range"),
    ]
})
.with(OpFlags::COMPLEX);
