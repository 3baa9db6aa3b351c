//! Op schemas as data: `add(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor`.

use super::Arg;
use crate::base::dtype::DType;
use crate::base::error::{Error, Result};

/// The kind of a parameter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A tensor; a scalar is accepted if the op promotes.
    Tensor,
    /// A tensor, or absent.
    OptionalTensor,
    /// A list of tensors.
    Tensors,
    /// A number of any kind.
    Scalar,
    /// An integer.
    Int,
    /// A floating-point number.
    Float,
    /// A truth value.
    Bool,
    /// A list of integers.
    Ints,
    /// A list of floats.
    Floats,
    /// Text.
    Str,
    /// An element type.
    DType,
}

const KINDS: [(&str, Kind, char); 11] = [
    ("Tensor", Kind::Tensor, 'T'),
    ("Tensor?", Kind::OptionalTensor, 'O'),
    ("Tensor[]", Kind::Tensors, 'L'),
    ("Scalar", Kind::Scalar, 's'),
    ("int", Kind::Int, 'i'),
    ("float", Kind::Float, 'f'),
    ("bool", Kind::Bool, 'b'),
    ("int[]", Kind::Ints, 'I'),
    ("float[]", Kind::Floats, 'F'),
    ("str", Kind::Str, 'S'),
    ("dtype", Kind::DType, 'd'),
];

impl Kind {
    /// The letter of this kind in a signature.
    pub fn letter(self) -> char {
        KINDS.iter().find(|(_, kind, _)| *kind == self).map_or('?', |(_, _, letter)| *letter)
    }

    /// The kind of this name in a schema.
    pub fn from_name(name: &str) -> Option<Kind> {
        KINDS.iter().find(|(known, ..)| *known == name).map(|(_, kind, _)| *kind)
    }

    /// The name of this kind in a schema.
    pub fn name(self) -> &'static str {
        KINDS.iter().find(|(_, kind, _)| *kind == self).map_or("?", |(name, _, _)| *name)
    }
}

/// One parameter of an op.
#[derive(Clone, Debug)]
pub struct Param {
    /// The parameter's name.
    pub name: &'static str,
    /// The parameter's kind.
    pub kind: Kind,
    /// Whether the argument may be absent.
    pub optional: bool,
    /// The default, as written.
    pub default: Option<&'static str>,
}

impl Param {
    /// The default value for an argument omitted at the end of a call by name; `None` for a parameter without a default, or
    /// with a default that is not a plain value.
    pub fn default_arg(&self) -> Option<Arg<'static>> {
        let text = self.default?;
        Some(match self.kind {
            _ if text == "None" => Arg::None,
            Kind::Bool | Kind::Scalar if matches!(text, "True" | "False") => Arg::Bool(text == "True"),
            Kind::Int => Arg::Int(text.parse().ok()?),
            Kind::Scalar => text.parse().map(Arg::Int).or_else(|_| text.parse().map(Arg::Float)).ok()?,
            Kind::Float => Arg::Float(text.parse().ok()?),
            Kind::Str => Arg::Str(unquoted(text)),
            Kind::DType => Arg::DType(DType::from_name(text)?),
            Kind::Ints if text == "[]" => Arg::Ints(&[]),
            _ => return None,
        })
    }
}

/// Splits a parameter, `int? dim=None`, into type, optional flag, name and default; `None` without a name.
pub(crate) fn param_parts(text: &str) -> Option<(&str, bool, &str, Option<&str>)> {
    let (kind, rest) = text.split_once(' ')?;
    let (kind, optional) = kind.strip_suffix('?').map_or((kind, false), |kind| (kind, true));
    let (name, default) = match rest.split_once('=') {
        Some((name, default)) => (name, Some(default.trim())),
        None => (rest, None),
    };
    Some((kind, optional, name.trim(), default))
}

/// The text between quotation marks of either kind, or the text itself.
fn unquoted(text: &str) -> &str {
    let between = |mark: char| text.strip_prefix(mark)?.strip_suffix(mark);
    between('\'').or_else(|| between('"')).unwrap_or(text)
}

/// A parsed schema.
#[derive(Clone, Debug)]
pub struct Schema {
    /// The text of the schema.
    pub text: &'static str,
    /// The op's name.
    pub name: &'static str,
    /// Parameters in order.
    pub params: Vec<Param>,
    /// The number of outputs; `None` for a list whose length depends on the arguments.
    pub outputs: Option<usize>,
    /// Parameter kinds and outputs as letters, `TTs>T`: the signature of a kernel.
    pub signature: String,
}

