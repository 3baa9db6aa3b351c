//! The declaration of a layout's attribute types and of its conversion from strided tensors: options, tolerance, gradient,
//! samples.

use crate::base::dtype::DType;
use crate::base::error::{Error, Result};
use crate::base::layout_value::parts;
use crate::op::schema::{Kind, param_parts};
use crate::op::{Arg, LayoutOptions, LayoutValue};
use keyway_sdk::abi::codes::layout_gradient;
use serde_json::Value;
use std::fmt::{Display, Write};

/// The tolerance of an element after the conversion to a layout and back.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LayoutTolerance {
    /// The absolute tolerance.
    pub absolute: f64,
    /// The relative tolerance, as a fraction of the element's magnitude.
    pub relative: f64,
    /// The part relative to the largest magnitude in the tensor.
    pub relative_to_max: f64,
}

impl LayoutTolerance {
    /// Whether the layout holds values exactly.
    pub fn is_exact(&self) -> bool {
        *self == LayoutTolerance::default()
    }

    fn checked(self) -> Result<LayoutTolerance, String> {
        let sound = |part: f64| part.is_finite() && part >= 0.0;
        match [self.absolute, self.relative, self.relative_to_max].into_iter().all(sound) {
            true => Ok(self),
            false => Err(format!("a tolerance that is negative or not finite, {self:?}")),
        }
    }

    /// The bound for an element of this value in a tensor with this largest magnitude.
    ///
    /// ```
    /// use keyway_dispatcher::registry::LayoutTolerance;
    /// let int8 = LayoutTolerance { relative_to_max: 0.5 / 127.0, ..LayoutTolerance::default() };
    /// assert_eq!(int8.bound(0.1, 127.0), 0.5);
    /// ```
    pub fn bound(&self, value: f64, max: f64) -> f64 {
        self.absolute + self.relative * value.abs() + self.relative_to_max * max
    }
}

/// An option of the conversion to a layout.
#[derive(Clone, Debug, PartialEq)]
pub struct LayoutOption {
    /// The option's name.
    pub name: String,
    /// The option's type.
    pub kind: Kind,
    /// Whether the option may be absent, and then is `None`.
    pub optional: bool,
    /// The default value.
    pub default: Option<LayoutValue>,
}

impl LayoutOption {
    fn parse(text: &str) -> Result<LayoutOption, String> {
        let (kind, optional, name, default) =
            param_parts(text).ok_or_else(|| format!("`{text}` without a name"))?;
        let kind = value_kind(kind)?;
        let default = match default {
            None => None,
            Some("None") if optional => None,
            Some(default) => {
                let value = LayoutValue::parse(default).and_then(|value| value.of_kind(kind));
                Some(value.ok_or_else(|| format!("`{text}`, whose default is no {}", kind.name()))?)
            }
        };
        Ok(LayoutOption { name: name.to_string(), kind, optional, default })
    }

    fn describe(&self) -> String {
        let mut text = format!("{} ({}", self.name, self.kind.name());
        match &self.default {
            Some(default) => _ = write!(text, ", default {default}"),
            None if !self.optional => text.push_str(", required"),
            None => {}
        }
        text + ")"
    }
}

/// A sample tensor that a layout can hold.
#[derive(Clone, Debug)]
pub struct LayoutSample {
    /// The tensor's sizes.
    pub sizes: Vec<usize>,
    /// The tensor's dtype.
    pub dtype: DType,
    /// Options of the conversion.
    pub options: LayoutOptions,
    /// The tolerance with these options, if it differs from that of the layout.
    pub tolerance: Option<LayoutTolerance>,
}

/// The part of a layout's declaration that plugins may leave out.
#[derive(Clone, Debug, Default)]
pub struct Conversion {
    /// The types of the attributes; empty if all are integers.
    pub attr_types: Vec<Kind>,
    /// The options of the conversion from strided.
    pub options: Vec<LayoutOption>,
    /// The digits that the conversion loses.
    pub tolerance: LayoutTolerance,
    /// Whether the gradient of a converted tensor is projected on its sparsity pattern; otherwise it passes unchanged.
    pub projects_gradients: bool,
    /// Tensors that the layout can hold, for the conformance suite; if empty the suite chooses.
    pub samples: Vec<LayoutSample>,
}

fn value_kind(name: &str) -> Result<Kind, String> {
    const KINDS: [Kind; 6] = [Kind::Int, Kind::Float, Kind::Bool, Kind::Str, Kind::Ints, Kind::Floats];
    Kind::from_name(name)
        .filter(|kind| KINDS.contains(kind))
        .ok_or_else(|| format!("the type `{name}`; it may be {}", KINDS.map(Kind::name).join(", ")))
}

