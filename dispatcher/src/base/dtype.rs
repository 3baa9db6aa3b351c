//! Element types: codes that host and plugins share, and PyTorch's promotion rules.

mod number;
pub(crate) mod table;

use crate::base::error::{Error, Result};
use crate::base::intern::DTYPES;
use keyway_sdk::abi::codes::dtype as code;
use std::fmt;
use std::str::FromStr;

/// An element type. An open set: a plugin may define others, with codes from `VENDOR_FIRST` assigned when their name is
/// first used; tensors of such a dtype can be created once a plugin has described it.
///
/// ```
/// # fn main() -> keyway_dispatcher::Result<()> {
/// # use keyway_dispatcher as keyway;
/// use keyway::DType;
/// let half = DType::BF16;
/// assert_eq!((half.name(), half.size()), ("bf16", 2));
/// assert_eq!("bf16".parse::<DType>()?, half);
/// assert!(half.is_float() && half.is_differentiable() && !DType::BOOL.is_integer());
/// assert_eq!(DType::I8.integer_range(), Some((-128, 127)));
/// assert_eq!(half.promote(DType::I64), Some(half));
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DType(pub(crate) u16);

/// The kinds of element types, in the order of promotion.
///
/// ```
/// # use keyway_dispatcher as keyway;
/// use keyway::{DType, dtype::Category};
/// assert_eq!(DType::C64.category(), Category::Complex);
/// assert!(Category::Bool < Category::Integer && Category::Integer < Category::Float);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Category {
    /// `bool`.
    Bool,
    /// Signed and unsigned integers.
    Integer,
    /// Real floating point.
    Float,
    /// Complex floating point.
    Complex,
    /// A plugin's dtype that is not numeric, or that no plugin has described yet. Promotes with scalars alone.
    Other,
}

/// The range and precision of a dtype, as in NumPy's `finfo` and `iinfo`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Limits {
    /// The largest finite value.
    pub max: f64,
    /// The lowest finite value.
    pub min: f64,
    /// The distance from 1 to the next larger value; NaN for integers and bool.
    pub epsilon: f64,
}

/// The names of the built-in dtypes, at the index of their code.
pub(crate) const BUILT_IN: [&str; 15] = [
    "bool", "u8", "i8", "i16", "i32", "i64", "f16", "bf16", "f32", "f64", "u16", "u32", "u64", "c64", "c128",
];

/// The sizes of the built-in dtypes in bytes, at the index of their code.
const SIZES: [usize; 15] = [1, 1, 1, 2, 4, 8, 2, 2, 4, 8, 2, 4, 8, 8, 16];

#[allow(missing_docs)]
impl DType {
    #[doc(alias = "bool")]
    pub const BOOL: DType = DType(code::BOOL);
    #[doc(alias = "uint8")]
    pub const U8: DType = DType(code::U8);
    #[doc(alias = "int8")]
    pub const I8: DType = DType(code::I8);
    #[doc(alias = "int16")]
    pub const I16: DType = DType(code::I16);
    #[doc(alias = "int32")]
    pub const I32: DType = DType(code::I32);
    #[doc(alias = "int64")]
    pub const I64: DType = DType(code::I64);
    #[doc(alias = "float16")]
    pub const F16: DType = DType(code::F16);
    #[doc(alias = "bfloat16")]
    pub const BF16: DType = DType(code::BF16);
    #[doc(alias = "float32")]
    pub const F32: DType = DType(code::F32);
    #[doc(alias = "float64")]
    pub const F64: DType = DType(code::F64);
    pub const U16: DType = DType(code::U16);
    pub const U32: DType = DType(code::U32);
    pub const U64: DType = DType(code::U64);
    #[doc(alias = "complex64")]
    pub const C64: DType = DType(code::C64);
    #[doc(alias = "complex128")]
    pub const C128: DType = DType(code::C128);
    /// The complex dtypes.
    pub const COMPLEX: [DType; 2] = [DType::C64, DType::C128];
    /// The real dtypes.
    pub const REAL: [DType; 13] = [
        DType::BOOL,
        DType::U8,
        DType::I8,
        DType::I16,
        DType::I32,
        DType::I64,
        DType::F16,
        DType::BF16,
        DType::F32,
        DType::F64,
        DType::U16,
        DType::U32,
        DType::U64,
    ];
}

