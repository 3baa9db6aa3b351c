//! The attributes of a composite tensor.

use crate::base::layout_value::LayoutValue;
use keyway_sdk::abi::codes::tag;
use keyway_sdk::abi::tensor::RawArg;

/// The attributes of a composite tensor, in the order that its layout declares.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Attrs {
    /// The attributes of a [`RawTensor`](keyway_sdk::abi::tensor::RawTensor): integers, the bits of floats, 0 for text and lists.
    ints: Vec<i64>,
    /// Empty if all are integers.
    values: Vec<LayoutValue>,
}

impl From<Vec<i64>> for Attrs {
    fn from(ints: Vec<i64>) -> Attrs {
        Attrs { ints, values: Vec::new() }
    }
}

impl From<Vec<LayoutValue>> for Attrs {
    fn from(values: Vec<LayoutValue>) -> Attrs {
        let int = |value: &LayoutValue| match value {
            LayoutValue::Int(v) => *v,
            LayoutValue::Bool(v) => i64::from(*v),
            LayoutValue::Float(v) => v.to_bits().cast_signed(),
            LayoutValue::Str(_) | LayoutValue::Ints(_) | LayoutValue::Floats(_) => 0,
        };
        let ints = values.iter().map(int).collect();
        let all_ints = values.iter().all(|value| matches!(value, LayoutValue::Int(_)));
        Attrs { ints, values: if all_ints { Vec::new() } else { values } }
    }
}

impl Attrs {
    /// The number of attributes.
    pub fn len(&self) -> usize {
        self.ints.len()
    }

    /// Whether there are no attributes.
    pub fn is_empty(&self) -> bool {
        self.ints.is_empty()
    }

    /// The attributes in the ABI's integer form: integers, the bits of floats, 0 for text and lists.
    #[inline]
    pub fn ints(&self) -> &[i64] {
        &self.ints
    }

    /// Whether all are integers.
    pub fn are_ints(&self) -> bool {
        self.values.is_empty()
    }

    /// Attribute `i`.
    pub fn get(&self, i: usize) -> Option<LayoutValue> {
        match self.values.is_empty() {
            true => self.ints.get(i).map(|v| LayoutValue::Int(*v)),
            false => self.values.get(i).cloned(),
        }
    }

    /// All attributes.
    pub fn iter(&self) -> impl Iterator<Item = LayoutValue> + '_ {
        (0..self.len()).filter_map(|i| self.get(i))
    }

    /// Attribute `i` as an ABI argument, whose pointers borrow from these attributes.
    pub(crate) fn raw(&self, i: usize) -> Option<RawArg> {
        let of = |tag, len: usize, value| RawArg { tag, len: len as u32, value };
        if self.values.is_empty() {
            return self.ints.get(i).map(|v| of(tag::INT, 0, v.cast_unsigned()));
        }
        Some(match self.values.get(i)? {
            LayoutValue::Int(v) => of(tag::INT, 0, v.cast_unsigned()),
            LayoutValue::Float(v) => of(tag::FLOAT, 0, v.to_bits()),
            LayoutValue::Bool(v) => of(tag::BOOL, 0, u64::from(*v)),
            LayoutValue::Str(v) => of(tag::STR, v.len(), v.as_ptr() as u64),
            LayoutValue::Ints(v) => of(tag::INTS, v.len(), v.as_ptr() as u64),
            LayoutValue::Floats(v) => of(tag::FLOATS, v.len(), v.as_ptr() as u64),
        })
    }
}
