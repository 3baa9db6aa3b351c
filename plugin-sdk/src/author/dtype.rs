//! Dtypes that a plugin defines.

use super::dtype_size::own_size;
use super::element::Element;
use super::guard::guarded;
use super::names::{NameKind, intern};
use crate::abi::RawStr;
use crate::abi::codes::dtype_category;
use crate::abi::dtype::{DTypeApi, FormatFn};
use std::ffi::c_void;
use std::sync::atomic::{AtomicU16, Ordering};

/// The kind of values of a dtype, in the order of promotion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Category {
    /// Truth values.
    Bool,
    /// Integers of 0 or more.
    Unsigned,
    /// Integers with a sign.
    Signed,
    /// Real floating point; gradients may be of it.
    Float,
    /// Complex floating point.
    Complex,
    /// Any other dtype. Promotes only with scalars.
    Other,
}

/// The range and precision of a dtype, as in NumPy's `finfo` and `iinfo`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// The largest finite value.
    pub max: f64,
    /// The lowest finite value.
    pub min: f64,
    /// The distance from 1 to the next larger value; NaN for integers.
    pub epsilon: f64,
}

/// A dtype that the plugin defines: its own [`Element`] type, and the properties that the host needs. The element's
/// `from_f64` rounds to nearest, ties to even.
///
/// ```
/// use keyway_sdk::abi::dtype::DTypeApi;
/// use keyway_sdk::author::{Category, DType, DTypeNumber, Element, Limits, dtype_api};
///
/// /// Hundredths, from -327.68 to 327.67; out of range saturates, NaN becomes 0.
/// #[derive(Clone, Copy, Default, Debug, PartialEq, PartialOrd)]
/// #[repr(transparent)]
/// struct Cents(i16);
///
/// // SAFETY: `Cents` is an `i16`, of which every bit pattern is a value, and `dtype` is the number of `NAME`.
/// unsafe impl Element for Cents {
///     const NAME: &'static str = "example.org/cents";
///     fn dtype() -> u16 {
///         static NUMBER: DTypeNumber = DTypeNumber::of::<Cents>();
///         NUMBER.get()
///     }
///     fn from_f64(value: f64) -> Self {
///         Cents((value * 100.0).round_ties_even() as i16)
///     }
///     fn to_f64(self) -> f64 {
///         f64::from(self.0) / 100.0
///     }
/// }
///
/// impl DType for Cents {
///     const CATEGORY: Category = Category::Float;
///     const PROMOTES_TO: &'static str = "f32";
///     const LIMITS: Option<Limits> = Some(Limits { max: 327.67, min: -327.68, epsilon: 0.01 });
/// }
///
/// static CENTS: DTypeApi = dtype_api::<Cents>();
/// // In `plugin!`: `setup: |contents| { contents.dtype(&CENTS); Ok(()) }`.
/// assert_eq!(CENTS.bits, 16);
/// ```
pub trait DType: Element {
    /// The kind of its values.
    const CATEGORY: Category;
    /// See [`DTypeApi::promotes_to`].
    const PROMOTES_TO: &'static str = "";
    /// Range and precision; required unless the category is [`Category::Other`].
    const LIMITS: Option<Limits> = None;
    /// Formats one element; if `None`, the value of [`Element::to_f64`] is printed.
    const FORMAT: Option<fn(Self) -> String> = None;
}

/// The table of a dtype, for `static API: DTypeApi = dtype_api::<MyElement>();`.
pub const fn dtype_api<T: DType>() -> DTypeApi {
    let limits = match T::LIMITS {
        Some(limits) => limits,
        None => Limits { max: f64::NAN, min: f64::NAN, epsilon: f64::NAN },
    };
    DTypeApi {
        struct_size: size_of::<DTypeApi>() as u32,
        bits: 8 * size_of::<T>() as u32,
        name: RawStr::new(T::NAME),
        alignment: align_of::<T>() as u32,
        category: match T::CATEGORY {
            Category::Bool => dtype_category::BOOL,
            Category::Unsigned => dtype_category::UNSIGNED,
            Category::Signed => dtype_category::SIGNED,
            Category::Float => dtype_category::FLOAT,
            Category::Complex => dtype_category::COMPLEX,
            Category::Other => dtype_category::OTHER,
        },
        flags: 0,
        promotes_to: RawStr::new(T::PROMOTES_TO),
        max: limits.max,
        min: limits.min,
        epsilon: limits.epsilon,
        to_f64: to_f64::<T>,
        from_f64: from_f64::<T>,
        format: match T::FORMAT {
            Some(_) => Some(format::<T> as FormatFn),
            None => None,
        },
    }
}

unsafe extern "C" fn to_f64<T: DType>(source: *const c_void, target: *mut f64, n: u64) -> i32 {
    guarded(|| {
        for i in 0..n as usize {
            // SAFETY: the host passes `n` aligned elements and capacity for `n` values, see `ToF64Fn`.
            unsafe { target.add(i).write(T::load(source.cast::<T>().add(i)).to_f64()) };
        }
        Ok(())
    })
}

unsafe extern "C" fn from_f64<T: DType>(source: *const f64, target: *mut c_void, n: u64) -> i32 {
    guarded(|| {
        for i in 0..n as usize {
            // SAFETY: the host passes `n` values and aligned capacity for `n` elements, see `FromF64Fn`.
            unsafe { target.cast::<T>().add(i).write(T::from_f64(source.add(i).read())) };
        }
        Ok(())
    })
}