impl DType {
    /// The code shared with plugins.
    pub const fn code(self) -> u16 {
        self.0
    }

    /// The dtype with this code, if its name has been interned.
    pub fn from_code(code: u16) -> Option<DType> {
        ((code as usize) < DTYPES.len()).then_some(DType(code))
    }

    /// The dtype with this name, if it has been interned.
    ///
    /// ```
    /// # use keyway_dispatcher as keyway;
    /// use keyway::DType;
    /// assert_eq!(DType::from_name("f32"), Some(DType::F32));
    /// assert_eq!(DType::from_name("float"), None);
    /// ```
    pub fn from_name(name: &str) -> Option<DType> {
        DTYPES.get(name).map(DType)
    }

    /// The dtype with this name in another library.
    ///
    /// ```
    /// # use keyway_dispatcher as keyway;
    /// use keyway::DType;
    /// assert_eq!(DType::from_other_name("float32"), Some(DType::F32));
    /// assert!("long".parse::<DType>().unwrap_err().to_string().contains("`i64`"));
    /// ```
    pub fn from_other_name(name: &str) -> Option<DType> {
        Some(match name {
            "float16" | "half" => DType::F16,
            "bfloat16" => DType::BF16,
            "float32" | "float" => DType::F32,
            "float64" | "double" => DType::F64,
            "int8" => DType::I8,
            "int16" | "short" => DType::I16,
            "int32" | "int" => DType::I32,
            "int64" | "long" => DType::I64,
            "uint8" | "byte" => DType::U8,
            "complex64" | "cfloat" => DType::C64,
            "complex128" | "cdouble" => DType::C128,
            _ => return None,
        })
    }

