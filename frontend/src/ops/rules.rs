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

/// The plan of an op that is not element-wise, but whose result is like argument 0 and may lie where that does.
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

/// One argument, the result of its dtype.
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

/// One argument; integers and bool become f32.
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

/// One argument, of any dtype but bool; the result of its dtype.
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
/// `DType`.
pub fn unary_number(args: &Args<'_>) -> Result<Typing> {
    let dtype = args.tensor(0)?.dtype();
    require(args, 0, dtype, dtype != DType::BOOL, "a number dtype")?;
    Ok(Typing::of(dtype))
}

/// One argument, of a float dtype; the result of its dtype.
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
/// `DType`.
pub fn unary_real(args: &Args<'_>) -> Result<Typing> {
    let dtype = args.tensor(0)?.dtype();
    let allowed = !matches!(dtype.category(), Category::Bool | Category::Integer);
    require(args, 0, dtype, allowed, "a floating-point dtype")?;
    Ok(Typing::of(dtype))
}

/// One argument, of an integer dtype or bool; the result of its dtype.
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
/// `DType`.
pub fn unary_integral(args: &Args<'_>) -> Result<Typing> {
    let dtype = args.tensor(0)?.dtype();
    let allowed = matches!(dtype.category(), Category::Bool | Category::Integer);
    require(args, 0, dtype, allowed, "an integer dtype or bool")?;
    Ok(Typing::of(dtype))
}

/// One argument, taken in its own dtype; the result is bool.
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

/// Two arguments, promoted.
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

/// Two arguments, promoted; integers and bool become f32.
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

/// Two arguments, promoted to a float dtype.
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
/// `DType`.
pub fn binary_real(args: &Args<'_>) -> Result<Typing> {
    let dtype = args.promote(FIRST_TWO)?;
    let allowed = !matches!(dtype.category(), Category::Bool | Category::Integer);
    require(args, 0, dtype, allowed, "a floating-point dtype")?;
    Ok(Typing::of(dtype))
}

/// Two arguments, promoted; a number must be one that the integer dtype holds: the result is computed from it, or is it.
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
/// `Value`.
pub fn binary_held(args: &Args<'_>) -> Result<Typing> {
    let dtype = args.promote(FIRST_TWO)?;
    holds(args, 0, dtype)?;
    holds(args, 1, dtype)?;
    Ok(Typing::of(dtype))
}

/// Two arguments, promoted for the comparison; the result is bool. A number that the integer dtype does not hold is compared
/// in a wider one.
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
        // No integer dtype holds it and a negative number; which side of 0 a number lies on, f64 knows.
        (false, DType::U64) => DType::F64,
        (false, _) => DType::I64,
    };
    Ok(Typing { compute, result: DType::BOOL })
}

/// Whether the dtype is no integer, or holds a number, its fraction left away.
pub(crate) fn is_held(arg: Arg<'_>, dtype: DType) -> bool {
    let Some((low, high)) = dtype.integer_range().filter(|_| dtype.is_integer()) else { return true };
    match arg {
        Arg::Int(v) => (low..=high).contains(&i128::from(v)),
        // Beyond 2^64 the cast stays beyond; NaN becomes 0.
        Arg::Float(v) => !v.is_nan() && (low..=high).contains(&(v as i128)),
        _ => true,
    }
}

/// Refuses a number in argument `i` that the integer dtype does not hold: stored there, it would be another one. A fraction
/// is left away.
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
/// `Value`.
pub fn holds(args: &Args<'_>, i: usize, dtype: DType) -> Result<()> {
    match dtype.integer_range() {
        Some((low, high)) if !is_held(args.get(i), dtype) => {
            Err(wrong_value(args, i, format!("a number that {dtype} holds, from {low} to {high}")))
        }
        _ => Ok(()),
    }
}

/// The dtype in which an op that gives real numbers computes.
///
/// ```
/// use keyway::{DType, ops::rules};
/// assert_eq!((rules::float_of(DType::I64), rules::float_of(DType::F16)), (DType::F32, DType::F16));
/// ```
pub fn float_of(dtype: DType) -> DType {
    if matches!(dtype.category(), Category::Bool | Category::Integer) { DType::F32 } else { dtype }
}

/// The dtype that the kernel of a cast is chosen by: the one that it makes, as it reads every built-in dtype; but a
/// plugin's dtype is known to its own kernels alone, so one that is read comes before a built-in one that is made.
///
/// ```
/// use keyway::{DType, ops::rules};
/// assert_eq!(rules::conversion_key(DType::F32, DType::I64), DType::I64);
/// ```
pub fn conversion_key(from: DType, to: DType) -> DType {
    if to.is_built_in() && !from.is_built_in() { from } else { to }
}

/// Refuses a dtype that the op does not make sense for.
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
/// `DType`.
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

/// A factor of integers is an integer: a fraction would be rounded, or the result be no longer of their dtype.
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
/// `Value`.
pub fn whole_factor(args: &Args<'_>, i: usize, dtype: DType) -> Result<()> {
    match args.get(i) {
        Arg::Float(_) if !dtype.is_float() => {
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

/// The dimensions that a reduction runs over, as a mask of `ndim` bits: those in argument `i`, or all where
/// it was not given or is empty.
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
/// `Dim`; `Value` for a dimension that comes twice.
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

/// As [`reduced_dims`], of the argument of a call that was checked: one dimension, a list, or all where there is none.
pub(crate) fn reduced_by(op: &'static str, dims: Arg<'_>, ndim: usize) -> Result<u64> {
    match dims {
        Arg::Ints(list) if !list.is_empty() => {
            list.iter().try_fold(0, |mask, &dim| Ok(mask | (1 << wrap_dim(op, dim, ndim)?)))
        }
        Arg::Int(dim) => Ok(1 << wrap_dim(op, dim, ndim)?),
        _ => Ok(all_dims(ndim)),
    }
}

/// [`reduced_dims`] of one dimension in argument `i`, or all where it was not given.
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
/// `Dim`.
pub fn reduced_dim(args: &Args<'_>, i: usize, ndim: usize) -> Result<u64> {
    match args.optional_int(i)? {
        Some(dim) => Ok(1 << wrap_dim(args.name(), dim, ndim)?),
        None => Ok(if ndim >= 64 { u64::MAX } else { (1 << ndim) - 1 }),
    }
}

/// Refuses a reduction of no elements, for ops that have no answer to it.
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
/// `Shape`.
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

/// How many elements a reduction over the dimensions in `mask` makes one of.
///
/// ```
/// use keyway::ops::rules;
/// assert_eq!(rules::reduced_count(&[2, 3, 4], 0b110), 12);
/// ```
pub fn reduced_count(sizes: &[usize], mask: u64) -> usize {
    sizes.iter().enumerate().filter(|(i, _)| mask & (1 << i) != 0).map(|(_, size)| size).product()
}

/// Writes the sizes that argument `i` gives as integers to `sizes`, which is empty; at most one is -1, which stands for
/// what is left of `numel`.
///
/// # Errors
/// `Value` when they do not fit.
// Written to where they stay: a list that was just written is slow to move.
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
    // The unknown size counts as 1 here.
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
