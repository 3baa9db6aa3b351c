//! `copy`, `clone` and `to_dtype`: one loop, from any element type to any other.

use keyway_cpu_loops::{CallExt, Cost};
use keyway_sdk::abi::codes::dtype;
use keyway_sdk::author::{Call, Element, Error, Widen};
use keyway_sdk::half::{bf16, f16};

/// Casts argument `source` into output 0 of type `O`.
fn cast_into<O: Widen>(call: &Call, source: usize) -> Result<(), Error> {
    macro_rules! from {
        ($($code:ident => $type:ty, $convert:expr);* $(;)?) => {
            match call.tensor(source)?.dtype() {
                code if code == O::dtype() => call.map1_of(source, Cost::Cheap, |x: O| x),
                // To what the output's elements are rounded from.
                $(dtype::$code => call.map1_wide_of::<$type, O>(source, Cost::Cheap, $convert),)*
                other => Err(Error::Unsupported { what: format!("a cast from dtype {other} to {}", O::NAME) }),
            }
        };
    }
    from! {
        F32 => f32, O::Wide::from_f32;
        F64 => f64, O::Wide::from_f64;
        F16 => f16, O::Wide::from_f32;
        BF16 => bf16, O::Wide::from_f32;
        I8 => i8, |x| O::Wide::from_i64(i64::from(x));
        I16 => i16, |x| O::Wide::from_i64(i64::from(x));
        I32 => i32, |x| O::Wide::from_i64(i64::from(x));
        I64 => i64, O::Wide::from_i64;
        U8 => u8, |x| O::Wide::from_i64(i64::from(x));
        U16 => u16, |x| O::Wide::from_i64(i64::from(x));
        U32 => u32, |x| O::Wide::from_i64(i64::from(x));
        U64 => u64, |x: u64| {
            // Beyond i64 an integer wraps, as between all integers; a float must not.
            let float = matches!(O::dtype(), dtype::F64 | dtype::F32 | dtype::F16 | dtype::BF16);
            if float && x > i64::MAX as u64 { O::Wide::from_f64(x as f64) } else { O::Wide::from_i64(x as i64) }
        };
        BOOL => bool, |x| O::Wide::from_i64(i64::from(x));
    }
}

fn copy<T: Widen>(call: &Call) -> Result<(), Error> {
    cast_into::<T>(call, 1)
}

fn clone<T: Widen>(call: &Call) -> Result<(), Error> {
    cast_into::<T>(call, 0)
}

fn to_dtype<T: Widen>(call: &Call) -> Result<(), Error> {
    cast_into::<T>(call, 0)
}

kernel!("copy", "TT>T", copy, [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64, bool]);
kernel!("clone", "TS>T", clone, [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64, bool]);
kernel!("to_dtype", "Td>T", to_dtype, [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64, bool]);
