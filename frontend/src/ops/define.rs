//! Constructors of op definitions: what most element-wise ops have in common, and methods that replace a part of it.

use super::def::{Derivative, Dtypes, Entry, Forms, OpDef};
use super::rules;
use super::sample::{self, ErrorSample, Sample};
use crate::autograd::{Backward, Grads};
use crate::error::Result;
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Args, Rule, Typing};

/// The dtypes that an element-wise op computes in and returns.
type DtypeRule = fn(&Args<'_>) -> RuleResult<Typing>;
/// A formula of a gradient.
type Formula = fn(&Backward<'_>, &mut Grads<'_>) -> Result<()>;

impl Derivative {
    /// Zero with respect to argument 0: a piecewise constant function.
    pub const ZERO: Derivative = Derivative::of_grad(|b, g| g.set(0, || b.grad(0)?.zeros_like()));

    /// A formula that reads no tensor but the gradient of the output.
    pub const fn of_grad(formula: Formula) -> Derivative {
        Derivative::Formula { saves: 0, saves_outputs: 0, formula }
    }

    /// A formula that reads the arguments of this mask, which has bit `i` for argument `i`.
    pub const fn of_inputs(saves: u32, formula: Formula) -> Derivative {
        Derivative::Formula { saves, saves_outputs: 0, formula }
    }

    /// A formula that reads the op's one output.
    pub const fn of_output(formula: Formula) -> Derivative {
        Derivative::Formula { saves: 0, saves_outputs: 0b1, formula }
    }
}

impl OpDef {
    /// An op of every dtype that has the functional form alone, no decomposition and no error samples.
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
            derivative,
            forms: Forms::New,
            dtypes: Dtypes::ALL,
            samples,
            errors: Vec::new,
            entry: Entry::new(),
        }
    }

    /// An element-wise op of one tensor, of every dtype and in all forms. The samples are of every rank and lie
    /// in -2..2; there are no error samples.
    pub const fn unary(schema: &'static str, dtypes: DtypeRule, derivative: Derivative) -> OpDef {
        let rule = Rule::Elementwise(rules::FIRST, dtypes);
        OpDef::new(schema, rule, derivative, || sample::unary(-2.0, 2.0)).forms(Forms::InPlace)
    }

    /// An element-wise op of two tensors that broadcast, of every dtype and in all forms. The samples are pairs of
    /// shapes and lie in -2..2; the error samples do not broadcast.
    pub const fn binary(schema: &'static str, dtypes: DtypeRule, derivative: Derivative) -> OpDef {
        let rule = Rule::Elementwise(rules::FIRST_TWO, dtypes);
        OpDef::new(schema, rule, derivative, sample::binary)
            .forms(Forms::InPlace)
            .errors(|| sample::broadcast_errors(&[]))
    }

    /// The same with these forms.
    #[must_use]
    pub const fn forms(mut self, forms: Forms) -> OpDef {
        self.forms = forms;
        self
    }

    /// The same for these dtypes.
    #[must_use]
    pub const fn dtypes(mut self, dtypes: Dtypes) -> OpDef {
        self.dtypes = dtypes;
        self
    }

    /// The same with these valid calls.
    #[must_use]
    pub const fn samples(mut self, samples: fn() -> Vec<Sample>) -> OpDef {
        self.samples = samples;
        self
    }

    /// The same with these calls that must fail.
    #[must_use]
    pub const fn errors(mut self, errors: fn() -> Vec<ErrorSample>) -> OpDef {
        self.errors = errors;
        self
    }
}
