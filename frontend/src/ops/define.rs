//! Constructors of op definitions: the defaults of element-wise ops, and builder methods that replace them.

use super::def::{Decompose, Derivative, Dtypes, Forms, OpDef, Registration};
use super::sample::{self, ErrorSample, Sample};
use crate::op::rules;
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Args, Rule, Typing};

/// The compute and output dtypes of an element-wise op.
type DtypeRule = fn(&Args<'_>) -> RuleResult<Typing>;
impl OpDef {
    /// An op of all dtypes with only the functional form, no decomposition and no error samples.
    ///
    /// ```
    /// use keyway::dispatcher::op::Rule;
    /// use keyway::ops::def::{Derivative, Forms, OpDef};
    /// use keyway::ops::{rules, sample};
    /// let rule = Rule::Elementwise(rules::FIRST, rules::unary);
    /// let twice = OpDef::new("twice(Tensor self) -> Tensor", rule, Derivative::ZERO, || sample::unary(-1.0, 1.0));
    /// assert_eq!((twice.name(), twice.forms), ("twice", Forms::New));
    /// ```
    pub const fn new(
        schema: &'static str,
        rule: Rule,
        derivative: Derivative,
        samples: fn() -> Vec<Sample>,
    ) -> OpDef {
        OpDef {
            schema,
            rule,
            decomposition: None,
            views: &[],
            derivative,
            forms: Forms::New,
            dtypes: Dtypes::ALL,
            samples,
            errors: Vec::new,
            registration: Registration::new(),
        }
    }

    /// An element-wise op of one tensor, of all dtypes and in all forms. The samples have every rank and values in -2..2; there
    /// are no error samples.
    ///
    /// ```
    /// use keyway::ops::def::{Derivative, Forms, OpDef};
    /// use keyway::ops::rules;
    /// let twice = OpDef::unary("twice(Tensor self) -> Tensor", rules::unary, Derivative::ZERO);
    /// assert_eq!((twice.forms, (twice.samples)()[0].args.len()), (Forms::InPlace, 1));
    /// ```
    pub const fn unary(schema: &'static str, dtypes: DtypeRule, derivative: Derivative) -> OpDef {
        let rule = Rule::Elementwise(rules::FIRST, dtypes);
        OpDef::new(schema, rule, derivative, || sample::unary(-2.0, 2.0)).forms(Forms::InPlace)
    }

    /// An element-wise op of two tensors that broadcast, of all dtypes and in all forms. The samples are pairs of shapes with
    /// values in -2..2; the error samples do not broadcast.
    ///
    /// ```
    /// use keyway::ops::{def::{Derivative, Forms, OpDef}, rules};
    /// let most = OpDef::binary("most(Tensor self, Tensor other) -> Tensor", rules::binary, Derivative::ZERO);
    /// assert_eq!((most.forms, (most.samples)()[0].args.len()), (Forms::InPlace, 2));
    /// ```
    pub const fn binary(schema: &'static str, dtypes: DtypeRule, derivative: Derivative) -> OpDef {
        let rule = Rule::Elementwise(rules::FIRST_TWO, dtypes);
        OpDef::new(schema, rule, derivative, sample::binary)
            .forms(Forms::InPlace)
            .errors(|| sample::broadcast_errors(&[]))
    }

    /// Replaces the forms.
    ///
    /// ```
    /// use keyway::ops::def::{Derivative, Forms, OpDef};
    /// use keyway::ops::rules;
    /// let twice = OpDef::unary("twice(Tensor self) -> Tensor", rules::unary, Derivative::ZERO);
    /// assert_eq!(twice.forms(Forms::New).forms, Forms::New);
    /// ```
    #[must_use]
    pub const fn forms(mut self, forms: Forms) -> OpDef {
        self.forms = forms;
        self
    }

    /// Replaces the supported dtypes.
    ///
    /// ```
    /// use keyway::ops::def::{Derivative, Dtypes, OpDef};
    /// use keyway::ops::rules;
    /// let twice = OpDef::unary("twice(Tensor self) -> Tensor", rules::unary, Derivative::ZERO);
    /// assert_eq!(twice.dtypes(Dtypes::FLOAT).dtypes, Dtypes::FLOAT);
    /// ```
    #[must_use]
    pub const fn dtypes(mut self, dtypes: Dtypes) -> OpDef {
        self.dtypes = dtypes;
        self
    }

    /// Sets the decomposition. The ops that it calls are recorded by `cargo xtask parts`.
    ///
    /// ```
    /// use keyway::dispatcher::op::Out;
    /// use keyway::ops::{def::{Derivative, OpDef}, pointwise::add, rules};
    /// let twice = OpDef::unary("twice(Tensor self) -> Tensor", rules::unary, Derivative::ZERO)
    ///     .decomposed(|args| Ok(add::DEF.call(&[args.get(0), args.get(0), 1.into()], Out::New)?));
    /// assert!(twice.decomposition.is_some());
    /// ```
    #[must_use]
    pub const fn decomposed(mut self, decompose: Decompose) -> OpDef {
        self.decomposition = Some(decompose);
        self
    }

    /// Sets the views that the decomposition takes of its arguments. The host serves views of strided tensors; the backend of a
    /// composite layout needs a kernel for each.
    ///
    /// ```
    /// assert_eq!(keyway::ops::linalg::trace::DEF.views, ["diagonal"]);
    /// ```
    #[must_use]
    pub const fn viewing(mut self, views: &'static [&'static str]) -> OpDef {
        self.views = views;
        self
    }

    /// Replaces the valid samples.
    ///
    /// ```
    /// use keyway::ops::def::{Derivative, OpDef};
    /// use keyway::ops::{rules, sample};
    /// let twice = OpDef::unary("twice(Tensor self) -> Tensor", rules::unary, Derivative::ZERO);
    /// let samples = twice.samples(|| sample::unary(0.0, 1.0)).samples;
    /// assert_eq!(samples().len(), sample::unary(0.0, 1.0).len());
    /// ```
    #[must_use]
    pub const fn samples(mut self, samples: fn() -> Vec<Sample>) -> OpDef {
        self.samples = samples;
        self
    }

    /// Replaces the error samples.
    ///
    /// ```
    /// use keyway::ops::def::{Derivative, OpDef};
    /// use keyway::ops::{rules, sample};
    /// let twice = OpDef::unary("twice(Tensor self) -> Tensor", rules::unary, Derivative::ZERO);
    /// let errors = twice.errors(|| sample::refuses_integers(&[])).errors;
    /// assert_eq!(errors()[0].message, "a floating-point dtype");
    /// ```
    #[must_use]
    pub const fn errors(mut self, errors: fn() -> Vec<ErrorSample>) -> OpDef {
        self.errors = errors;
        self
    }
}
