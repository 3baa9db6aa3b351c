//! Conversion of numbers to and from the bytes of a dtype; native byte order, as in tensors.

use crate::array::{Number, round_to, wrapped};
use half::{bf16, f16};
use keyway::DType;
use smallvec::SmallVec;

/// The bytes of one element. A float is rounded to the dtype, an integer reduced modulo 2^bits; `Any` is zero.
pub fn bytes(value: Number, dtype: DType) -> SmallVec<[u8; 16]> {
    match dtype {
        DType::C64 | DType::C128 => {
            let parts = [value.float(), value.imaginary()].map(Number::Float);
            parts.into_iter().flat_map(|part| bytes(part, dtype.to_real())).collect()
        }
        DType::F64 => SmallVec::from_slice(&value.float().to_ne_bytes()),
        DType::F32 => SmallVec::from_slice(&(value.float() as f32).to_ne_bytes()),
        DType::F16 => SmallVec::from_slice(&f16::from_f32(value.float() as f32).to_ne_bytes()),
        DType::BF16 => SmallVec::from_slice(&bf16::from_f32(value.float() as f32).to_ne_bytes()),
        DType::BOOL => SmallVec::from_slice(&[u8::from(value.truth())]),
        _ => {
            let wide = wrapped(value.int(), dtype).to_le_bytes();
            let mut narrow = SmallVec::from_slice(&wide[..dtype.size()]);
            if cfg!(target_endian = "big") {
                narrow.reverse();
            }
            narrow
        }
    }
}

/// Decodes one element; `None` for bytes that are not a valid element of the dtype, such as 2 for bool.
pub fn number(bytes: &[u8], dtype: DType) -> Option<Number> {
    macro_rules! read {
        ($type:ty) => {
            <$type>::from_ne_bytes(bytes.try_into().ok()?)
        };
    }
    Some(match dtype {
        DType::C64 | DType::C128 => {
            let (re, im) = bytes.split_at_checked(dtype.size() / 2)?;
            Number::Complex(number(re, dtype.to_real())?.float(), number(im, dtype.to_real())?.float())
        }
        DType::F64 => Number::Float(read!(f64)),
        DType::F32 => Number::Float(f64::from(read!(f32))),
        DType::F16 => Number::Float(read!(f16).to_f64()),
        DType::BF16 => Number::Float(read!(bf16).to_f64()),
        DType::I64 => Number::Int(i128::from(read!(i64))),
        DType::I32 => Number::Int(i128::from(read!(i32))),
        DType::I16 => Number::Int(i128::from(read!(i16))),
        DType::I8 => Number::Int(i128::from(read!(i8))),
        DType::U64 => Number::Int(i128::from(read!(u64))),
        DType::U32 => Number::Int(i128::from(read!(u32))),
        DType::U16 => Number::Int(i128::from(read!(u16))),
        DType::U8 => Number::Int(i128::from(read!(u8))),
        DType::BOOL if bytes == [0] => Number::Bool(false),
        DType::BOOL if bytes == [1] => Number::Bool(true),
        _ => return None,
    })
}

/// Formats an element for a report.
pub fn text(value: Number, dtype: DType) -> String {
    match value {
        Number::Float(v) if v.is_finite() && dtype != DType::F64 => format!("{:e}", round_to(v, dtype)),
        Number::Float(v) => format!("{v:e}"),
        Number::Int(v) => wrapped(v, dtype).to_string(),
        Number::Bool(v) => v.to_string(),
        Number::Complex(re, im) => {
            let [re, im] = [re, im].map(|part| text(Number::Float(part), dtype.to_real()));
            format!("{re} + {im} i")
        }
        Number::Any => "anything".to_string(),
    }
}
