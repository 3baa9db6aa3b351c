//! Values of options and attributes of layouts, and their text: `block=16, scale=0.1, mode="absmax", sizes=[4, 4]`.

use crate::base::error::{Error, Result};
use std::fmt;
use std::str::FromStr;

/// The quotation marks of a text, as in schemas.
const QUOTES: [char; 2] = ['"', '\''];

/// The value of an option or an attribute of a composite layout.
///
/// ```
/// use keyway_dispatcher::op::LayoutValue;
/// assert_eq!(LayoutValue::from(16), LayoutValue::Int(16));
/// assert_eq!(LayoutValue::from([0.5, 1.0]).to_string(), "[0.5, 1.0]");
/// ```
#[derive(Clone, Debug, PartialEq)]
pub enum LayoutValue {
    /// An integer.
    Int(i64),
    /// A float.
    Float(f64),
    /// A truth value.
    Bool(bool),
    /// Text.
    Str(String),
    /// A list of integers.
    Ints(Vec<i64>),
    /// A list of floats.
    Floats(Vec<f64>),
}

macro_rules! from {
    ($($type:ty: $value:ident => $made:expr),* $(,)?) => {$(
        impl From<$type> for LayoutValue {
            fn from($value: $type) -> LayoutValue {
                $made
            }
        }
    )*};
}
from! {
    i64: v => LayoutValue::Int(v),
    i32: v => LayoutValue::Int(v.into()),
    u32: v => LayoutValue::Int(v.into()),
    // A size that does not fit i64 is larger than any tensor.
    usize: v => LayoutValue::Int(i64::try_from(v).unwrap_or(i64::MAX)),
    f64: v => LayoutValue::Float(v),
    f32: v => LayoutValue::Float(v.into()),
    bool: v => LayoutValue::Bool(v),
    &str: v => LayoutValue::Str(v.to_string()),
    String: v => LayoutValue::Str(v),
    Vec<i64>: v => LayoutValue::Ints(v),
    &[i64]: v => LayoutValue::Ints(v.to_vec()),
    Vec<f64>: v => LayoutValue::Floats(v),
    &[f64]: v => LayoutValue::Floats(v.to_vec()),
}
impl<const N: usize> From<[i64; N]> for LayoutValue {
    fn from(values: [i64; N]) -> LayoutValue {
        LayoutValue::Ints(values.to_vec())
    }
}
impl<const N: usize> From<[f64; N]> for LayoutValue {
    fn from(values: [f64; N]) -> LayoutValue {
        LayoutValue::Floats(values.to_vec())
    }
}

impl fmt::Display for LayoutValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LayoutValue::Int(v) => write!(f, "{v}"),
            LayoutValue::Float(v) => write!(f, "{v:?}"),
            LayoutValue::Bool(v) => write!(f, "{v}"),
            LayoutValue::Str(v) => write!(f, "\"{}\"", v.replace('\\', "\\\\").replace('"', "\\\"")),
            LayoutValue::Ints(v) => write!(f, "{v:?}"),
            LayoutValue::Floats(v) => write!(f, "{v:?}"),
        }
    }
}

impl LayoutValue {
    pub(crate) fn parse(text: &str) -> Option<LayoutValue> {
        if let Some(inner) = text.strip_prefix('[') {
            let inner = inner.strip_suffix(']')?.trim();
            if inner.is_empty() {
                return Some(LayoutValue::Ints(Vec::new()));
            }
            let items = || inner.split(',').map(str::trim);
            let ints: Option<Vec<i64>> = items().map(|item| item.parse().ok()).collect();
            return match ints {
                Some(ints) => Some(LayoutValue::Ints(ints)),
                None => Some(LayoutValue::Floats(items().map(|i| i.parse().ok()).collect::<Option<_>>()?)),
            };
        }
        if let Some(mark) = text.chars().next().filter(|c| QUOTES.contains(c)) {
            let mut made = String::new();
            let mut chars = text[1..].chars();
            loop {
                match chars.next()? {
                    c if c == mark => break,
                    '\\' => made.push(chars.next()?),
                    c => made.push(c),
                }
            }
            return chars.as_str().is_empty().then_some(LayoutValue::Str(made));
        }
        match text {
            "true" | "True" => Some(LayoutValue::Bool(true)),
            "false" | "False" => Some(LayoutValue::Bool(false)),
            number => {
                let int = number.parse().map(LayoutValue::Int);
                int.or_else(|_| number.parse().map(LayoutValue::Float)).ok()
            }
        }
    }
}

