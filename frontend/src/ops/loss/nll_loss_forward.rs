//! `nll_loss_forward`

use super::nll_loss_backward;
use crate::DType;
use crate::autograd::AutogradError;
use crate::ops::def::{Derivative, Dtypes, Entry, Forms, OpDef};
use crate::ops::rules::require;
use crate::ops::sample::{Fill, SampleArg, error, fixed, index, plain, sample};
use keyway_dispatcher::dims::Dims;
use keyway_dispatcher::error::{Error, Result as RuleResult};
use keyway_dispatcher::op::{Arg, Args, Plan, Rule, Strides};

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let (t, target) = (args.tensor(0)?, args.tensor(1)?);
    require(args, 0, t.dtype(), t.dtype().is_float(), "a float dtype")?;
    require(args, 1, target.dtype(), target.dtype().is_integer(), "integers: classes")?;
    let wrong = |argument, expected: String, got: &[usize]| {
        Err(Error::Shape { op: args.name(), argument, expected, got: Dims::from_slice(got) })
    };
    if t.ndim() == 0 {
        return wrong(
            "self",
            "of one dimension or more, one of which holds the classes".to_string(),
            t.sizes(),
        );
    }
    let mut sizes = Dims::from_slice(t.sizes());
    let classes = sizes.remove(usize::from(t.ndim() > 1));
    if target.sizes() != sizes.as_slice() {
        return wrong(
            "target",
            format!("of shape {sizes:?}, that of the input without its classes"),
            target.sizes(),
        );
    }
    if let Some(weight) = args.optional_tensor(2)?
        && weight.sizes() != [classes]
    {
        return wrong("weight", format!("of shape [{classes}], a weight for each class"), weight.sizes());
    }
    let mut plan = Plan::one(t.dtype(), sizes.clone(), t.dtype(), Strides::Contiguous).and(
        sizes,
        t.dtype(),
        Strides::Contiguous,
    );
    plan.cast = 0b101;
    plan.cast_index = 0b10;
    Ok(plan)
}

/// `nll_loss_forward`: for each target the negated element of its class times the class's weight, and that
/// weight; both 0 where the target is ignored. The weights are constants to the graph.
pub static DEF: OpDef = OpDef {
    schema: "nll_loss_forward(Tensor self, Tensor target, Tensor? weight, int ignore_index) -> (Tensor, Tensor)",
    rule: Rule::Dense(rule),
    decomposition: None,
    derivative: Derivative::Formula {
        saves: 0b10,
        saves_outputs: 0b10,
        formula: |b, g| {
            g.set(0, || {
                let sizes = b.sizes(0);
                let classes = sizes[usize::from(sizes.len() > 1)] as i64;
                let (target, weights) = (b.input(1)?, b.output(1)?.detach());
                let values =
                    [b.grad(0)?.into(), (&target).into(), (&weights).into(), Arg::Int(classes), b.arg(3)];
                nll_loss_backward::DEF.run(&values)
            })?;
            let reason = "the gradient of class weights is not written".to_string();
            g.set(2, || Err(AutogradError::Missing { op: "nll_loss".to_string(), reason }.into()))
        },
    },
    forms: Forms::New,
    dtypes: Dtypes::FLOAT,
    samples: || {
        let weight = fixed(&[3], DType::F64, Fill::Values(vec![0.5, 1.5, 2.0]));
        vec![
            sample([plain(&[3]), index(&[], 3), SampleArg::None, SampleArg::Int(-100)]),
            sample([plain(&[4, 3]), index(&[4], 3), SampleArg::None, SampleArg::Int(1)]),
            sample([plain(&[2, 3, 4]), index(&[2, 4], 3), weight, SampleArg::Int(-100)]),
        ]
    },
    errors: || {
        vec![error([plain(&[2, 3]), index(&[3], 3), SampleArg::None, SampleArg::Int(-100)], "of shape")]
    },
    entry: Entry::new(),
};
