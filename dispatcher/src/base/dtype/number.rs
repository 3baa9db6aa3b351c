//! Elements of any dtype as f64, for work of the host itself: casts without a kernel, printing, reading.

use super::{Category, DType, Limits, table};
use crate::base::error::{Error, Result};
use keyway_sdk::abi::codes::dtype as code;
use keyway_sdk::half::{bf16, f16};

/// Runs `$each` with `$type` as the Rust type of a real built-in dtype, otherwise `$other`.
macro_rules! with_type {
    ($dtype:expr, $type:ident => $each:expr, $other:expr) => {
        match $dtype.code() {
            code::U8 => {
                type $type = u8;
                $each
            }
            code::I8 => {
                type $type = i8;
                $each
            }
            code::I16 => {
                type $type = i16;
                $each
            }
            code::I32 => {
                type $type = i32;
                $each
            }
            code::I64 => {
                type $type = i64;
                $each
            }
            code::U16 => {
                type $type = u16;
                $each
            }
            code::U32 => {
                type $type = u32;
                $each
            }
            code::U64 => {
                type $type = u64;
                $each
            }
            code::F32 => {
                type $type = f32;
                $each
            }
            code::F64 => {
                type $type = f64;
                $each
            }
            _ => $other,
        }
    };
}

impl DType {
    /// Widens elements to f64; large integers are rounded. Needs no kernel. `bytes` must have `values.len()` elements.
    ///
    /// # Errors
    /// `DType` for a built-in complex dtype, `Undescribed`, and errors of the plugin's conversion.
    #[allow(clippy::unnecessary_cast, reason = "one of the types is f64")]
    pub fn decode(self, bytes: &[u8], values: &mut [f64]) -> Result<()> {
        macro_rules! widen {
            ($type:ty, $each:expr) => {{
                let elements = bytes.as_chunks::<{ size_of::<$type>() }>().0;
                values
                    .iter_mut()
                    .zip(elements)
                    .for_each(|(to, from)| *to = $each(<$type>::from_ne_bytes(*from)));
            }};
        }
        match self.code() {
            code::BOOL => widen!(u8, |x: u8| f64::from(u8::from(x != 0))),
            code::F16 => widen!(f16, f16::to_f64),
            code::BF16 => widen!(bf16, bf16::to_f64),
            code::C64 | code::C128 => return Err(self.no_real_number("to_f64")),
            _ => with_type!(self, T => widen!(T, |x: T| x as f64), return table::decode(self, bytes, values)),
        }
        Ok(())
    }

    /// Converts f64 to elements: floats are rounded to nearest, ties to even (f16 and bf16 through f32); integers towards
    /// 0, saturating; bool is true for nonzero values; a plugin's dtype is converted by the plugin. `bytes` must have
    /// capacity for `values.len()` elements.
    ///
    /// # Errors
    /// As [`DType::decode`].
    pub fn encode(self, values: &[f64], bytes: &mut [u8]) -> Result<()> {
        macro_rules! narrow {
            ($type:ty, $each:expr) => {{
                let elements = bytes.as_chunks_mut::<{ size_of::<$type>() }>().0;
                values.iter().zip(elements).for_each(|(&from, to)| *to = <$type>::to_ne_bytes($each(from)));
            }};
        }
        match self.code() {
            code::BOOL => narrow!(u8, |x: f64| u8::from(x != 0.0)),
            code::F16 => narrow!(f16, |x: f64| f16::from_f32(x as f32)),
            code::BF16 => narrow!(bf16, |x: f64| bf16::from_f32(x as f32)),
            code::C64 | code::C128 => return Err(self.no_real_number("from_f64")),
            _ => {
                with_type!(self, T => narrow!(T, |x: f64| x as T), return table::encode(self, values, bytes))
            }
        }
        Ok(())
    }

    /// One element as formatted by its plugin; `None` if the plugin has no formatter, and for a built-in dtype.
    pub fn format_element(self, element: &[u8]) -> Option<Result<String>> {
        if self.is_built_in() { None } else { table::format(self, element) }
    }

    /// Range and precision; `None` if the dtype has none.
    ///
    /// ```
    /// # use keyway_dispatcher::DType;
    /// assert_eq!(DType::F16.limits().map(|l| l.max), Some(65504.0));
    /// assert_eq!(DType::I8.limits().map(|l| l.min), Some(-128.0));
    /// ```
    pub fn limits(self) -> Option<Limits> {
        let float = |max: f64, epsilon: f64| Some(Limits { max, min: -max, epsilon });
        match self.code() {
            code::F16 => float(f16::MAX.to_f64(), f16::EPSILON.to_f64()),
            code::BF16 => float(bf16::MAX.to_f64(), bf16::EPSILON.to_f64()),
            code::F32 | code::C64 => float(f32::MAX.into(), f32::EPSILON.into()),
            code::F64 | code::C128 => float(f64::MAX, f64::EPSILON),
            _ if self.is_built_in() => self.integer_range().map(|(min, max)| Limits {
                max: max as f64,
                min: min as f64,
                epsilon: f64::NAN,
            }),
            _ => table::limits(self),
        }
    }

    /// Whether the host can cast between the two itself, as it does if one of them is a plugin's: both are real, and every
    /// dtype of a plugin is described. A cast from complex would silently lose the imaginary part.
    pub fn converts_by_host(self, other: DType) -> bool {
        let real = |dtype: DType| dtype.size() > 0 && dtype.category() != Category::Complex;
        !(self.is_built_in() && other.is_built_in()) && (self == other || (real(self) && real(other)))
    }

    #[cold]
    fn no_real_number(self, op: &'static str) -> Error {
        Error::DType { op, argument: "self", expected: "a real dtype".to_string(), got: self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_elements_go_through_f64() {
        for dtype in DType::REAL {
            let values = [0.0, 1.0];
            let mut bytes = vec![0xa5; 2 * dtype.size()];
            dtype.encode(&values, &mut bytes).unwrap();
            let mut back = [9.0; 2];
            dtype.decode(&bytes, &mut back).unwrap();
            assert_eq!(back, values, "{dtype}");
        }
        let mut bytes = [0; 2];
        DType::I8.encode(&[-300.0, f64::NAN], &mut bytes).unwrap();
        assert_eq!(bytes, [128, 0]);
        let error = DType::C64.decode(&[0; 8], &mut [0.0]).unwrap_err().to_string();
        assert!(error.contains("a real dtype") && error.contains("c64"), "{error}");
    }

    #[test]
    fn a_number_just_above_a_tie_is_rounded_up() {
        // The midpoint of two bf16, the lower one even, and the next f32.
        let tie = f32::from_bits(0x3f80_8000);
        for (x, bits) in [(tie, 0x3f80u16), (tie.next_up(), 0x3f81)] {
            let mut bytes = [0; 2];
            DType::BF16.encode(&[f64::from(x)], &mut bytes).unwrap();
            assert_eq!(u16::from_ne_bytes(bytes), bits, "{x}");
        }
    }

    #[test]
    fn limits_are_those_of_the_types() {
        assert_eq!(DType::F32.limits().unwrap().epsilon, f64::from(f32::EPSILON));
        assert_eq!(DType::BOOL.limits().unwrap().max, 1.0);
        assert_eq!(DType::U16.limits().unwrap().max, 65535.0);
    }
}
