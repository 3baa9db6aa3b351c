//! Shape, dtype and memory-format rules that several ops share.

pub use super::formats::{check_images, keeping, kept, ordered};

use crate::DType;
use keyway_dispatcher::dims::{Dims, wrap_dim};
use keyway_dispatcher::dtype::Category;
use keyway_dispatcher::error::{Error, Result};
use keyway_dispatcher::op::{Arg, Args, Plan, Typing};

/// Argument 0 only.
pub const FIRST: u32 = 0b1;
/// Arguments 0 and 1.
pub const FIRST_TWO: u32 = 0b11;
/// Arguments 0, 1 and 2.
pub const FIRST_THREE: u32 = 0b111;

/// The plan of an op that is not element-wise, but whose result has the sizes, dtype and strides of argument 0 and may share
/// its memory.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{DType, Tensor, dispatcher::op::Args, ops::{pointwise, rules}};
/// let x = Tensor::new([1.0f32, 2.0])?;
/// let args = Args { op: pointwise::exp::DEF.entry()?, values: &[(&x).into()] };
/// let plan = rules::like_first(&args)?;
/// assert_eq!((&plan.outputs[0].sizes[..], plan.outputs[0].dtype), (&[2][..], DType::F32));
/// # Ok(()) }
/// ```
///
/// # Errors
/// No tensor.
pub fn like_first(args: &Args<'_>) -> Result<Plan> {
    Plan::elementwise(args, FIRST, unary(args)?)
}

/// The dtype rule of one argument; the result has its dtype.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{DType, Tensor, dispatcher::op::Args, ops::{pointwise, rules}};
/// let x = Tensor::new([1i64])?;
/// let args = Args { op: pointwise::neg::DEF.entry()?, values: &[(&x).into()] };
/// assert_eq!(rules::unary(&args)?.result, DType::I64);
/// # Ok(()) }
/// ```
pub fn unary(args: &Args<'_>) -> Result<Typing> {
    let dtype = args.tensor(0)?.dtype();
    Ok(Typing::of(dtype))
}

/// The dtype rule of one argument; integers and bool become f32.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{DType, Tensor, dispatcher::op::Args, ops::{pointwise, rules}};
/// let x = Tensor::new([1i64])?;
/// let args = Args { op: pointwise::exp::DEF.entry()?, values: &[(&x).into()] };
/// assert_eq!(rules::unary_float(&args)?.result, DType::F32);
/// # Ok(()) }
/// ```
pub fn unary_float(args: &Args<'_>) -> Result<Typing> {
    let dtype = float_of(args.tensor(0)?.dtype());
    Ok(Typing::of(dtype))
}

/// The dtype rule of one argument of any dtype but bool; the result has its dtype.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, dispatcher::op::Args, ops::{pointwise, rules}};
/// let x = Tensor::new([true])?;
/// let args = Args { op: pointwise::neg::DEF.entry()?, values: &[(&x).into()] };
/// assert!(rules::unary_number(&args).unwrap_err().to_string().contains("a number dtype"));
/// # Ok(()) }
/// ```
///
/// # Errors
/// `DType` for bool.
pub fn unary_number(args: &Args<'_>) -> Result<Typing> {
    let dtype = args.tensor(0)?.dtype();
    require(args, 0, dtype, dtype != DType::BOOL, "a number dtype")?;
    Ok(Typing::of(dtype))
}

/// The dtype rule of one float argument; the result has its dtype.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, dispatcher::op::Args, ops::{pointwise, rules}};
/// let x = Tensor::new([1i64])?;
/// let args = Args { op: pointwise::exp::DEF.entry()?, values: &[(&x).into()] };
/// assert!(rules::unary_real(&args).unwrap_err().to_string().contains("a floating-point dtype"));
/// # Ok(()) }
/// ```
///
/// # Errors
/// `DType` for other dtypes.
pub fn unary_real(args: &Args<'_>) -> Result<Typing> {
    let dtype = args.tensor(0)?.dtype();
    let allowed = !matches!(dtype.category(), Category::Bool | Category::Integer | Category::Complex);
    require(args, 0, dtype, allowed, "a floating-point dtype")?;
    Ok(Typing::of(dtype))
}

