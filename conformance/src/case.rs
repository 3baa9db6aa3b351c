//! A case: a single check, with a name by which it can be run again.

use keyway::dispatcher::op::OpEntry;
use keyway::ops::def::OpDef;
use keyway::{DType, Device};
use std::fmt;

/// A single check.
#[derive(Clone)]
pub struct Case {
    /// The family of the case.
    pub family: &'static str,
    /// The op; `None` for cases about a device, a layout, or an op of a plugin.
    pub def: Option<&'static OpDef>,
    /// The op of a plugin.
    pub foreign: Option<&'static OpEntry>,
    /// The subject if it is not an op: `device`, a layout's name.
    pub subject: String,
    /// The dtype under test, if any.
    pub dtype: Option<DType>,
    /// Index of the op's sample.
    pub sample: usize,
    /// Variant within the family; may be empty.
    pub variant: String,
    /// The device, if it is not the target's first one.
    pub device: Option<Device>,
}

impl Case {
    /// A case about a sample of an op.
    pub fn of(
        family: &'static str,
        def: &'static OpDef,
        dtype: DType,
        sample: usize,
        variant: impl Into<String>,
    ) -> Case {
        let (def, dtype, variant) = (Some(def), Some(dtype), variant.into());
        Case { family, def, foreign: None, subject: String::new(), dtype, sample, variant, device: None }
    }

    /// A case about a sample of a plugin's op.
    pub fn of_foreign(
        family: &'static str,
        op: &'static OpEntry,
        dtype: DType,
        sample: usize,
        variant: impl Into<String>,
    ) -> Case {
        let (foreign, dtype, variant) = (Some(op), Some(dtype), variant.into());
        Case { family, def: None, foreign, subject: String::new(), dtype, sample, variant, device: None }
    }

    /// A case whose subject is not an op.
    pub fn about(family: &'static str, subject: impl Into<String>, variant: impl Into<String>) -> Case {
        let (subject, variant) = (subject.into(), variant.into());
        Case { family, def: None, foreign: None, subject, dtype: None, sample: 0, variant, device: None }
    }

    /// The same case on another device of the target.
    #[must_use]
    pub fn on(self, device: Device) -> Case {
        Case { device: Some(device), ..self }
    }

    /// The name of the op or of the subject.
    pub fn name(&self) -> &str {
        match (self.def, self.foreign) {
            (Some(def), _) => def.name(),
            (None, Some(op)) => op.name,
            (None, None) => &self.subject,
        }
    }

    /// Whether its subject is an op.
    pub fn is_about_op(&self) -> bool {
        self.def.is_some() || self.foreign.is_some()
    }
}

/// The id, `family/op/dtype/sample/variant@device`, without the parts that it does not have.
impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.family, self.name())?;
        if let Some(dtype) = self.dtype {
            write!(f, "/{dtype}")?;
        }
        if self.is_about_op() {
            write!(f, "/{}", self.sample)?;
        }
        if !self.variant.is_empty() {
            write!(f, "/{}", self.variant)?;
        }
        match self.device {
            Some(device) => write!(f, "@{device}"),
            None => Ok(()),
        }
    }
}

/// Whether a text matches a pattern of `*` (any number of characters), `?` (one character) and literal characters.
pub fn glob(pattern: &str, text: &str) -> bool {
    let (p, t): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    let (mut i, mut j) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while j < t.len() {
        if i < p.len() && p[i] == '*' {
            star = Some((i, j));
            i += 1;
        } else if i < p.len() && (p[i] == '?' || p[i] == t[j]) {
            i += 1;
            j += 1;
        } else if let Some((at, from)) = star {
            i = at + 1;
            j = from + 1;
            star = Some((at, from + 1));
        } else {
            return false;
        }
    }
    p[i..].iter().all(|&c| c == '*')
}

#[cfg(test)]
mod tests {
    use super::glob;

    #[test]
    fn patterns_match_as_in_a_shell() {
        for (pattern, text, expected) in [
            ("add", "add", true),
            ("add", "addmm", false),
            ("add*", "addmm", true),
            ("*mm", "addmm", true),
            ("*d*m", "addmm", true),
            ("b?m", "bmm", true),
            ("b?m", "bm", false),
            ("*", "", true),
            ("values/*/f32/*", "values/add/f32/0", true),
            ("values/*/f32/*", "values/add/f64/0", false),
        ] {
            assert_eq!(glob(pattern, text), expected, "{pattern} on {text}");
        }
    }
}
