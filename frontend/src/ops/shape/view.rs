//! `view`
//!
//! Arguments:
//! - `size`: the sizes of the result; one may be -1 and is inferred.

use crate::Tensor;
use crate::error::Result;
use crate::ops::def::{Derivative, OpDef, OpFlags};
use crate::ops::rules::resolve_sizes;
use crate::ops::sample::{Sample, SampleArg, error, plain, sample};
use crate::tensor::IntoShape;
use keyway_dispatcher::dims::{Dims, contiguous_strides};
use keyway_dispatcher::error::{Error, Result as RuleResult};
use keyway_dispatcher::op::{Arg, Args, Rule, ViewSpec};
use keyway_dispatcher::tensor::TensorRef;

impl Tensor {
    /// Reshapes the tensor without a copy. One size may be -1 and is inferred.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::new([1, 2, 3, 4, 5, 6])?;
    /// assert_eq!(a.view((2, -1))?.shape(), [2, 3]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Sizes of another number of elements, or strides that no view can express; `reshape` copies then.
    pub fn view(&self, shape: impl IntoShape) -> Result<Tensor> {
        DEF.run(&[self.into(), Arg::Ints(&shape.into_ints())])
    }
}

/// The strides of a view with other sizes, if it exists: each group of old dimensions that are contiguous with each other
/// may be split differently.
pub(crate) fn view_strides(sizes: &[usize], strides: &[usize], new: &[usize]) -> Option<Dims> {
    if sizes.contains(&0) || new.contains(&0) {
        return Some(contiguous_strides(new));
    }
    let mut out = Dims::from_elem(1, new.len());
    let mut at = new.len();
    let mut group = 1usize;
    let mut base = 1usize;
    let mut next_base = *strides.last().unwrap_or(&1);
    for i in (0..sizes.len()).rev() {
        if group == 1 {
            base = next_base;
        }
        group *= sizes[i];
        let last = i == 0;
        let breaks = last || (sizes[i - 1] != 1 && strides[i - 1] != group * base);
        if breaks {
            let mut made = 1usize;
            while at > 0 && (made < group || new[at - 1] == 1) {
                at -= 1;
                out[at] = made * base;
                made *= new[at];
            }
            if made != group {
                return None;
            }
            group = 1;
            if !last {
                next_base = strides[i - 1];
            }
        }
    }
    // Only sizes of 1 may remain, as for a 0-d tensor.
    if new[..at].iter().any(|&s| s != 1) { None } else { Some(out) }
}

fn rule(args: &Args<'_>) -> RuleResult<ViewSpec> {
    let t = args.tensor(0)?;
    let mut made = Ok(ViewSpec { offset: t.offset(), sizes: Dims::new(), strides: None });
    if let Ok(spec) = &mut made
        && let Err(error) = fill(args, t, spec)
    {
        made = Err(error);
    }
    made
}

/// Writes the sizes, and the strides unless `t` is contiguous.
fn fill(args: &Args<'_>, t: &TensorRef, spec: &mut ViewSpec) -> RuleResult<()> {
    resolve_sizes(args, 1, t.numel(), &mut spec.sizes)?;
    if t.is_contiguous() {
        return Ok(());
    }
    spec.strides = view_strides(t.sizes(), t.strides(), &spec.sizes);
    match spec.strides {
        Some(_) => Ok(()),
        None => Err(Error::Value {
            op: "view",
            argument: "size",
            expected: format!(
                "sizes that shape {:?} with strides {:?} can be seen in without a copy; use `reshape`",
                t.sizes(),
                t.strides()
            ),
            got: format!("{:?}", spec.sizes),
        }),
    }
}

fn samples() -> Vec<Sample> {
    let call = |sizes: &[usize], to: &[i64]| sample([plain(sizes), SampleArg::Ints(to.to_vec())]);
    vec![
        call(&[6], &[2, 3]),
        call(&[2, 3, 4], &[-1, 4]),
        call(&[2, 3, 2, 2], &[-1, 2, 2]),
        call(&[2, 1, 2, 3, 2], &[4, 3, 2]),
        call(&[0, 3], &[3, 0]),
        call(&[], &[1, 1]),
        call(&[1], &[]),
    ]
}

/// `view`
pub static DEF: OpDef = OpDef::new(
    "view(Tensor self, int[] size) -> Tensor",
    Rule::View(rule),
    Derivative::of_grad(|b, g| g.set(0, || b.grad(0)?.reshape_as_sizes(b.sizes(0)))),
    samples,
)
.errors(|| vec![error([plain(&[6]), SampleArg::Ints(vec![4, 2])], "product is the 6")])
.with(OpFlags::STRIDE_DEPENDENT)
.with(OpFlags::COMPLEX);

#[cfg(test)]
mod tests {
    use super::view_strides;

    #[test]
    fn strides_of_views() {
        assert_eq!(view_strides(&[2, 3], &[3, 1], &[6]).unwrap().as_slice(), [1]);
        assert_eq!(view_strides(&[3, 2], &[1, 3], &[6]), None);
        assert_eq!(view_strides(&[4, 6], &[12, 1], &[2, 2, 3, 2]).unwrap().as_slice(), [24, 12, 2, 1]);
        assert_eq!(view_strides(&[], &[], &[1, 1]).unwrap().len(), 2);
        assert_eq!(view_strides(&[1, 5], &[7, 1], &[5]).unwrap().as_slice(), [1]);
    }
}