/// The dtype rule of one integer or bool argument; the result has its dtype.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{DType, Tensor, dispatcher::op::Args, ops::{pointwise, rules}};
/// let x = Tensor::new([1i64])?;
/// let args = Args { op: pointwise::bitwise_not::DEF.entry()?, values: &[(&x).into()] };
/// assert_eq!(rules::unary_integral(&args)?.result, DType::I64);
/// # Ok(()) }
/// ```
///
/// # Errors
/// `DType` for floats.
pub fn unary_integral(args: &Args<'_>) -> Result<Typing> {
    let dtype = args.tensor(0)?.dtype();
    let allowed = matches!(dtype.category(), Category::Bool | Category::Integer);
    require(args, 0, dtype, allowed, "an integer dtype or bool")?;
    Ok(Typing::of(dtype))
}

/// The dtype rule of one argument, read in its own dtype; the result is bool.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{DType, Tensor, dispatcher::op::Args, ops::{pointwise, rules}};
/// let x = Tensor::new([1.0f32])?;
/// let args = Args { op: pointwise::isnan::DEF.entry()?, values: &[(&x).into()] };
/// let typing = rules::predicate(&args)?;
/// assert_eq!((typing.compute, typing.result), (DType::F32, DType::BOOL));
/// # Ok(()) }
/// ```
pub fn predicate(args: &Args<'_>) -> Result<Typing> {
    Ok(Typing { compute: args.tensor(0)?.dtype(), result: DType::BOOL })
}

/// The dtype rule of two promoted arguments.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{DType, Tensor, dispatcher::op::Args, ops::{pointwise, rules}};
/// let (x, y) = (Tensor::new([1i64])?, Tensor::new([1.0f32])?);
/// let args = Args { op: pointwise::mul::DEF.entry()?, values: &[(&x).into(), (&y).into()] };
/// assert_eq!(rules::binary(&args)?.result, DType::F32);
/// # Ok(()) }
/// ```
pub fn binary(args: &Args<'_>) -> Result<Typing> {
    let dtype = args.promote(FIRST_TWO)?;
    Ok(Typing::of(dtype))
}

/// The dtype rule of two promoted arguments and a factor in argument 2, which must be an integer if they are.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{DType, Tensor, dispatcher::op::Args, ops::{pointwise, rules}};
/// let x = Tensor::new([1i64])?;
/// let args = |factor| [(&x).into(), (&x).into(), factor];
/// let op = pointwise::add::DEF.entry()?;
/// assert_eq!(rules::binary_scaled(&Args { op, values: &args(2.into()) })?.result, DType::I64);
/// assert!(rules::binary_scaled(&Args { op, values: &args(0.5.into()) }).is_err());
/// # Ok(()) }
/// ```
///
/// # Errors
/// Those of [`whole_factor`].
pub fn binary_scaled(args: &Args<'_>) -> Result<Typing> {
    let dtype = args.promote(FIRST_TWO)?;
    whole_factor(args, 2, dtype)?;
    Ok(Typing::of(dtype))
}

/// The dtype rule of two promoted arguments; integers and bool become f32.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{DType, Tensor, dispatcher::op::Args, ops::{pointwise, rules}};
/// let (x, y) = (Tensor::new([1i64])?, Tensor::new([1i64])?);
/// let args = Args { op: pointwise::mul::DEF.entry()?, values: &[(&x).into(), (&y).into()] };
/// assert_eq!(rules::binary_float(&args)?.result, DType::F32);
/// # Ok(()) }
/// ```
pub fn binary_float(args: &Args<'_>) -> Result<Typing> {
    let dtype = float_of(args.promote(FIRST_TWO)?);
    Ok(Typing::of(dtype))
}