/// Named options of the conversion to a layout, such as a block size, a scale or an axis. The layout's plugin declares the
/// options and their defaults.
///
/// ```
/// use keyway_dispatcher::op::LayoutOptions;
/// let options = LayoutOptions::new().set("block", 16).set("scale", 0.1).set("sizes", [4, 4]);
/// assert_eq!(options.to_string(), "block=16, scale=0.1, sizes=[4, 4]");
/// assert_eq!(options.to_string().parse::<LayoutOptions>().unwrap(), options);
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LayoutOptions(Vec<(String, LayoutValue)>);

impl LayoutOptions {
    /// No options: all have their defaults.
    pub fn new() -> LayoutOptions {
        LayoutOptions::default()
    }

    /// Sets an option; the last value of a name is used.
    #[must_use]
    pub fn set(mut self, name: &str, value: impl Into<LayoutValue>) -> LayoutOptions {
        self.0.retain(|(present, _)| present != name);
        self.0.push((name.to_string(), value.into()));
        self
    }

    /// Whether none is set.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Names and values in the order in which they were set.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &LayoutValue)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// The value of an option.
    pub fn get(&self, name: &str) -> Option<&LayoutValue> {
        self.0.iter().find(|(present, _)| present == name).map(|(_, value)| value)
    }
}

impl fmt::Display for LayoutOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (name, value)) in self.0.iter().enumerate() {
            write!(f, "{}{name}={value}", if i > 0 { ", " } else { "" })?;
        }
        Ok(())
    }
}

/// The parts of a text between commas that are outside of quotation marks and brackets.
pub(crate) fn parts(text: &str) -> Vec<&str> {
    let (mut all, mut begin, mut depth, mut quoted, mut escaped) = (Vec::new(), 0, 0usize, None, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted.is_some() => escaped = true,
            _ if quoted == Some(c) => quoted = None,
            _ if quoted.is_some() => {}
            mark if QUOTES.contains(&mark) => quoted = Some(mark),
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                all.push(&text[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    all.push(&text[begin..]);
    all
}

impl FromStr for LayoutOptions {
    type Err = Error;

    /// Reads the text that [`LayoutOptions`] prints.
    fn from_str(text: &str) -> Result<LayoutOptions> {
        if text.trim().is_empty() {
            return Ok(LayoutOptions::new());
        }
        let mut options = LayoutOptions::new();
        for part in parts(text) {
            let read = part.split_once('=').and_then(|(name, value)| {
                let name = name.trim();
                Some((name, LayoutValue::parse(value.trim())?)).filter(|_| !name.is_empty())
            });
            let Some((name, value)) = read else {
                return Err(Error::Value {
                    op: "from_strided",
                    argument: "options",
                    expected: "options such as `block=16, scale=0.1, mode=\"absmax\", sizes=[4, 4]`"
                        .to_string(),
                    got: format!("`{}`", part.trim()),
                });
            };
            options = options.set(name, value);
        }
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_options_reads_back() {
        let text = "a\"b\\, [c]=d";
        let options = LayoutOptions::new()
            .set("int", -3)
            .set("whole", 2.0)
            .set("tiny", 1.0 / 3.0)
            .set("infinite", f64::NEG_INFINITY)
            .set("flag", true)
            .set("text", text)
            .set("none", Vec::<i64>::new())
            .set("ints", [i64::MIN, 7])
            .set("floats", [0.1, 1e300]);
        assert_eq!(options.to_string().parse::<LayoutOptions>().unwrap(), options);
        assert_eq!(options.get("text"), Some(&LayoutValue::Str(text.to_string())));
        assert!("".parse::<LayoutOptions>().unwrap().is_empty());
        let single: LayoutOptions = "a='b, \"c', d=1".parse().unwrap();
        assert_eq!(single, LayoutOptions::new().set("a", "b, \"c").set("d", 1));
        for wrong in
            ["block", "=3", "a=", "a=[1", "a=\"", "a=[x]", "a=1,", "a=\"\\\"", "a=\"b\"c\"", "a='b\""]
        {
            let error = wrong.parse::<LayoutOptions>().unwrap_err().to_string();
            assert!(error.contains("options such as"), "{wrong}: {error}");
        }
    }
}
