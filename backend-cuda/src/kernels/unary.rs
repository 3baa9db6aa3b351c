//! Unary element-wise functions.

use super::Kernel;
use super::elements::{Bits, Taken, rounded_scalar, typed, wide_scalar};
use super::map::map;
use keyway_sdk::author::{Call, Error};
use keyway_sdk::half::{bf16, f16};

family!("unary");

pub fn unary(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    map(call, kernel, [0], Taken::Rounded, [0; 3])
}

/// Functions with one or two scalars after the tensor.
pub fn scaled(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    let mut scalars = [0; 3];
    for (index, scalar) in (1..call.n_args()).zip(&mut scalars) {
        *scalar = wide_scalar(call, index, kernel.dtype)?;
    }
    map(call, kernel, [0], Taken::Rounded, scalars)
}

/// `gelu`, exact or with the tanh approximation.
fn gelu(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    let kernel = if call.str(1)? == "tanh" { kernel.variant("gelu_tanh") } else { kernel };
    map(call, kernel, [0], Taken::Rounded, [0; 3])
}

/// `nan_to_num`: the replacements of NaN and the infinities are rounded to the dtype; defaults are 0 and the dtype's
/// extreme values.
fn nan_to_num(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    let most = match kernel.dtype {
        "f16" => f16::MAX.to_f64(),
        "bf16" => bf16::MAX.to_f64(),
        "f32" => f64::from(f32::MAX),
        _ => f64::MAX,
    };
    let instead = |index: usize, usual: f64| {
        let number = if call.is_none(index)? { usual } else { call.float(index)? };
        typed!(kernel.dtype, T => Ok(<T as keyway_sdk::author::Element>::from_f64(number).wide()))
    };
    map(call, kernel, [0], Taken::Rounded, [instead(1, 0.0)?, instead(2, most)?, instead(3, -most)?])
}

/// The logical negation of bool.
fn flipped(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    map(call, kernel.variant("flip_bool"), [0], Taken::Rounded, [0; 3])
}

/// `clamp`: a missing bound is the end of the dtype's range, and so is one beyond the range of an integer type.
fn clamp(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    let bound = |index: usize, low: bool| -> Result<u64, Error> {
        let none = call.is_none(index)?;
        macro_rules! whole {
            ($t:ty) => {{
                let number = if none { 0 } else { i128::from(call.scalar::<i64>(index)?) };
                let end = if low { <$t>::MIN } else { <$t>::MAX };
                let held = <$t>::try_from(number).unwrap_or(if number < 0 { <$t>::MIN } else { <$t>::MAX });
                Ok(if none { end } else { held }.wide())
            }};
        }
        match kernel.dtype {
            "i8" => whole!(i8),
            "i16" => whole!(i16),
            "i32" => whole!(i32),
            "i64" => whole!(i64),
            "u8" => whole!(u8),
            "u16" => whole!(u16),
            "u32" => whole!(u32),
            "u64" => whole!(u64),
            dtype if none => {
                let end = if low { f64::NEG_INFINITY } else { f64::INFINITY };
                typed!(dtype, T => Ok(<T as keyway_sdk::author::Element>::from_f64(end).wide()))
            }
            dtype => rounded_scalar(call, index, dtype),
        }
    };
    map(call, kernel, [0], Taken::Rounded, [bound(1, true)?, bound(2, false)?, 0])
}