/// The dtype rule of two arguments that promote to a float dtype.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, dispatcher::op::Args, ops::{pointwise, rules}};
/// let (x, y) = (Tensor::new([1i64])?, Tensor::new([1i64])?);
/// let args = Args { op: pointwise::mul::DEF.entry()?, values: &[(&x).into(), (&y).into()] };
/// assert!(rules::binary_real(&args).is_err());
/// # Ok(()) }
/// ```
///
/// # Errors
/// `DType` for other promoted dtypes.
pub fn binary_real(args: &Args<'_>) -> Result<Typing> {
    let dtype = args.promote(FIRST_TWO)?;
    let allowed = !matches!(dtype.category(), Category::Bool | Category::Integer | Category::Complex);
    require(args, 0, dtype, allowed, "a floating-point dtype")?;
    Ok(Typing::of(dtype))
}

/// The dtype rule of two promoted arguments, a scalar one of which must be in the range of the integer dtype: the result is
/// computed from it, or may equal it.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, dispatcher::op::Args, ops::{pointwise, rules}};
/// let x = Tensor::new([1u8])?;
/// let args = Args { op: pointwise::mul::DEF.entry()?, values: &[(&x).into(), 300.into()] };
/// assert!(rules::binary_held(&args).unwrap_err().to_string().contains("from 0 to 255"));
/// # Ok(()) }
/// ```
///
/// # Errors
/// `Value` for a number out of range.
pub fn binary_held(args: &Args<'_>) -> Result<Typing> {
    let dtype = args.promote(FIRST_TWO)?;
    holds(args, 0, dtype)?;
    holds(args, 1, dtype)?;
    Ok(Typing::of(dtype))
}

/// The dtype rule of a comparison: two promoted arguments; the result is bool. A number out of the range of the integer dtype
/// is compared in a wider one.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{DType, Tensor, dispatcher::op::Args, ops::{pointwise, rules}};
/// let (x, y) = (Tensor::new([1i64])?, Tensor::new([1.0f32])?);
/// let args = Args { op: pointwise::mul::DEF.entry()?, values: &[(&x).into(), (&y).into()] };
/// let typing = rules::comparison(&args)?;
/// assert_eq!((typing.compute, typing.result), (DType::F32, DType::BOOL));
/// # Ok(()) }
/// ```
pub fn comparison(args: &Args<'_>) -> Result<Typing> {
    let dtype = args.promote(FIRST_TWO)?;
    let compute = match (is_held(args.get(0), dtype) && is_held(args.get(1), dtype), dtype) {
        (true, _) => dtype,
        // No integer dtype holds both u64 and negative values; f64 preserves the sign of a number.
        (false, DType::U64) => DType::F64,
        (false, _) => DType::I64,
    };
    Ok(Typing { compute, result: DType::BOOL })
}

/// [`comparison`] by order.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Complex, Tensor, dispatcher::op::Args, ops::{pointwise, rules}};
/// let z = Tensor::new([Complex::new(1.0f32, 2.0)])?;
/// let args = Args { op: pointwise::lt::DEF.entry()?, values: &[(&z).into(), (&z).into()] };
/// assert!(rules::ordering(&args).unwrap_err().to_string().contains("have no order"));
/// # Ok(()) }
/// ```
///
/// # Errors
/// `DType` for complex numbers.
pub fn ordering(args: &Args<'_>) -> Result<Typing> {
    let typing = comparison(args)?;
    has_order(args, 0, typing.compute)?;
    Ok(typing)
}

/// Refuses complex numbers.
///
/// # Errors
/// `DType`.
pub(crate) fn has_order(args: &Args<'_>, i: usize, dtype: DType) -> Result<()> {
    require(
        args,
        i,
        dtype,
        !dtype.is_complex(),
        "a real dtype, as complex numbers have no order; use `abs()` or `real()`",
    )
}

/// Whether the dtype is not an integer dtype, or the truncated number is in its range.
pub(crate) fn is_held(arg: Arg<'_>, dtype: DType) -> bool {
    let Some((low, high)) = dtype.integer_range().filter(|_| dtype.is_integer()) else { return true };
    match arg {
        Arg::Int(v) => (low..=high).contains(&i128::from(v)),
        // Beyond 2^64 the cast saturates out of range; NaN would become 0.
        Arg::Float(v) => !v.is_nan() && (low..=high).contains(&(v as i128)),
        _ => true,
    }
}

