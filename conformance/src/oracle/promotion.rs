//! Type promotion, as PyTorch documents it (`torch.result_type`).

use crate::array::Array;
use keyway::DType;

/// An operand of type promotion. Within a category, tensors with dimensions take precedence over 0-d tensors, and those
/// over scalars; a higher category always takes precedence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand {
    /// A tensor with dimensions.
    Tensor(DType),
    /// A tensor of no dimensions.
    ZeroDim(DType),
    /// A scalar: i64, f64 or bool.
    Number(DType),
}

impl Operand {
    /// A tensor's part.
    pub fn of(array: &Array) -> Operand {
        if array.sizes.is_empty() { Operand::ZeroDim(array.dtype) } else { Operand::Tensor(array.dtype) }
    }
}

/// 0 bool, 1 integer, 2 float.
fn category(dtype: DType) -> u8 {
    if dtype == DType::BOOL {
        0
    } else if dtype.is_integer() {
        1
    } else {
        2
    }
}

/// The smallest dtype that both convert to.
pub fn pair(a: DType, b: DType) -> Option<DType> {
    if a == b {
        return Some(a);
    }
    let (low, high) = if category(a) <= category(b) { (a, b) } else { (b, a) };
    match (category(low), category(high)) {
        (l, h) if l != h => Some(high),
        (2, _) if low.size() == high.size() => Some(DType::F32),
        (2, _) => Some(if low.size() > high.size() { low } else { high }),
        _ => {
            let (small, large) = if low.size() <= high.size() { (low, high) } else { (high, low) };
            let signed = |d: DType| d.integer_range().is_some_and(|(least, _)| least < 0);
            if signed(small) == signed(large) || (signed(large) && small.size() < large.size()) {
                return Some(large);
            }
            // Unsigned of at least the size of the signed one: the next larger signed dtype.
            match large.size() {
                1 => Some(DType::I16),
                2 => Some(DType::I32),
                4 => Some(DType::I64),
                _ => None,
            }
        }
    }
}

/// The dtype of the result of all.
pub fn result(operands: &[Operand]) -> Option<DType> {
    let of = |pick: fn(Operand) -> Option<DType>| -> Option<Option<DType>> {
        let mut common: Option<DType> = None;
        for dtype in operands.iter().filter_map(|&o| pick(o)) {
            common = Some(match common {
                Some(c) => pair(c, dtype)?,
                None => dtype,
            });
        }
        Some(common)
    };
    let tensors = of(|o| if let Operand::Tensor(d) = o { Some(d) } else { None })?;
    let zero_dims = of(|o| if let Operand::ZeroDim(d) = o { Some(d) } else { None })?;
    let numbers = of(|o| if let Operand::Number(d) = o { Some(d) } else { None })?
        .map(|d| if d == DType::F64 { DType::F32 } else { d });
    let weaker = |strong: Option<DType>, weak: Option<DType>| match (strong, weak) {
        (Some(s), Some(w)) if category(w) > category(s) => Some(w),
        (Some(s), _) => Some(s),
        (None, w) => w,
    };
    weaker(weaker(tensors, zero_dims), numbers)
}