fn sample(value: &Value) -> Result<LayoutSample, String> {
    let wrong = |what: &str| format!("the sample `{value}` {what}");
    let sizes = value.get("sizes").and_then(Value::as_array).ok_or_else(|| wrong("without `sizes`"))?;
    let size = |size: &Value| size.as_u64().and_then(|size| usize::try_from(size).ok());
    let sizes = sizes.iter().map(size).collect::<Option<_>>().ok_or_else(|| wrong("with wrong `sizes`"))?;
    let name = value.get("dtype").map_or(Some("f32"), Value::as_str);
    let dtype = name.and_then(DType::from_name).ok_or_else(|| wrong("with an unknown `dtype`"))?;
    let options = value.get("options").map_or(Some(""), Value::as_str);
    let options = options.ok_or_else(|| wrong("with `options` that are no text"))?;
    let options = options.parse().map_err(|error: Error| wrong(&error.to_string()))?;
    let tolerance = match value.get("tolerance") {
        None => None,
        Some(list) => {
            let parts: Vec<f64> = list.as_array().into_iter().flatten().filter_map(Value::as_f64).collect();
            let &[absolute, relative, relative_to_max] = parts.as_slice() else {
                return Err(wrong("with a `tolerance` that is no list of three numbers"));
            };
            Some(LayoutTolerance { absolute, relative, relative_to_max }.checked()?)
        }
    };
    Ok(LayoutSample { sizes, dtype, options, tolerance })
}

/// The declaration of a layout, as passed by a plugin.
pub(crate) struct Declared<'a> {
    pub name: &'a str,
    pub attr_types: &'a str,
    pub options: &'a str,
    pub tolerance: LayoutTolerance,
    pub gradient: u32,
    pub samples: &'a str,
}

impl Conversion {
    /// Parses a declaration of a layout with this number of attributes; the error describes what is wrong.
    pub(crate) fn read(declared: &Declared<'_>, n_attrs: usize) -> Result<Conversion, String> {
        let listed = |text: &str| -> Vec<String> {
            let all = parts(text).into_iter().map(|part| part.trim().to_string());
            all.filter(|part| !part.is_empty()).collect()
        };
        let attr_types = listed(declared.attr_types);
        if !attr_types.is_empty() && attr_types.len() != n_attrs {
            return Err(format!("{} types of {n_attrs} attributes", attr_types.len()));
        }
        let attr_types = attr_types.iter().map(|name| value_kind(name)).collect::<Result<Vec<_>, _>>()?;
        let all_ints = attr_types.iter().all(|kind| *kind == Kind::Int);
        let options = listed(declared.options);
        let options = options.iter().map(|text| LayoutOption::parse(text)).collect::<Result<Vec<_>, _>>()?;
        if let Some(twice) =
            options.iter().enumerate().find(|(i, o)| options[..*i].iter().any(|p| p.name == o.name))
        {
            return Err(format!("the option `{}` twice", twice.1.name));
        }
        let tolerance = declared.tolerance.checked()?;
        let projects_gradients = match declared.gradient {
            layout_gradient::STRAIGHT_THROUGH => false,
            layout_gradient::PROJECTED => true,
            other => return Err(format!("gradients of kind {other}, which this host does not know")),
        };
        let mut samples = Vec::new();
        if !declared.samples.is_empty() {
            let list: Value =
                serde_json::from_str(declared.samples).map_err(|e| format!("`samples` ({e})"))?;
            let list = list.as_array().ok_or("`samples` that are no list")?;
            samples = list.iter().map(sample).collect::<Result<Vec<_>, _>>()?;
        }
        let attr_types = if all_ints { Vec::new() } else { attr_types };
        let made = Conversion { attr_types, options, tolerance, projects_gradients, samples };
        for sample in &made.samples {
            made.resolve(declared.name, &sample.options).map_err(|error| format!("a sample ({error})"))?;
        }
        Ok(made)
    }

    /// The properties in which two declarations of one layout must agree, as text.
    pub(crate) fn summary(&self) -> String {
        let mut text = String::new();
        if !self.attr_types.is_empty() {
            _ = write!(text, ", of types {:?}", self.attr_types);
        }
        if !self.options.is_empty() {
            _ = write!(text, ", options {}", self.described());
        }
        if !self.tolerance.is_exact() {
            _ = write!(text, ", {:?}", self.tolerance);
        }
        if self.projects_gradients {
            text.push_str(", projected gradients");
        }
        text
    }

    /// The type of attribute `i`.
    pub fn attr_type(&self, i: usize) -> Kind {
        self.attr_types.get(i).copied().unwrap_or(Kind::Int)
    }

    fn described(&self) -> String {
        self.options.iter().map(LayoutOption::describe).collect::<Vec<_>>().join(", ")
    }