/// Refuses a number in argument `i` that is out of the range of the integer dtype, since storing it would change it. Fractions
/// are truncated.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{DType, Tensor, dispatcher::op::Args, ops::{pointwise, rules}};
/// let x = Tensor::new([1u8])?;
/// let args = Args { op: pointwise::mul::DEF.entry()?, values: &[(&x).into(), 300.into()] };
/// assert!(rules::holds(&args, 1, DType::U8).is_err());
/// assert!(rules::holds(&args, 1, DType::I16).is_ok());
/// # Ok(()) }
/// ```
///
/// # Errors
/// `Value` for a number out of range.
pub fn holds(args: &Args<'_>, i: usize, dtype: DType) -> Result<()> {
    match dtype.integer_range() {
        Some((low, high)) if !is_held(args.get(i), dtype) => {
            Err(wrong_value(args, i, format!("a number that {dtype} holds, from {low} to {high}")))
        }
        _ => Ok(()),
    }
}

/// The compute dtype of an op with real-valued results.
///
/// ```
/// use keyway::{DType, ops::rules};
/// assert_eq!((rules::float_of(DType::I64), rules::float_of(DType::F16)), (DType::F32, DType::F16));
/// ```
pub fn float_of(dtype: DType) -> DType {
    if matches!(dtype.category(), Category::Bool | Category::Integer) { DType::F32 } else { dtype }
}

/// The dtype by which the kernel of a cast is selected: the output dtype, since kernels read every built-in dtype. Only a
/// plugin's kernels know the plugin's dtypes, so a plugin input dtype takes precedence over a built-in output dtype.
///
/// ```
/// use keyway::{DType, ops::rules};
/// assert_eq!(rules::conversion_key(DType::F32, DType::I64), DType::I64);
/// ```
pub fn conversion_key(from: DType, to: DType) -> DType {
    if to.is_built_in() && !from.is_built_in() { from } else { to }
}

/// Refuses a dtype that the op does not support.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{DType, Tensor, dispatcher::op::Args, ops::{pointwise, rules}};
/// let x = Tensor::new([1i64])?;
/// let args = Args { op: pointwise::exp::DEF.entry()?, values: &[(&x).into()] };
/// let error = rules::require(&args, 0, DType::I64, false, "a float").unwrap_err();
/// assert!(error.to_string().contains("a float"));
/// # Ok(()) }
/// ```
///
/// # Errors
/// `DType` if `allowed` is false.
pub fn require(args: &Args<'_>, i: usize, dtype: DType, allowed: bool, expected: &'static str) -> Result<()> {
    if allowed {
        return Ok(());
    }
    Err(Error::DType {
        op: args.name(),
        argument: args.op.schema.param_name(i),
        expected: expected.to_string(),
        got: dtype,
    })
}

/// Refuses a fractional factor of integers: it would be rounded, or change the dtype of the result.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{DType, Tensor, dispatcher::op::Args, ops::{pointwise, rules}};
/// let x = Tensor::new([1i64])?;
/// let args = Args { op: pointwise::mul::DEF.entry()?, values: &[(&x).into(), 0.5.into()] };
/// assert!(rules::whole_factor(&args, 1, DType::I64).is_err());
/// assert!(rules::whole_factor(&args, 1, DType::F32).is_ok());
/// # Ok(()) }
/// ```
///
/// # Errors
/// `Value` for a fraction.
pub fn whole_factor(args: &Args<'_>, i: usize, dtype: DType) -> Result<()> {
    match args.get(i) {
        Arg::Float(_) if !dtype.is_inexact() => {
            Err(wrong_value(args, i, "an integer where the operands are integers".to_string()))
        }
        _ => Ok(()),
    }
}

/// An error about the shape of argument `i`.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, dispatcher::op::Args, ops::{pointwise, rules}};
/// let x = Tensor::new([1.0f32])?;
/// let args = Args { op: pointwise::exp::DEF.entry()?, values: &[(&x).into()] };
/// let error = rules::wrong_shape(&args, 0, "a matrix".to_string(), &[1]);
/// assert!(error.to_string().contains("a matrix"));
/// # Ok(()) }
/// ```
pub fn wrong_shape(args: &Args<'_>, i: usize, expected: String, got: &[usize]) -> Error {
    let argument = args.op.schema.param_name(i);
    Error::Shape { op: args.name(), argument, expected, got: got.into() }
}

