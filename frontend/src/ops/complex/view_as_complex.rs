//! `view_as_complex`

use crate::Tensor;
use crate::error::Result;
use crate::ops::def::{Derivative, Dtypes, OpDef, OpFlags};
use keyway_dispatcher::DType;
use keyway_dispatcher::dims::Dims;
use keyway_dispatcher::error::{Error, Result as RuleResult};
use keyway_dispatcher::op::{Args, Rule, ViewSpec};

impl Tensor {
    /// A view of an f32 or f64 tensor of shape `[.., 2]` as complex numbers of shape `[..]`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Complex, Tensor};
    /// let z = Tensor::new([[1.0f32, 2.0], [3.0, 4.0]])?.view_as_complex()?;
    /// assert_eq!(z.to_vec::<Complex<f32>>()?, [Complex::new(1.0, 2.0), Complex::new(3.0, 4.0)]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Another dtype; a last dimension of another size than 2, or of another stride than 1; an offset or another stride that is
    /// odd; host memory that is not aligned to a complex number. A contiguous copy has none of these but the first two.
    pub fn view_as_complex(&self) -> Result<Tensor> {
        DEF.run(&[self.into()])
    }

    /// [`Tensor::view_as_complex`] of this tensor if its memory allows it, otherwise of a copy.
    pub(crate) fn to_view_as_complex(&self) -> Result<Tensor> {
        let fits = self.rank() > 0
            && self.strides().last() == Some(&1)
            && self.strides()[..self.rank() - 1].iter().all(|stride| stride.is_multiple_of(2))
            && self.storage_offset().is_multiple_of(2);
        if fits { self.view_as_complex() } else { self.copy()?.contiguous()?.view_as_complex() }
    }
}

fn rule(args: &Args<'_>) -> RuleResult<(DType, ViewSpec)> {
    let t = args.tensor(0)?;
    let dtype = t.dtype();
    let complex = dtype.to_complex().filter(|_| !dtype.is_complex());
    super::super::rules::require(args, 0, dtype, complex.is_some(), "f32 or f64")?;
    let (mut sizes, mut strides) = (Dims::from_slice(t.sizes()), Dims::from_slice(t.strides()));
    let (last, step) = (sizes.pop(), strides.pop());
    if last != Some(2) {
        let expected = "a last dimension of size 2: real and imaginary part".to_string();
        return Err(Error::Shape { op: args.name(), argument: "self", expected, got: t.sizes().into() });
    }
    let even = strides.iter().chain([&t.offset()]).all(|n| n.is_multiple_of(2));
    if t.numel() > 0 && !(step == Some(1) && even) {
        return Err(Error::Value {
            op: args.name(),
            argument: "self",
            expected: "parts that are neighbours in memory: a last stride of 1, and other strides and an offset that are \
                       even; use `contiguous()`"
                .to_string(),
            got: format!("strides {:?}, offset {}", t.strides(), t.offset()),
        });
    }
    strides.iter_mut().for_each(|stride| *stride /= 2);
    Ok((complex.unwrap_or(dtype), ViewSpec { offset: t.offset() / 2, sizes, strides: Some(strides) }))
}

/// `view_as_complex`
pub static DEF: OpDef = OpDef::new(
    "view_as_complex(Tensor self) -> Tensor",
    Rule::Reinterpret(rule),
    Derivative::of_grad(|b, g| g.set(0, || b.grad(0)?.view_as_real())),
    Vec::new,
)
.dtypes(Dtypes::COMPLEX)
.with(OpFlags::COMPLEX);