    /// Returns a value for each option, in order: the given one, otherwise the default; `None` for an optional one without
    /// either.
    ///
    /// # Errors
    /// `Value` for an option that the layout does not have, of another type, or that is required and missing.
    pub fn resolve(&self, layout: impl Display, options: &LayoutOptions) -> Result<Vec<Option<LayoutValue>>> {
        let wrong = |expected: String, got: String| Error::Value {
            op: "from_strided",
            argument: "options",
            expected,
            got,
        };
        let known = |name: &str| self.options.iter().any(|option| option.name == name);
        if let Some((name, value)) = options.iter().find(|(name, _)| !known(name)) {
            let expected = match self.options.is_empty() {
                true => format!("empty, since layout `{layout}` has no options"),
                false => format!("options of layout `{layout}`: {}", self.described()),
            };
            return Err(wrong(expected, format!("`{name}={value}`")));
        }
        let value = |option: &LayoutOption| match options.get(&option.name) {
            None if option.default.is_none() && !option.optional => Err(wrong(
                format!("with `{}`, which layout `{layout}` requires", option.describe()),
                "none".into(),
            )),
            None => Ok(option.default.clone()),
            Some(value) => match value.clone().of_kind(option.kind) {
                Some(value) => Ok(Some(value)),
                None => {
                    Err(wrong(format!("with `{}`", option.describe()), format!("`{}={value}`", option.name)))
                }
            },
        };
        self.options.iter().map(value).collect()
    }

    /// Converts attributes to the declared types: integers are accepted for floats.
    ///
    /// # Errors
    /// `Value` for an attribute of another type.
    pub(crate) fn typed(
        &self,
        op: &'static str,
        names: &[String],
        attrs: Vec<LayoutValue>,
    ) -> Result<Vec<LayoutValue>> {
        let one = |(i, value): (usize, LayoutValue)| {
            let kind = self.attr_type(i);
            value.clone().of_kind(kind).ok_or_else(|| Error::Value {
                op,
                argument: "attrs",
                expected: format!(
                    "such that `{}` is of type {}",
                    names.get(i).map_or("?", |n| n),
                    kind.name()
                ),
                got: format!("{value}, of type {}", value.kind().name()),
            })
        };
        attrs.into_iter().enumerate().map(one).collect()
    }
}

/// Values of options as arguments of a plugin's function.
pub(crate) fn as_args(values: &[Option<LayoutValue>]) -> Vec<Arg<'_>> {
    values.iter().map(|value| value.as_ref().map_or(Arg::None, LayoutValue::as_arg)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Declared<'static> = Declared {
        name: "test",
        attr_types: "",
        options: "",
        tolerance: LayoutTolerance { absolute: 0.0, relative: 0.0, relative_to_max: 0.0 },
        gradient: 0,
        samples: "",
    };

    #[test]
    fn options_have_their_defaults_and_types() {
        let options = "int block=32, float? scale=None, str mode='absmax', int[] sizes=[4, 4], float bias";
        let read = Conversion::read(&Declared { options, ..PLAIN }, 0).unwrap();
        let resolve = |given: &str| read.resolve("test", &given.parse().unwrap());
        let values = resolve("bias=1, block=8").unwrap();
        let text: Vec<String> =
            values.iter().map(|v| v.as_ref().map_or("None".to_string(), ToString::to_string)).collect();
        assert_eq!(text, ["8", "None", "\"absmax\"", "[4, 4]", "1.0"]);
        for (given, parts) in [
            ("block=8", &["`bias (float, required)`", "got none"][..]),
            ("bias=1.0, blok=8", &["block (int, default 32)", "`blok=8`"]),
            ("bias=1.0, block=0.5", &["`block (int, default 32)`", "`block=0.5`"]),
        ] {
            let error = resolve(given).unwrap_err().to_string();
            assert!(parts.iter().all(|part| error.contains(part)), "{error}");
        }
        let error = Conversion::default().resolve("test", &"a=1".parse().unwrap()).unwrap_err();
        assert!(error.to_string().contains("has no options"), "{error}");
    }

    #[test]
    fn declarations_that_cannot_be_read_are_named() {
        for (declared, part) in [
            (Declared { attr_types: "int", ..PLAIN }, "1 types of 2 attributes"),
            (Declared { attr_types: "int, Tensor", ..PLAIN }, "the type `Tensor`"),
            (Declared { options: "int", ..PLAIN }, "`int` without a name"),
            (Declared { options: "int a=0.5", ..PLAIN }, "default is no int"),
            (Declared { options: "int a=1, float a=2", ..PLAIN }, "the option `a` twice"),
            (Declared { gradient: 9, ..PLAIN }, "gradients of kind 9"),
            (Declared { samples: "[{}]", ..PLAIN }, "without `sizes`"),
            (Declared { samples: "[{\"sizes\": [2], \"options\": \"a=1\"}]", ..PLAIN }, "has no options"),
            (
                Declared {
                    tolerance: LayoutTolerance { absolute: -1.0, ..LayoutTolerance::default() },
                    ..PLAIN
                },
                "negative or not finite",
            ),
        ] {
            let error = Conversion::read(&declared, 2).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
        let typed = Conversion::read(&Declared { attr_types: "int, float[]", ..PLAIN }, 2).unwrap();
        assert_eq!((typed.attr_type(0), typed.attr_type(1)), (Kind::Int, Kind::Floats));
        let sample = "[{\"sizes\": [4, 64], \"dtype\": \"f64\"}]";
        let sampled = Conversion::read(&Declared { samples: sample, ..PLAIN }, 0).unwrap();
        assert_eq!(
            (sampled.samples[0].sizes.as_slice(), sampled.samples[0].dtype),
            (&[4, 64][..], DType::F64)
        );
    }
}
