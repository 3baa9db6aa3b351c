//! Ops that change values and preserve the pattern: the op of the same name on the component `values`, with any kernel.

use super::super::Kernel;
use super::super::elements::typed;
use super::convert::{at_entries, found};
use super::coo::{Coo, Part, dim_of, is_coo, one, unsupported, wrong};
use super::entries::numbers;
use keyway_sdk::abi::codes::dtype;
use keyway_sdk::author::{Arg, Call, Element, Error, OwnedTensor, Tensor, dtype_name};
use keyway_sdk::half::{bf16, f16};

/// `coalesce`
pub fn coalesce(call: &Call<'_>, _kernel: Kernel) -> Result<(), Error> {
    Coo::argument(call, 0)?.coalesced()?.give(call)
}

/// Applies the function to the sum of duplicates.
pub fn each(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    let coo = Coo::argument(call, 0)?.coalesced()?;
    let values = one(kernel.name, &[coo.values.arg()])?;
    coo.with_values(values).give(call)
}

/// Applies the function to the sum of duplicates, with a scalar or string argument.
pub fn each_by(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    let number = || call.float(1).map(Arg::Float).or_else(|_| call.int(1).map(Arg::Int));
    let argument = call.str(1).map(Arg::Str).or_else(|_| number())?;
    let coo = Coo::argument(call, 0)?.coalesced()?;
    let values = one(kernel.name, &[coo.values.arg(), argument])?;
    coo.with_values(values).give(call)
}

/// Negates the stored values; the function is linear, so duplicates need not be added first.
pub fn neg(call: &Call<'_>, _kernel: Kernel) -> Result<(), Error> {
    let coo = Coo::argument(call, 0)?;
    let values = one("neg", &[coo.values.arg()])?;
    coo.with_values(values).give(call)
}

/// Fills stored entries with zeros; another value would change unstored elements.
pub fn fill(call: &Call<'_>, _kernel: Kernel) -> Result<(), Error> {
    let is_zero = call.int(1).map(|n| n == 0).or_else(|_| call.float(1).map(|n| n == 0.0));
    if !is_zero.or_else(|_| call.bool(1).map(|truth| !truth))? {
        return Err(unsupported("a number other than 0 in each element"));
    }
    let coo = Coo::argument(call, 0)?;
    let values = one("fill", &[coo.values.arg(), Arg::Int(0)])?;
    coo.with_values(values).give(call)
}

/// Copies each component to memory of its own.
pub fn clone(call: &Call<'_>, _kernel: Kernel) -> Result<(), Error> {
    let coo = Coo::argument(call, 0)?;
    let copy = |part: Arg<'_>| one("clone", &[part, Arg::Str("contiguous")]);
    let (indices, values) = (copy(coo.indices.arg())?, copy(coo.values.arg())?);
    Coo { indices: Part::Made(indices), ..coo.with_values(values) }.give(call)
}

/// A cast rounds the sum of duplicates; a cast to wider floats is exact.
pub fn to_dtype(call: &Call<'_>, _kernel: Kernel) -> Result<(), Error> {
    let (to, coo) = (call.dtype(1)?, Coo::argument(call, 0)?);
    let exact = match coo.dtype() {
        dtype::F16 | dtype::BF16 => matches!(to, dtype::F32 | dtype::F64),
        dtype::F32 => to == dtype::F64,
        _ => false,
    };
    as_dtype(if exact { coo } else { coo.coalesced()? }, to)?.give(call)
}