/// An error about the value of argument `i`.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, dispatcher::op::Args, ops::{pointwise, rules}};
/// let x = Tensor::new([1i64])?;
/// let args = Args { op: pointwise::mul::DEF.entry()?, values: &[(&x).into(), 7.into()] };
/// let error = rules::wrong_value(&args, 1, "an even number".to_string());
/// assert!(error.to_string().contains("an even number"));
/// # Ok(()) }
/// ```
pub fn wrong_value(args: &Args<'_>, i: usize, expected: String) -> Error {
    let argument = args.op.schema.param_name(i);
    Error::Value { op: args.name(), argument, expected, got: args.get(i).describe() }
}

/// The dimensions of a reduction as a mask of `ndim` bits: those in argument `i`, or all if it is missing or empty.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Arg, Tensor, dispatcher::op::Args, ops::{reduce, rules}};
/// let x = Tensor::zeros((2, 3))?;
/// let args = Args { op: reduce::sum::DEF.entry()?, values: &[(&x).into(), Arg::Ints(&[1, -1])] };
/// assert_eq!(rules::reduced_dims(&args, 1, 3)?, 0b110);
/// # Ok(()) }
/// ```
///
/// # Errors
/// `Dim` for a dimension out of range; `Value` for a duplicate.
pub fn reduced_dims(args: &Args<'_>, i: usize, ndim: usize) -> Result<u64> {
    let dims = args.optional_ints(i)?.unwrap_or(&[]);
    if dims.is_empty() {
        return Ok(all_dims(ndim));
    }
    let mut mask = 0u64;
    for &dim in dims {
        let bit = 1 << wrap_dim(args.name(), dim, ndim)?;
        if mask & bit != 0 {
            return Err(Error::Value {
                op: args.name(),
                argument: args.op.schema.param_name(i),
                expected: "different dimensions".to_string(),
                got: format!("{dims:?}"),
            });
        }
        mask |= bit;
    }
    Ok(mask)
}

fn all_dims(ndim: usize) -> u64 {
    if ndim >= 64 { u64::MAX } else { (1 << ndim) - 1 }
}

/// The dimensions as [`reduced_dims`], of an argument that was already checked: one dimension, a list, or all if there is
/// none.
pub(crate) fn reduced_by(op: &'static str, dims: Arg<'_>, ndim: usize) -> Result<u64> {
    match dims {
        Arg::Ints(list) if !list.is_empty() => {
            list.iter().try_fold(0, |mask, &dim| Ok(mask | (1 << wrap_dim(op, dim, ndim)?)))
        }
        Arg::Int(dim) => Ok(1 << wrap_dim(op, dim, ndim)?),
        _ => Ok(all_dims(ndim)),
    }
}

/// [`reduced_dims`] of a single dimension in argument `i`, or all if it is missing.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Arg, Tensor, dispatcher::op::Args, ops::{reduce, rules}};
/// let x = Tensor::zeros((2, 3))?;
/// let args = Args { op: reduce::sum::DEF.entry()?, values: &[(&x).into(), Arg::Int(-1)] };
/// assert_eq!(rules::reduced_dim(&args, 1, 3)?, 0b100);
/// # Ok(()) }
/// ```
///
/// # Errors
/// `Dim` for a dimension out of range.
pub fn reduced_dim(args: &Args<'_>, i: usize, ndim: usize) -> Result<u64> {
    match args.optional_int(i)? {
        Some(dim) => Ok(1 << wrap_dim(args.name(), dim, ndim)?),
        None => Ok(if ndim >= 64 { u64::MAX } else { (1 << ndim) - 1 }),
    }
}