unsafe extern "C" fn format<T: DType>(
    element: *const c_void,
    buffer: *mut u8,
    capacity: u64,
    length: *mut u64,
) -> i32 {
    guarded(|| {
        // SAFETY: the host passes one aligned element, as `FormatFn` requires.
        let element = unsafe { T::load(element.cast()) };
        let text = T::FORMAT.map_or_else(String::new, |format| format(element));
        let mut cut = text.len().min(capacity as usize);
        while !text.is_char_boundary(cut) {
            cut -= 1;
        }
        // SAFETY: `cut` is at most `capacity`, the size of the host's buffer, and `length` is writable.
        unsafe {
            buffer.copy_from_nonoverlapping(text.as_ptr(), cut);
            length.write(cut as u64);
        }
        Ok(())
    })
}

/// The host's code of a plugin-defined dtype, queried once.
#[derive(Debug)]
pub struct DTypeNumber {
    name: &'static str,
    bytes: usize,
    number: AtomicU16,
}

/// A code that no dtype has.
const UNKNOWN: u16 = u16::MAX;

impl DTypeNumber {
    /// The dtype code of `T`, for the static in its [`Element::dtype`].
    pub const fn of<T: Element>() -> DTypeNumber {
        DTypeNumber { name: T::NAME, bytes: size_of::<T>(), number: AtomicU16::new(UNKNOWN) }
    }

    /// The code; `u16::MAX`, which no tensor has, without a host.
    #[inline(always)]
    pub fn get(&self) -> u16 {
        match self.number.load(Ordering::Relaxed) {
            UNKNOWN => self.look_up(),
            number => number,
        }
    }

    #[cold]
    fn look_up(&self) -> u16 {
        let Ok(number) = intern(NameKind::Dtype, self.name) else { return UNKNOWN };
        if let Some(size) = own_size(number) {
            size.store(self.bytes as u8, Ordering::Relaxed);
        }
        self.number.store(number, Ordering::Relaxed);
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::codes::{dtype, status};
    use crate::author::dtype_size::known_size;

    /// Hundredths in one byte.
    #[derive(Clone, Copy, Default, Debug, PartialEq, PartialOrd)]
    #[repr(transparent)]
    struct Percent(u8);

    // SAFETY: a `u8`, for which every bit pattern is a value; `dtype` returns the number of `NAME`.
    unsafe impl Element for Percent {
        const NAME: &'static str = "test.example/percent";
        fn dtype() -> u16 {
            static NUMBER: DTypeNumber = DTypeNumber::of::<Percent>();
            NUMBER.get()
        }
        fn from_f64(value: f64) -> Self {
            assert!(value < 2.0, "too large for a test");
            Percent((value * 100.0).round_ties_even() as u8)
        }
        fn to_f64(self) -> f64 {
            f64::from(self.0) / 100.0
        }
    }

    impl DType for Percent {
        const CATEGORY: Category = Category::Float;
        const PROMOTES_TO: &'static str = "f16";
        const LIMITS: Option<Limits> = Some(Limits { max: 2.55, min: 0.0, epsilon: 0.01 });
        const FORMAT: Option<fn(Self) -> String> = Some(|p| format!("{} ½%", p.0));
    }

    static API: DTypeApi = dtype_api::<Percent>();

    #[test]
    fn the_table_is_that_of_the_trait() {
        assert_eq!((API.bits, API.alignment, API.category), (8, 1, dtype_category::FLOAT));
        // SAFETY: static strings.
        assert_eq!(
            // SAFETY: both are static strings of this program.
            unsafe { (API.name.read(), API.promotes_to.read()) },
            (Percent::NAME.into(), "f16".into())
        );
        let (mut wide, mut narrow) = ([0.0; 2], [0u8; 2]);
        // SAFETY: lists of two elements each.
        unsafe {
            assert_eq!((API.from_f64)([0.25, 1.0].as_ptr(), narrow.as_mut_ptr().cast(), 2), status::OK);
            assert_eq!((API.to_f64)(narrow.as_ptr().cast(), wide.as_mut_ptr(), 2), status::OK);
        }
        assert_eq!((narrow, wide), ([25, 100], [0.25, 1.0]));
        assert_eq!((Percent::from_i64(1).0, Percent(150).to_i64()), (100, 1));
    }

    #[test]
    fn a_text_is_cut_between_characters() {
        let format = API.format.expect("FORMAT is given");
        for (capacity, expected) in [(9, "25 ½%"), (6, "25 ½%"), (4, "25 "), (0, "")] {
            let (mut buffer, mut length) = ([0u8; 9], 0u64);
            // SAFETY: one element, a buffer of at least `capacity` bytes.
            let code =
                unsafe { format([25u8].as_ptr().cast(), buffer.as_mut_ptr(), capacity, &raw mut length) };
            assert_eq!(code, status::OK);
            assert_eq!(std::str::from_utf8(&buffer[..length as usize]), Ok(expected));
        }
    }

    #[test]
    fn without_a_host_there_is_no_number() {
        assert_eq!(Percent::dtype(), u16::MAX);
        assert_eq!(known_size(40), None);
        assert_eq!(known_size(dtype::F32), Some(4));
    }
}