    /// The name: `f32`, `i64`, `bool`.
    pub fn name(self) -> &'static str {
        DTYPES.name(self.0)
    }

    /// Whether this is a built-in dtype, not a plugin's.
    #[inline]
    pub const fn is_built_in(self) -> bool {
        (self.0 as usize) < BUILT_IN.len()
    }

    /// Bytes of one element; 0 for a dtype that no plugin has described.
    #[doc(alias = "size_in_bytes")]
    #[doc(alias = "element_size")]
    #[doc(alias = "itemsize")]
    #[inline]
    pub fn size(self) -> usize {
        match SIZES.get(self.0 as usize) {
            Some(&size) => size,
            None => table::size(self),
        }
    }

    /// The size of one element in bytes, for memory that is about to be allocated.
    ///
    /// # Errors
    /// [`Undescribed`](crate::Error::Undescribed) for a dtype that has a name but no description.
    #[inline]
    pub fn storage_size(self) -> Result<usize> {
        match SIZES.get(self.0 as usize) {
            Some(&size) => Ok(size),
            None => table::storage_size(self),
        }
    }

    /// The kind of this dtype.
    ///
    /// ```
    /// # use keyway_dispatcher as keyway;
    /// use keyway::{DType, dtype::Category};
    /// assert_eq!(DType::U8.category(), Category::Integer);
    /// assert!(DType::BOOL.category() < DType::U8.category());
    /// ```
    #[inline]
    pub fn category(self) -> Category {
        // A match, not a table, so that the compiler generates a single bit test.
        match self.0 {
            code::BOOL => Category::Bool,
            code::U8 | code::I8 | code::I16 | code::I32 | code::I64 | code::U16 | code::U32 | code::U64 => {
                Category::Integer
            }
            code::F16 | code::BF16 | code::F32 | code::F64 => Category::Float,
            code::C64 | code::C128 => Category::Complex,
            _ => table::category(self),
        }
    }

    /// Whether this is a real floating-point dtype.
    #[doc(alias = "is_floating_point")]
    #[inline]
    pub fn is_float(self) -> bool {
        matches!(self.0, code::F16 | code::BF16 | code::F32 | code::F64)
            || (!self.is_built_in() && table::category(self) == Category::Float)
    }

    /// Whether this is a complex dtype.
    #[inline]
    pub fn is_complex(self) -> bool {
        matches!(self.0, code::C64 | code::C128)
            || (!self.is_built_in() && table::category(self) == Category::Complex)
    }

    /// The dtype of the real and imaginary parts: f32 for c64 and f64 for c128; any other dtype itself.
    ///
    /// ```
    /// # use keyway_dispatcher as keyway;
    /// use keyway::DType;
    /// assert_eq!((DType::C64.to_real(), DType::I8.to_real()), (DType::F32, DType::I8));
    /// ```
    pub fn to_real(self) -> DType {
        match self {
            DType::C64 => DType::F32,
            DType::C128 => DType::F64,
            other => other,
        }
    }

    /// The complex dtype with parts of this dtype: c64 for f32 and c128 for f64, and a complex dtype itself. `None` for any
    /// other.
    ///
    /// ```
    /// # use keyway_dispatcher as keyway;
    /// use keyway::DType;
    /// assert_eq!((DType::F64.to_complex(), DType::F16.to_complex()), (Some(DType::C128), None));
    /// ```
    pub fn to_complex(self) -> Option<DType> {
        match self {
            DType::F32 | DType::C64 => Some(DType::C64),
            DType::F64 | DType::C128 => Some(DType::C128),
            _ => None,
        }
    }

    /// Whether this is an integer dtype; `bool` is not.
    #[inline]
    pub fn is_integer(self) -> bool {
        matches!(self.category(), Category::Integer)
    }

    /// Whether this is a real or complex floating-point dtype, NumPy's `inexact`.
    #[inline]
    pub fn is_inexact(self) -> bool {
        self.is_float() || self.is_complex()
    }

    /// Whether gradients can have this dtype: real or complex floating point.
    #[inline]
    pub fn is_differentiable(self) -> bool {
        self.is_inexact()
    }

    /// The plugin that described this dtype; `None` for a built-in one, and for one that has a name but no description.
    pub fn plugin(self) -> Option<&'static str> {
        table::plugin(self)
    }

    /// The smallest and largest value of a built-in integer dtype or `bool`.
    #[doc(alias = "is_signed")]
    pub const fn integer_range(self) -> Option<(i128, i128)> {
        Some(match self.0 {
            code::BOOL => (0, 1),
            code::U8 => (0, u8::MAX as i128),
            code::I8 => (i8::MIN as i128, i8::MAX as i128),
            code::I16 => (i16::MIN as i128, i16::MAX as i128),
            code::U16 => (0, u16::MAX as i128),
            code::I32 => (i32::MIN as i128, i32::MAX as i128),
            code::U32 => (0, u32::MAX as i128),
            code::I64 => (i64::MIN as i128, i64::MAX as i128),
            code::U64 => (0, u64::MAX as i128),
            _ => return None,
        })
    }

    /// Whether a cast to `other` keeps the category or raises it, in the order bool, integers, floats, complex numbers. In-place ops
    /// require it of their result.
    ///
    /// ```
    /// # use keyway_dispatcher as keyway;
    /// use keyway::DType;
    /// assert!(DType::I64.can_cast(DType::F16) && DType::F64.can_cast(DType::F32));
    /// assert!(!DType::F32.can_cast(DType::I64));
    /// ```
    #[must_use]
    pub fn can_cast(self, other: DType) -> bool {
        self.category() <= other.category()
    }

    /// The dtype to which both promote, as `torch.promote_types`; `None` if there is none, as for u64 with a signed
    /// integer, since no integer dtype represents both. A plugin's dtype promotes with itself to itself; with any other
    /// dtype it promotes as the built-in dtype in its `promotes_to`, and there is no common dtype if that is empty.
    ///
    /// ```
    /// # use keyway_dispatcher as keyway;
    /// use keyway::DType;
    /// assert_eq!(DType::F16.promote(DType::BF16), Some(DType::F32));
    /// assert_eq!(DType::U8.promote(DType::I8), Some(DType::I16));
    /// assert_eq!(DType::I64.promote(DType::F16), Some(DType::F16));
    /// assert_eq!(DType::U64.promote(DType::I64), None);
    /// ```
    #[doc(alias = "promote_types")]
    #[doc(alias = "result_type")]
    pub fn promote(self, other: DType) -> Option<DType> {
        if self == other {
            return Some(self);
        }
        if !(self.is_built_in() && other.is_built_in()) {
            return self.stand_in()?.promote(other.stand_in()?);
        }
        let (low, high) = if self.category() <= other.category() { (self, other) } else { (other, self) };
        match (low.category(), high.category()) {
            (Category::Bool, _) => Some(high),
            (Category::Integer, Category::Integer) => promote_integers(low, high),
            (Category::Integer, _) => Some(high),
            (Category::Float, Category::Float) => {
                Some(if low.size() == high.size() {
                    DType::F32 // f16 with bf16: neither holds the other
                } else if low.size() > high.size() {
                    low
                } else {
                    high
                })
            }
            (Category::Float, _) => {
                Some(if low == DType::F64 || high == DType::C128 { DType::C128 } else { DType::C64 })
            }
            _ => Some(DType::C128),
        }
    }
}

