//! `view_as_real`

use crate::Tensor;
use crate::error::Result;
use crate::ops::def::{Derivative, Dtypes, OpDef, OpFlags};
use keyway_dispatcher::DType;
use keyway_dispatcher::dims::Dims;
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Args, Rule, ViewSpec};

impl Tensor {
    /// A view of a complex tensor of shape `[..]` as real numbers of shape `[.., 2]`: real and imaginary parts.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Complex, Tensor};
    /// let z = Tensor::new([Complex::new(1.0f32, 2.0)])?;
    /// assert_eq!(z.view_as_real()?.to_vec::<f32>()?, [1.0, 2.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A real tensor, or one that is not strided.
    pub fn view_as_real(&self) -> Result<Tensor> {
        DEF.run(&[self.into()])
    }
}

fn rule(args: &Args<'_>) -> RuleResult<(DType, ViewSpec)> {
    let dtype = super::require_complex(args)?;
    let t = args.tensor(0)?;
    let mut sizes = Dims::from_slice(t.sizes());
    let mut strides: Dims = t.strides().iter().map(|stride| stride.saturating_mul(2)).collect();
    sizes.push(2);
    strides.push(1);
    Ok((dtype.to_real(), ViewSpec { offset: 2 * t.offset(), sizes, strides: Some(strides) }))
}

/// `view_as_real`
pub static DEF: OpDef = OpDef::new(
    "view_as_real(Tensor self) -> Tensor",
    Rule::Reinterpret(rule),
    Derivative::of_grad(|b, g| g.set(0, || b.grad(0)?.to_view_as_complex())),
    Vec::new,
)
.dtypes(Dtypes::COMPLEX)
.with(OpFlags::COMPLEX);
