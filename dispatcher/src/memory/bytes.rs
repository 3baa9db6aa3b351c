//! Values that are plain bytes.

use crate::base::dtype::DType;
use keyway_sdk::num_complex::Complex;

/// An element type whose values are plain bytes of one dtype.
///
/// ```
/// use keyway_dispatcher::memory::bytes::{self, Plain};
/// use keyway_dispatcher::DType;
/// assert_eq!(<u16 as Plain>::DTYPE, DType::U16);
/// let raw = bytes::of(&[258u16, 7]);
/// assert_eq!(u16::read(&raw[..2]), 258);
/// ```
///
/// # Safety
/// Every value must be valid as bytes without padding, and `DTYPE` must be its dtype. Implemented only for the built-in
/// dtypes.
pub unsafe trait Plain: Copy + Send + Sync + 'static {
    /// The dtype of this type.
    const DTYPE: DType;
    /// Reads a value from its bytes, in native byte order; `bool` reads any non-zero byte as true.
    fn read(bytes: &[u8]) -> Self;
}

/// A numeric type for which every bit pattern is valid, so that memory of its dtype can be read and written by reference:
/// every [`Plain`] type but `bool`, whose elements are read as `u8`.
///
/// ```
/// use keyway_dispatcher::memory::bytes::Element;
/// /// Adds one to each, whatever their number type.
/// fn next<T: Element + From<u8> + std::ops::Add<Output = T>>(values: &mut [T]) {
///     values.iter_mut().for_each(|value| *value = *value + T::from(1));
/// }
/// let mut values = [1.5f32, 2.5];
/// next(&mut values);
/// assert_eq!(values, [2.5, 3.5]);
/// ```
pub trait Element: Plain {}

macro_rules! plain {
    ($($type:ty => $dtype:ident),* $(,)?) => {$(
        // SAFETY: a primitive number has no padding and every bit pattern is one of its values.
        unsafe impl Plain for $type {
            const DTYPE: DType = DType::$dtype;
            fn read(bytes: &[u8]) -> Self {
                let mut buffer = [0; std::mem::size_of::<$type>()];
                buffer.copy_from_slice(bytes);
                <$type>::from_ne_bytes(buffer)
            }
        }
        impl Element for $type {}
    )*};
}
plain!(u8 => U8, i8 => I8, i16 => I16, i32 => I32, i64 => I64, u16 => U16, u32 => U32, u64 => U64,
    f32 => F32, f64 => F64);
plain!(keyway_sdk::half::f16 => F16, keyway_sdk::half::bf16 => BF16);

macro_rules! complex {
    ($($part:ty => $dtype:ident),*) => {$(
        // SAFETY: `Complex` is `repr(C)`: two numbers without padding, for which every bit pattern is valid.
        unsafe impl Plain for Complex<$part> {
            const DTYPE: DType = DType::$dtype;
            fn read(bytes: &[u8]) -> Self {
                let (re, im) = bytes.split_at(size_of::<$part>());
                Complex::new(Plain::read(re), Plain::read(im))
            }
        }
        impl Element for Complex<$part> {}
    )*};
}
complex!(f32 => C64, f64 => C128);

// SAFETY: a bool is one byte without padding; `read` never makes one from anything but 0 and 1.
unsafe impl Plain for bool {
    const DTYPE: DType = DType::BOOL;
    fn read(bytes: &[u8]) -> Self {
        bytes[0] != 0
    }
}

/// The bytes of a slice.
pub fn of<T: Plain>(values: &[T]) -> &[u8] {
    // SAFETY: `Plain` guarantees values without padding, so each byte is initialised; the length is
    // that of the slice itself.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), std::mem::size_of_val(values)) }
}