impl DType {
    /// The built-in dtype that represents this one in promotion.
    fn stand_in(self) -> Option<DType> {
        if self.is_built_in() { Some(self) } else { table::promotes_to(self) }
    }
}

fn promote_integers(a: DType, b: DType) -> Option<DType> {
    let unsigned = |d: DType| matches!(d.0, code::U8 | code::U16 | code::U32 | code::U64);
    if unsigned(a) == unsigned(b) {
        return Some(if a.size() >= b.size() { a } else { b });
    }
    let (u, s) = if unsigned(a) { (a, b) } else { (b, a) };
    if s.size() > u.size() {
        return Some(s);
    }
    match u.size() {
        1 => Some(DType::I16),
        2 => Some(DType::I32),
        4 => Some(DType::I64),
        _ => None,
    }
}

/// As [`DType::from_name`], with an error for an unknown name.
impl FromStr for DType {
    type Err = Error;

    fn from_str(name: &str) -> Result<DType> {
        DType::from_name(name).ok_or_else(|| Error::Value {
            op: "dtype",
            argument: "dtype",
            expected: format!(
                "the name of a dtype, such as {}, or of one that a loaded plugin brings",
                BUILT_IN.join(", ")
            ),
            got: match DType::from_other_name(name) {
                Some(dtype) => format!("`{name}`, which is `{dtype}` here"),
                None => format!("`{name}`"),
            },
        })
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl fmt::Debug for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The operands of type promotion: tensors with dimensions, 0-d tensors, and Python-like scalars. As in PyTorch, a scalar
/// or a 0-d tensor widens the result only if its category is higher than the category of the operands of higher priority.
/// The same holds for a plugin's dtype: fp8 with the scalar 2.5 is fp8, and so is i64 with a 0-d fp8 tensor.
#[derive(Clone, Copy, Debug, Default)]
pub struct Promotion {
    dimensioned: Option<DType>,
    zero_dim: Option<DType>,
    number: Option<DType>,
    failed: Option<(DType, DType)>,
}

impl Promotion {
    fn merge(slot: &mut Option<DType>, failed: &mut Option<(DType, DType)>, dtype: DType) {
        *slot = match *slot {
            None => Some(dtype),
            Some(present) => present.promote(dtype).or_else(|| {
                *failed = Some((present, dtype));
                Some(present)
            }),
        };
    }

    /// Adds a tensor of `ndim` dimensions.
    pub fn tensor(&mut self, dtype: DType, ndim: usize) {
        let slot = if ndim == 0 { &mut self.zero_dim } else { &mut self.dimensioned };
        if *slot != Some(dtype) {
            Self::merge(slot, &mut self.failed, dtype);
        }
    }

    /// Adds a scalar of this kind: `BOOL`, `I64` or `F64`. A float scalar with integers promotes to `f32`.
    pub fn number(&mut self, dtype: DType) {
        Self::merge(&mut self.number, &mut self.failed, dtype);
    }

    /// The promoted dtype, or the pair of dtypes that have no common dtype.
    pub fn result(&self) -> Result<DType, (DType, DType)> {
        if let Some(pair) = self.failed {
            return Err(pair);
        }
        let number = self.number.map(|d| if d.is_float() { DType::F32 } else { d });
        let lowest_first = [number, self.zero_dim, self.dimensioned];
        let mut result: Option<DType> = None;
        for next in lowest_first.into_iter().flatten() {
            result = Some(match result {
                None => next,
                Some(low) if low.category() > next.category() => {
                    // The lower-priority operand has the higher category: it determines the result, with its own width. Real
                    // floats determine the width of complex numbers.
                    match (low.category(), next.is_float()) {
                        (Category::Complex, true) if next == DType::F64 => DType::C128,
                        (Category::Complex, true) => DType::C64,
                        _ => low,
                    }
                }
                Some(_) => next,
            });
        }
        let result = result.unwrap_or(DType::F32);
        match (self.zero_dim, self.dimensioned) {
            // A non-numeric dtype promotes with scalars, and with tensors of its own dtype only.
            (Some(low), Some(high))
                if !result.is_built_in() && low != high && result.category() == Category::Other =>
            {
                Err((low, high))
            }
            _ => Ok(result),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn promotion_follows_pytorch() {
        let cases = [
            (DType::U8, DType::I8, DType::I16),
            (DType::I32, DType::I64, DType::I64),
            (DType::BOOL, DType::U8, DType::U8),
            (DType::I64, DType::F16, DType::F16),
            (DType::F16, DType::BF16, DType::F32),
            (DType::BF16, DType::F32, DType::F32),
            (DType::U32, DType::I32, DType::I64),
            (DType::F64, DType::C64, DType::C128),
        ];
        for (a, b, expected) in cases {
            assert_eq!(a.promote(b), Some(expected), "{a} with {b}");
            assert_eq!(b.promote(a), Some(expected), "{b} with {a}");
        }
        assert_eq!(DType::U64.promote(DType::I8), None);
    }

    #[test]
    fn names_parse() {
        for (code, name) in BUILT_IN.iter().enumerate() {
            assert_eq!(usize::from(name.parse::<DType>().unwrap().code()), code);
        }
        let text = "float".parse::<DType>().unwrap_err().to_string();
        assert!(text.contains("`float`") && text.contains("bf16"), "{text}");
    }

    #[test]
    fn a_number_never_widens_within_its_category() {
        let mut p = Promotion::default();
        p.tensor(DType::F16, 2);
        p.number(DType::F64);
        assert_eq!(p.result(), Ok(DType::F16));
        let mut p = Promotion::default();
        p.tensor(DType::I32, 2);
        p.tensor(DType::F64, 0);
        assert_eq!(p.result(), Ok(DType::F64));
        let mut p = Promotion::default();
        p.tensor(DType::I8, 1);
        p.number(DType::F64);
        assert_eq!(p.result(), Ok(DType::F32));
        let mut p = Promotion::default();
        p.tensor(DType::BOOL, 1);
        p.number(DType::I64);
        assert_eq!(p.result(), Ok(DType::I64));
    }
}