impl Schema {
    /// Parses a schema.
    ///
    /// # Errors
    /// [`Error::Registration`] that names the part that cannot be parsed.
    pub fn parse(text: &'static str) -> Result<Schema> {
        let wrong = |reason: String| Error::Registration { what: "op", name: text.to_string(), reason };
        let (name, rest) = text.split_once('(').ok_or_else(|| wrong("there is no `(`".into()))?;
        let (list, result) = rest.rsplit_once("->").ok_or_else(|| wrong("there is no `->`".into()))?;
        let list =
            list.trim().strip_suffix(')').ok_or_else(|| wrong("there is no `)` before `->`".into()))?;
        let name = name.trim();
        if name.is_empty() {
            return Err(wrong("the op has no name".into()));
        }
        let mut params = Vec::new();
        for part in list.split(',').map(str::trim).filter(|p| !p.is_empty() && *p != "*") {
            let (kind, optional, name, default) =
                param_parts(part).ok_or_else(|| wrong(format!("`{part}` has no name")))?;
            let kind = match (kind, optional) {
                ("Tensor", true) => Some(Kind::OptionalTensor),
                _ => KINDS.iter().find(|(n, ..)| *n == kind).map(|k| k.1),
            };
            let kind = kind.ok_or_else(|| wrong(format!("`{part}` has a type that is not known")))?;
            params.push(Param { name, kind, optional, default });
        }
        if params.len() > 32 {
            return Err(wrong(format!("it has {} parameters, and the maximum is 32", params.len())));
        }
        let result = result.trim();
        let outputs = match result {
            "Tensor" => Some(1),
            "Tensor[]" => None,
            "()" => Some(0),
            tuple => {
                let inner = tuple.strip_prefix('(').and_then(|t| t.strip_suffix(')'));
                let inner = inner.ok_or_else(|| wrong(format!("the result `{tuple}` is not known")))?;
                let count = inner.split(',').filter(|p| p.trim().starts_with("Tensor")).count();
                if count == 0 || count != inner.split(',').count() {
                    return Err(wrong(format!("the result `{tuple}` is not a tuple of tensors")));
                }
                Some(count)
            }
        };
        let mut signature: String = params.iter().map(|p: &Param| p.kind.letter()).collect();
        signature.push('>');
        match outputs {
            Some(count) => signature.extend(std::iter::repeat_n('T', count)),
            None => signature.push('L'),
        }
        Ok(Schema { text, name, params, outputs, signature })
    }

    /// Tensor parameters that also accept a scalar; bit `i` for parameter `i`.
    pub fn number_slots(&self) -> u32 {
        let tensor = |(i, p): (usize, &Param)| if p.kind == Kind::Tensor && i < 32 { 1 << i } else { 0 };
        self.params.iter().enumerate().map(tensor).fold(0, |mask, bit| mask | bit)
    }

    /// The name of parameter `i`.
    pub fn param_name(&self, i: usize) -> &'static str {
        self.params.get(i).map_or("?", |p| p.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_reads_back() {
        let s = Schema::parse(
            "max(Tensor self, int? dim=None, *, bool keepdim=False) -> (Tensor values, Tensor indices)",
        );
        let s = s.unwrap();
        assert_eq!((s.name, s.signature.as_str(), s.outputs), ("max", "Tib>TT", Some(2)));
        assert_eq!(s.params[1].default, Some("None"));
        assert!(matches!(s.params[1].default_arg(), Some(Arg::None)) && s.params[0].default_arg().is_none());
        assert!(matches!(s.params[2].default_arg(), Some(Arg::Bool(false))));
        let f = Schema::parse("f(Tensor a, *, Scalar alpha=1, float eps=1e-05, str mode=mean) -> Tensor")
            .unwrap();
        assert!(matches!(f.params[1].default_arg(), Some(Arg::Int(1))));
        assert!(matches!(f.params[2].default_arg(), Some(Arg::Float(1e-05))));
        assert!(matches!(f.params[3].default_arg(), Some(Arg::Str("mean"))));
        for quoted in ["g(Tensor a, str mode='mean') -> Tensor", "g(Tensor a, str mode=\"mean\") -> Tensor"] {
            let g = Schema::parse(quoted).unwrap();
            assert!(matches!(g.params[1].default_arg(), Some(Arg::Str("mean"))), "{quoted}");
        }
        assert!(s.params[1].optional && !s.params[2].optional);
        assert_eq!(Schema::parse("split(Tensor self, int size) -> Tensor[]").unwrap().signature, "Ti>L");
        assert_eq!(Schema::parse("cat(Tensor[] tensors, int dim=0) -> Tensor").unwrap().signature, "Li>T");
    }

    #[test]
    fn nonsense_is_refused_with_a_reason() {
        for bad in [
            "",
            "add",
            "add(Tensor self)",
            "add(Tensor) -> Tensor",
            "add(Foo x) -> Tensor",
            "a(int x) -> int",
        ] {
            assert!(matches!(Schema::parse(bad), Err(Error::Registration { .. })), "{bad}");
        }
    }
}
