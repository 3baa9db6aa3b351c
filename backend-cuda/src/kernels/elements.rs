//! Host scalars as kernel parameters: their bits, in the compute type or in that of the elements.

use keyway_sdk::author::{Call, Element, Error, Tensor, dtype_name};
use keyway_sdk::half::{bf16, f16};

/// An element type of scalar kernel parameters.
pub trait Bits: Element {
    /// The bits in the compute type: f32 for f16 and bf16, otherwise the element's own type.
    fn wide(self) -> u64;
    /// The bits as stored.
    fn raw(self) -> u64;
}

macro_rules! bits {
    ($($t:ty, |$x:ident| $wide:expr, $raw:expr;)+) => {$(
        impl Bits for $t {
            fn wide(self) -> u64 {
                let $x = self;
                $wide
            }
            fn raw(self) -> u64 {
                let $x = self;
                $raw
            }
        }
    )+};
}
bits! {
    f16, |x| u64::from(x.to_f32().to_bits()), u64::from(x.to_bits());
    bf16, |x| u64::from(x.to_f32().to_bits()), u64::from(x.to_bits());
    f32, |x| u64::from(x.to_bits()), u64::from(x.to_bits());
    f64, |x| x.to_bits(), x.to_bits();
    i8, |x| i64::from(x) as u64, u64::from(x as u8);
    i16, |x| i64::from(x) as u64, u64::from(x as u16);
    i32, |x| i64::from(x) as u64, u64::from(x as u32);
    i64, |x| x as u64, x as u64;
    u8, |x| u64::from(x), u64::from(x);
    u16, |x| u64::from(x), u64::from(x);
    u32, |x| u64::from(x), u64::from(x);
    u64, |x| x, x;
    bool, |x| u64::from(x), u64::from(x);
}

/// Evaluates an expression with the type of a dtype's name.
macro_rules! typed {
    ($dtype:expr, $T:ident => $body:expr) => {
        typed!(@all $dtype, $T, $body, f16 bf16 f32 f64 i8 i16 i32 i64 u8 u16 u32 u64 bool)
    };
    (@all $dtype:expr, $T:ident, $body:expr, $($t:ident)+) => {
        match $dtype {
            $(stringify!($t) => { type $T = $t; $body })+
            other => Err(Error::Unsupported { what: format!("dtype {other} on this device") }),
        }
    };
}
pub(crate) use typed;

/// Scalar argument `index` of a call, as bits in the compute type of a dtype.
pub fn wide_scalar(call: &Call<'_>, index: usize, dtype: &str) -> Result<u64, Error> {
    match dtype {
        "f16" | "bf16" => Ok(call.scalar::<f32>(index)?.wide()),
        _ => rounded_scalar(call, index, dtype),
    }
}

/// Scalar argument `index` of a call, rounded to the dtype, as bits in its compute type.
pub fn rounded_scalar(call: &Call<'_>, index: usize, dtype: &str) -> Result<u64, Error> {
    typed!(dtype, T => Ok(call.scalar::<T>(index)?.wide()))
}

/// A float as bits in the compute type of a dtype.
pub fn wide_float(number: f64, dtype: &str) -> u64 {
    if dtype == "f64" { number.wide() } else { (number as f32).wide() }
}

/// The conversion of a host scalar that is passed for a tensor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Taken {
    /// Rounded to the element type, in the compute type.
    Rounded,
    /// Unrounded, in the compute type.
    Exact,
    /// The stored bits of an element.
    Raw,
}

/// The bits of an element in host memory.
pub fn of_host(tensor: &Tensor<'_>, taken: Taken) -> Result<u64, Error> {
    let dtype = dtype_name(tensor.dtype());
    if let (Taken::Exact, "f16" | "bf16", Some(number)) = (taken, dtype, tensor.number()) {
        return Ok((number as f32).wide());
    }
    typed!(dtype, T => {
        let element = tensor.view::<T>()?.get(&vec![0; tensor.ndim()]).unwrap_or_default();
        Ok(if taken == Taken::Raw { element.raw() } else { element.wide() })
    })
}