/// The same tensor with its values cast.
pub fn as_dtype(coo: Coo<'_>, to: u16) -> Result<Coo<'_>, Error> {
    if coo.dtype() == to {
        return Ok(coo);
    }
    let values = one("to_dtype", &[coo.values.arg(), Arg::Dtype(to)])?;
    Ok(coo.with_values(values))
}

/// Whether a dtype rounds sums of its values.
pub fn is_narrow(code: u16) -> bool {
    matches!(code, dtype::F16 | dtype::BF16)
}

/// The value of a tensor in host memory as a scalar.
fn number(tensor: &Tensor<'_>) -> Result<Arg<'static>, Error> {
    fn of<T: Element>(tensor: &Tensor<'_>) -> Result<Arg<'static>, Error> {
        let real = T::from_f64(0.5).to_f64() != 0.0;
        if let (Some(number), true) = (tensor.number(), real) {
            return Ok(Arg::Float(number));
        }
        let element = tensor.view::<T>()?.iter().next().unwrap_or_default();
        Ok(if real { Arg::Float(element.to_f64()) } else { Arg::Int(element.to_i64()) })
    }
    typed!(dtype_name(tensor.dtype()), T => of::<T>(tensor))
}

/// `mul`: a sparse tensor times a scalar or a strided tensor preserves the pattern; the product of two sparse tensors has
/// the intersection of both patterns.
pub fn mul(call: &Call<'_>, _kernel: Kernel) -> Result<(), Error> {
    let (left, right) = (call.tensor(0)?, call.tensor(1)?);
    match (is_coo(&left), is_coo(&right)) {
        (true, true) => both(Coo::read(call, left)?, Coo::read(call, right)?)?.give(call),
        (true, false) => by_strided(call, left, right, |a, b| one("mul", &[a, b])),
        // A scalar may not be the first argument of an op, and a product is commutative.
        _ => by_strided(call, right, left, |a, b| one("mul", &[a, b])),
    }
}

/// `div` by a scalar, or by a strided tensor at the stored coordinates.
pub fn div(call: &Call<'_>, _kernel: Kernel) -> Result<(), Error> {
    let (left, right) = (call.tensor(0)?, call.tensor(1)?);
    if !is_coo(&left) || is_coo(&right) {
        return Err(unsupported("a quotient by a sparse tensor, which is 0 where it stores nothing,"));
    }
    let mode = if call.is_none(2)? { Arg::None } else { Arg::Str(call.str(2)?) };
    by_strided(call, left, right, |a, b| one("div", &[a, b, mode]))
}

/// Combines the values with the strided tensor's elements at their coordinates. Duplicates are added first if the type is
/// narrow, as their products may overflow although the sum does not, or if the quotient is rounded.
fn by_strided(
    call: &Call<'_>,
    sparse: Tensor<'_>,
    other: Tensor<'_>,
    apply: impl Fn(Arg<'_>, Arg<'_>) -> Result<OwnedTensor, Error>,
) -> Result<(), Error> {
    let coo = Coo::read(call, sparse)?;
    let rounds = call.n_args() > 2 && !call.is_none(2)?;
    let coo = if rounds || is_narrow(coo.dtype()) { coo.coalesced()? } else { coo };
    let values = if other.is_host_scalar() {
        apply(coo.values.arg(), number(&other)?)?
    } else {
        apply(coo.values.arg(), Arg::Owned(&at_entries(other, &coo)?))?
    };
    coo.with_values(values).give(call)
}

/// The products at the coordinates that both store.
fn both<'a>(left: Coo<'a>, right: Coo<'a>) -> Result<Coo<'a>, Error> {
    if left.sizes != right.sizes || left.sparse_dim != right.sparse_dim {
        return Err(unsupported(format!(
            "a product of sparse tensors of shapes {:?} and {:?} with {} and {} sparse dimensions",
            left.sizes, right.sizes, left.sparse_dim, right.sparse_dim
        )));
    }
    let (left, of_left) = left.in_order()?;
    let (right, of_right) = right.in_order()?;
    let list = numbers(left.on, (&of_right, right.nnz), (&of_left, left.nnz))?;
    let (kept, numbers) = left.kept(&list)?;
    let others = found(&right, &numbers, kept.nnz)?;
    let values = one("mul", &[kept.values.arg(), Arg::Owned(&others)])?;
    Ok(kept.with_values(values))
}

/// `pow` with a positive scalar, which preserves 0.
pub fn pow(call: &Call<'_>, _kernel: Kernel) -> Result<(), Error> {
    let (base, exponent) = (call.tensor(0)?, call.tensor(1)?);
    if !is_coo(&base) || is_coo(&exponent) || !exponent.is_host_scalar() {
        return Err(unsupported("a power of a sparse tensor whose exponent is not a scalar"));
    }
    let exponent = number(&exponent)?;
    let keeps_zero = match exponent {
        Arg::Int(exponent) => exponent > 0,
        Arg::Float(exponent) => exponent > 0.0,
        _ => false,
    };
    if !keeps_zero {
        return Err(unsupported("a power that is not above 0, and so is not 0 where nothing is stored,"));
    }
    let coo = Coo::read(call, base)?.coalesced()?;
    let values = one("pow", &[coo.values.arg(), exponent])?;
    coo.with_values(values).give(call)
}

/// `permute`
pub fn permute(call: &Call<'_>, _kernel: Kernel) -> Result<(), Error> {
    let coo = Coo::argument(call, 0)?;
    let (ndim, given) = (coo.sizes.len(), call.ints(1)?);
    let dims = given.iter().map(|&dim| dim_of(dim, ndim)).collect::<Result<Vec<_>, _>>()?;
    let mut sorted = dims.clone();
    sorted.sort_unstable();
    if !sorted.iter().copied().eq(0..ndim) {
        return Err(wrong("dims", format!("each of {ndim} dimensions once"), format!("{given:?}")));
    }
    permuted(coo, &dims)?.give(call)
}

/// `transpose`
pub fn transpose(call: &Call<'_>, _kernel: Kernel) -> Result<(), Error> {
    let coo = Coo::argument(call, 0)?;
    let ndim = coo.sizes.len();
    let (a, b) = (dim_of(call.int(1)?, ndim)?, dim_of(call.int(2)?, ndim)?);
    let mut dims: Vec<usize> = (0..ndim).collect();
    if ndim > 0 {
        dims.swap(a, b);
    }
    permuted(coo, &dims)?.give(call)
}

/// The tensor with permuted dimensions, coalesced if it was.
pub fn permuted<'a>(coo: Coo<'a>, dims: &[usize]) -> Result<Coo<'a>, Error> {
    let sparse = coo.sparse_dim;
    if dims[..sparse].iter().any(|&dim| dim >= sparse) {
        return Err(unsupported(format!(
            "sparse dimensions exchanged with dense ones: {dims:?} of a tensor whose first {sparse} are sparse"
        )));
    }
    let sizes: Vec<i64> = dims.iter().map(|&dim| coo.sizes[dim]).collect();
    let rises = |dims: &[usize]| dims.windows(2).all(|pair| pair[0] < pair[1]);
    let mut made = coo;
    if !rises(&dims[sparse..]) {
        let order: Vec<i64> =
            std::iter::once(0).chain(dims[sparse..].iter().map(|dim| (dim - sparse + 1) as i64)).collect();
        let values = one("permute", &[made.values.arg(), Arg::Ints(&order)])?;
        made = made.with_values(values);
    }
    if rises(&dims[..sparse]) {
        return Ok(Coo { sizes, ..made });
    }
    let was_coalesced = made.coalesced;
    let rows: Vec<Option<usize>> = dims[..sparse].iter().copied().map(Some).collect();
    let made = made.with_rows(&rows, sizes)?;
    if was_coalesced { made.coalesced() } else { Ok(made) }
}
