//! The strides of results whose sizes are not those of an argument.

use crate::DType;
use keyway_dispatcher::dims::{Dims, channels_last_strides, dense_strides};
use keyway_dispatcher::error::{Error, Result};
use keyway_dispatcher::op::{Plan, Strides};
use keyway_dispatcher::tensor::TensorImpl;

/// Refuses sizes for which channels_last is undefined.
///
/// ```
/// use keyway::ops::rules;
/// assert!(rules::check_images("pool", "self", &[1, 2, 3, 4]).is_ok());
/// assert!(rules::check_images("pool", "self", &[3, 4]).is_err());
/// ```
///
/// # Errors
/// `Shape` unless there are 3, 4 or 5 dimensions.
pub fn check_images(op: &'static str, argument: &'static str, sizes: &[usize]) -> Result<()> {
    if (3..=5).contains(&sizes.len()) {
        return Ok(());
    }
    let expected = "of 3, 4 or 5 dimensions for channels_last".to_string();
    Err(Error::Shape { op, argument, expected, got: sizes.into() })
}

/// The strides of a result of these sizes: channels_last if `t` is and has as many dimensions, otherwise contiguous.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{MemoryFormat, Tensor, dispatcher::op::Strides, ops::rules};
/// let rows = Tensor::zeros((1, 2, 3, 4))?;
/// let last = rows.to(MemoryFormat::ChannelsLast)?;
/// assert_eq!(rules::kept(&rows.into_ref(), &[1, 2, 1, 1]), Strides::Contiguous);
/// assert!(matches!(rules::kept(&last.into_ref(), &[1, 2, 1, 1]), Strides::Exact(_)));
/// # Ok(()) }
/// ```
pub fn kept(t: &TensorImpl, sizes: &[usize]) -> Strides {
    let last = sizes.len() == t.ndim() && t.is_in_channels_last_order();
    if last { Strides::exact(channels_last_strides(sizes)) } else { Strides::Contiguous }
}

/// [`kept`], and if `t` has another dense order, such as that of a transposed matrix, strides in that order.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, dispatcher::op::Strides, ops::rules};
/// let x = Tensor::zeros((3, 4))?;
/// assert_eq!(rules::ordered(&x.into_ref(), &[2, 4]), Strides::Contiguous);
/// let transposed = Tensor::zeros((4, 3))?.t()?.into_ref();
/// assert!(matches!(rules::ordered(&transposed, &[2, 4]), Strides::Exact(strides) if strides[..] == [1, 2]));
/// # Ok(()) }
/// ```
pub fn ordered(t: &TensorImpl, sizes: &[usize]) -> Strides {
    match kept(t, sizes) {
        Strides::Contiguous if t.is_strided() && sizes.len() == t.ndim() => {
            dense_strides(sizes, t.strides()).map_or(Strides::Contiguous, Strides::exact)
        }
        strides => strides,
    }
}

/// The plan of one output with the strides of [`kept`].
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{DType, Tensor, ops::rules};
/// let x = Tensor::zeros((2, 3))?.into_ref();
/// let plan = rules::keeping(&x, DType::F32, rules::reduced_sizes(x.sizes(), 0b10, false), DType::I64);
/// assert_eq!((&plan.outputs[0].sizes[..], plan.outputs[0].dtype), (&[2][..], DType::I64));
/// # Ok(()) }
/// ```
pub fn keeping(t: &TensorImpl, compute: DType, sizes: Dims, dtype: DType) -> Plan {
    let strides = kept(t, &sizes);
    Plan::one(compute, sizes, dtype, strides)
}
