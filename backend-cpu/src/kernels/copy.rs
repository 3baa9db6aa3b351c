//! `copy`, `clone` and `to_dtype`: one loop for each pair of element types.

use keyway_cpu_loops::{CallExt, Cost, map1_slices};
use keyway_sdk::abi::codes::dtype;
use keyway_sdk::author::{Call, Element, Error, NameKind, Widen, c64, c128, host};
use keyway_sdk::half::{bf16, f16};

/// Elements per block of a cast through 2-byte integers.
const BLOCK: usize = 512;

/// Casts 8-byte integers to 1-byte integers through 2-byte integers: a direct cast would use only a part of each vector.
fn cast_to_bytes(call: &Call, source: usize) -> Result<(), Error> {
    #[inline(never)]
    fn each<A: Copy, O>(from: &[A], to: &mut [O], f: impl Fn(A) -> O) {
        for (to, &x) in to.iter_mut().zip(from) {
            *to = f(x);
        }
    }
    let from = call.tensor(source)?.view_bits::<u64>()?;
    map1_slices(from, call.out_bits::<u8>(0)?, Cost::Cheap, |from, to| {
        let mut halves = [0u16; BLOCK];
        for (from, to) in from.chunks(BLOCK).zip(to.chunks_mut(BLOCK)) {
            each(from, &mut halves, |x: u64| x as u16);
            each(&halves, to, |x: u16| x as u8);
        }
    })
}

/// Casts argument `source` into output 0 of type `O`.
fn cast_into<O: Widen>(call: &Call, source: usize) -> Result<(), Error> {
    let from = call.tensor(source)?.dtype();
    if matches!((from, O::dtype()), (dtype::I64 | dtype::U64, dtype::I8 | dtype::U8)) {
        return cast_to_bytes(call, source);
    }
    macro_rules! from {
        ($($code:ident => $type:ty, $convert:expr);* $(;)?) => {
            match from {
                code if code == O::dtype() => call.copy_of::<O>(source),
                // Converts to the wide type of the output's elements.
                $(dtype::$code => call.map1_wide_of::<$type, O>(source, Cost::Cheap, $convert),)*
                other => {
                    let from = host::name(NameKind::Dtype, other).unwrap_or("an unknown dtype");
                    Err(Error::Unsupported { what: format!("a cast from {from} to {}", O::NAME) })
                }
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
            // An integer beyond i64 wraps, as between integer types; a float must not.
            let float = matches!(O::dtype(), dtype::F64 | dtype::F32 | dtype::F16 | dtype::BF16);
            if float && x > i64::MAX as u64 { O::Wide::from_f64(x as f64) } else { O::Wide::from_i64(x as i64) }
        };
        BOOL => bool, |x| O::Wide::from_i64(i64::from(x));
    }
}

/// As [`cast_into`], also from complex numbers: into complex numbers, and into bool, which is true for a nonzero one.
fn cast_complex_into<O: Widen>(call: &Call, source: usize) -> Result<(), Error> {
    match call.tensor(source)?.dtype() {
        own if own == O::dtype() => call.copy_of::<O>(source),
        dtype::C64 => call
            .map1_of::<c64, O>(source, Cost::Cheap, |z| O::from_complex(c128::new(z.re.into(), z.im.into()))),
        dtype::C128 => call.map1_of::<c128, O>(source, Cost::Cheap, O::from_complex),
        _ => cast_into::<O>(call, source),
    }
}

fn copy_complex<T: Widen>(call: &Call) -> Result<(), Error> {
    cast_complex_into::<T>(call, 1)
}

fn clone_complex<T: Widen>(call: &Call) -> Result<(), Error> {
    cast_complex_into::<T>(call, 0)
}

fn to_dtype_complex<T: Widen>(call: &Call) -> Result<(), Error> {
    cast_complex_into::<T>(call, 0)
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

kernel!("copy", "TT>T", copy, [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64]);
kernel!("clone", "TS>T", clone, [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64]);
kernel!("to_dtype", "Td>T", to_dtype, [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64]);
kernel!("copy", "TT>T", copy_complex, [bool, c64, c128]);
kernel!("clone", "TS>T", clone_complex, [bool, c64, c128]);
kernel!("to_dtype", "Td>T", to_dtype_complex, [bool, c64, c128]);