/// Refuses a reduction of no elements, for ops that have no identity.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Arg, Tensor, dispatcher::op::Args, ops::{reduce, rules}};
/// let x = Tensor::zeros((2, 3))?;
/// let args = Args { op: reduce::sum::DEF.entry()?, values: &[(&x).into(), Arg::Ints(&[0])] };
/// assert!(rules::not_empty(&args, &[2, 0], 0b01).is_ok());
/// assert!(rules::not_empty(&args, &[2, 0], 0b10).is_err());
/// # Ok(()) }
/// ```
///
/// # Errors
/// `Shape` for an empty reduction with a non-empty result.
pub fn not_empty(args: &Args<'_>, sizes: &[usize], mask: u64) -> Result<()> {
    let empty = |(i, &size): (usize, &usize)| size == 0 && mask >> i & 1 != 0;
    let some_output = reduced_sizes(sizes, mask, false).iter().all(|&size| size > 0);
    if some_output && sizes.iter().enumerate().any(empty) {
        return Err(Error::Shape {
            op: args.name(),
            argument: args.op.schema.param_name(0),
            expected: "not empty in the dimensions that are reduced".to_string(),
            got: sizes.into(),
        });
    }
    Ok(())
}

/// The shape after a reduction over the dimensions in `mask`.
///
/// ```
/// use keyway::ops::rules;
/// assert_eq!(rules::reduced_sizes(&[2, 3, 4], 0b010, false)[..], [2, 4]);
/// assert_eq!(rules::reduced_sizes(&[2, 3, 4], 0b010, true)[..], [2, 1, 4]);
/// ```
pub fn reduced_sizes(sizes: &[usize], mask: u64, keepdim: bool) -> Dims {
    let mut out = Dims::new();
    for (i, &size) in sizes.iter().enumerate() {
        if mask & (1 << i) == 0 {
            out.push(size);
        } else if keepdim {
            out.push(1);
        }
    }
    out
}

/// The number of elements that a reduction over the dimensions in `mask` combines into one.
///
/// ```
/// use keyway::ops::rules;
/// assert_eq!(rules::reduced_count(&[2, 3, 4], 0b110), 12);
/// ```
pub fn reduced_count(sizes: &[usize], mask: u64) -> usize {
    sizes.iter().enumerate().filter(|(i, _)| mask & (1 << i) != 0).map(|(_, size)| size).product()
}

/// Resolves the sizes in integer list argument `i` for `numel` elements and appends them to `sizes`, which is empty; at most
/// one is -1, which is inferred.
///
/// # Errors
/// `Value` if the sizes do not match `numel`.
// An output parameter, since moving a list that was just written is slow.
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::dispatcher::dims::Dims;
/// use keyway::{Arg, Tensor, dispatcher::op::Args, ops::{reduce, rules}};
/// let x = Tensor::zeros((2, 3))?;
/// let args = Args { op: reduce::sum::DEF.entry()?, values: &[(&x).into(), Arg::Ints(&[2, -1])] };
/// let mut sizes = Dims::new();
/// rules::resolve_sizes(&args, 1, 6, &mut sizes)?;
/// assert_eq!(sizes[..], [2, 3]);
/// # Ok(()) }
/// ```
#[inline]
pub fn resolve_sizes(args: &Args<'_>, i: usize, numel: usize, sizes: &mut Dims) -> Result<()> {
    let given = args.ints(i)?;
    let wrong = |expected: String| wrong_value(args, i, expected);
    let mut unknown = None;
    for (k, &wanted) in given.iter().enumerate() {
        sizes.push(match wanted {
            0.. => wanted as usize,
            -1 if unknown.is_none() => {
                unknown = Some(k);
                1
            }
            _ => return Err(wrong("sizes of 0 or more, with at most one -1".to_string())),
        });
    }
    // The inferred size counts as 1 here.
    let product = keyway_dispatcher::dims::numel(args.name(), sizes)?;
    if let Some(at) = unknown {
        if product == 0 || !numel.is_multiple_of(product) {
            return Err(wrong(format!("sizes whose product divides the {numel} elements")));
        }
        sizes[at] = numel / product;
    } else if product != numel {
        return Err(wrong(format!("sizes whose product is the {numel} elements")));
    }
    Ok(())
}
