//! Values of options and attributes of layouts as arguments, and their kinds.

use super::args::Arg;
use super::schema::Kind;
use crate::base::layout_value::LayoutValue;

impl LayoutValue {
    /// The kind of this value in a schema.
    pub fn kind(&self) -> Kind {
        match self {
            LayoutValue::Int(_) => Kind::Int,
            LayoutValue::Float(_) => Kind::Float,
            LayoutValue::Bool(_) => Kind::Bool,
            LayoutValue::Str(_) => Kind::Str,
            LayoutValue::Ints(_) => Kind::Ints,
            LayoutValue::Floats(_) => Kind::Floats,
        }
    }

    /// This value as an argument.
    pub fn as_arg(&self) -> Arg<'_> {
        match self {
            LayoutValue::Int(v) => Arg::Int(*v),
            LayoutValue::Float(v) => Arg::Float(*v),
            LayoutValue::Bool(v) => Arg::Bool(*v),
            LayoutValue::Str(v) => Arg::Str(v),
            LayoutValue::Ints(v) => Arg::Ints(v),
            LayoutValue::Floats(v) => Arg::Floats(v),
        }
    }

    /// Converts this value to a kind: an integer is accepted for a declared float.
    pub(crate) fn of_kind(self, kind: Kind) -> Option<LayoutValue> {
        Some(match (self, kind) {
            (LayoutValue::Int(v), Kind::Float) => LayoutValue::Float(v as f64),
            (LayoutValue::Ints(v), Kind::Floats) => {
                LayoutValue::Floats(v.into_iter().map(|v| v as f64).collect())
            }
            // The text of an empty list has no element type.
            (LayoutValue::Floats(v), Kind::Ints) if v.is_empty() => LayoutValue::Ints(Vec::new()),
            (value, kind) if value.kind() == kind => value,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_taken_for_floats_and_nothing_else_changes() {
        assert_eq!(LayoutValue::Int(2).of_kind(Kind::Float), Some(LayoutValue::Float(2.0)));
        assert_eq!(LayoutValue::from([1, 2]).of_kind(Kind::Floats), Some(LayoutValue::from([1.0, 2.0])));
        assert_eq!(LayoutValue::Float(2.0).of_kind(Kind::Int), None);
        assert_eq!(LayoutValue::Bool(true).of_kind(Kind::Int), None);
        assert_eq!(LayoutValue::from("2").of_kind(Kind::Str), Some(LayoutValue::from("2")));
    }
}
