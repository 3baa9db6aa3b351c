//! Lists of tensors that a kernel processes in one pass, as a fused (foreach) optimizer step does.

use super::call::Call;
use super::dtype_size::dtype_size;
use super::error::Error;
use super::tensor::Tensor;
use std::ffi::c_void;
use std::ops::Range;

/// The tensors at one index of the lists, by the addresses of their first elements. All have `count` elements and are dense
/// with equal strides.
#[derive(Clone, Copy, Debug)]
pub struct Group<const W: usize> {
    /// The outputs, one of each changed list.
    pub changed: [*mut c_void; W],
    /// The read-only tensor.
    pub read: *const c_void,
    /// Elements of each.
    pub count: usize,
}

/// The result of [`Call::groups`].
#[derive(Debug)]
pub struct Groups<'a, const W: usize> {
    /// The groups, in the order of the lists.
    pub groups: Vec<Group<W>>,
    /// Pairs of argument and output without shared memory: the argument must be copied before outputs are changed in place.
    pub apart: Vec<(Tensor<'a>, Tensor<'a>)>,
}

fn refused<T>(what: &str) -> Result<T, Error> {
    Err(Error::Unsupported { what: what.to_string() })
}

/// The address range of a tensor; empty if it has no elements.
fn reach(t: &Tensor<'_>, size: usize) -> Range<usize> {
    let begin = t.data_ptr().addr();
    let last: i64 = t.sizes().iter().zip(t.strides()).map(|(&n, &s)| (n - 1).max(0) * s).sum();
    begin..begin + if t.numel() == 0 { 0 } else { (last as usize + 1) * size }
}

/// Whether the tensor is non-overlapping and dense, in any order of the dimensions.
fn is_dense(t: &Tensor<'_>) -> bool {
    let mut dims: Vec<_> = t.sizes().iter().zip(t.strides()).filter(|(size, _)| **size != 1).collect();
    dims.sort_by_key(|(_, stride)| **stride);
    let mut next = 1;
    t.numel() == 0
        || dims.into_iter().all(|(size, stride)| {
            let dense = *stride == next;
            next *= size;
            dense
        })
}

/// The address ranges of outputs, sorted.
struct Places(Vec<(Range<usize>, usize)>);

impl Places {
    /// The ranges of outputs; `None` if two of them overlap.
    fn new(outputs: &[Tensor<'_>], size: usize) -> Option<Places> {
        let mut all: Vec<_> = outputs.iter().map(|t| reach(t, size)).zip(0..).collect();
        all.retain(|(range, _)| !range.is_empty());
        all.sort_unstable_by_key(|(range, _)| range.start);
        all.windows(2).all(|pair| pair[0].0.end <= pair[1].0.start).then_some(Places(all))
    }

    /// Whether a range overlaps no output, or is exactly output `own`.
    fn allow(&self, range: &Range<usize>, own: Option<usize>) -> bool {
        let first = self.0.partition_point(|(place, _)| place.end <= range.start);
        match self.0.get(first) {
            Some((place, nth)) if !range.is_empty() => {
                range.end <= place.start || (Some(*nth) == own && place == range)
            }
            _ => true,
        }
    }
}

impl<'a> Call<'a> {
    /// The tensors of the list arguments `changed` and `read`, by their index in the lists, for a call whose outputs
    /// correspond to `changed`, list by list, of one dtype. No output shares memory with any tensor except its own
    /// argument.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for lists of different lengths, for tensors of one group that are not dense with equal
    /// strides, and for outputs that share memory; [`Error::InvalidArgument`] for arguments that are not lists.
    pub fn groups<const W: usize>(&self, changed: [usize; W], read: usize) -> Result<Groups<'a, W>, Error> {
        let reads = self.tensors(read)?;
        let count = reads.len();
        let outputs = (0..W * count).map(|nth| self.output(nth)).collect::<Result<Vec<_>, _>>()?;
        let size = outputs.first().and_then(|out| dtype_size(out.dtype())).unwrap_or(1);
        let shared = "tensors to change that share memory";
        let Some(places) = Places::new(&outputs, size) else { return refused(shared) };
        let mut made = Groups { groups: Vec::with_capacity(count), apart: Vec::new() };
        for (list, argument) in changed.into_iter().enumerate() {
            let own = self.tensors(argument)?;
            if own.len() != count {
                return refused("lists of different lengths");
            }
            for (t, number) in own.iter().zip(list * count..) {
                if !places.allow(&reach(&t, size), Some(number)) {
                    return refused(shared);
                }
                if t.data_ptr() != outputs[number].data_ptr() || t.strides() != outputs[number].strides() {
                    made.apart.push((t, self.output(number)?));
                }
            }
        }
        for (nth, t) in reads.iter().enumerate() {
            let outs: [&Tensor<'_>; W] = std::array::from_fn(|list| &outputs[list * count + nth]);
            if !is_dense(&t) || outs.iter().any(|out| out.strides() != t.strides()) {
                return refused("a parameter, its gradient and its state with different strides");
            }
            if !places.allow(&reach(&t, size), None) {
                return refused(shared);
            }
            let changed = outs.map(Tensor::data_ptr);
            made.groups.push(Group { changed, read: t.data_ptr(), count: t.numel() });
        }
        Ok(made)
    }
}
