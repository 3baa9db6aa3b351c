//! `clone`, `copy`, `to_dtype` and `fill`: the ops needed to hold, convert, print, save and load tensors.

use super::kernel;
use crate::arena::Cell;
use crate::operand::map1;
use keyway_sdk::abi::codes::dtype;
use keyway_sdk::author::{Call, Error, dtype_name};
use keyway_sdk::half::{bf16, f16};

/// Casts argument `source`, of any dtype, to that of the output.
fn cast<T: Cell>(call: &Call<'_>, source: usize) -> Result<(), Error> {
    /// Through an integer for integers, so that large ones wrap, as on every device.
    macro_rules! from {
        ($($code:ident => $a:ty, $f:expr;)*) => {
            match call.tensor(source)?.dtype() {
                $(dtype::$code => map1(call, source, |value: $a| -> T { ($f)(value) }),)*
                other => Err(Error::Unsupported {
                    what: format!("a cast from {} to {} on this device", dtype_name(other), T::NAME),
                }),
            }
        };
    }
    from! {
        F32 => f32, |value| T::from_f64(f64::from(value));
        F64 => f64, T::from_f64;
        F16 => f16, |value: f16| T::from_f64(value.to_f64());
        BF16 => bf16, |value: bf16| T::from_f64(value.to_f64());
        I8 => i8, |value| T::from_i64(i64::from(value));
        I16 => i16, |value| T::from_i64(i64::from(value));
        I32 => i32, |value| T::from_i64(i64::from(value));
        I64 => i64, T::from_i64;
        U8 => u8, |value| T::from_i64(i64::from(value));
        U16 => u16, |value| T::from_i64(i64::from(value));
        U32 => u32, |value| T::from_i64(i64::from(value));
        U64 => u64, from_u64::<T>;
        BOOL => bool, |value| T::from_i64(i64::from(value));
    }
}

/// A float is cast from an integer beyond `i64` directly.
fn from_u64<T: Cell>(value: u64) -> T {
    let float = matches!(T::dtype(), dtype::F64 | dtype::F32 | dtype::F16 | dtype::BF16);
    if float && value > i64::MAX as u64 { T::from_f64(value as f64) } else { T::from_i64(value as i64) }
}

fn first<T: Cell>(call: &Call<'_>) -> Result<(), Error> {
    cast::<T>(call, 0)
}

fn second<T: Cell>(call: &Call<'_>) -> Result<(), Error> {
    cast::<T>(call, 1)
}

fn fill<T: Cell>(call: &Call<'_>) -> Result<(), Error> {
    let value: T = call.scalar(1)?;
    map1(call, 0, |_: T| value)
}

/// Calls `kernel!` with the same function for each dtype.
macro_rules! every_dtype {
    ($op:literal, $signature:literal, $run:ident) => {
        kernel!($op, $signature, [
            f32 => $run::<f32>, f64 => $run::<f64>, f16 => $run::<f16>, bf16 => $run::<bf16>,
            i8 => $run::<i8>, i16 => $run::<i16>, i32 => $run::<i32>, i64 => $run::<i64>,
            u8 => $run::<u8>, u16 => $run::<u16>, u32 => $run::<u32>, u64 => $run::<u64>, bool => $run::<bool>,
        ]);
    };
}

// The output's strides are the host's choice, so all three use one loop.
every_dtype!("clone", "TS>T", first);
every_dtype!("to_dtype", "Td>T", first);
every_dtype!("copy", "TT>T", second);
every_dtype!("fill", "Ts>T", fill);
