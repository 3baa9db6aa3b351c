//! `min`

use crate::DType;
use crate::Tensor;
use crate::error::Result;
use crate::ops::def::{Derivative, Dtypes, Entry, Forms, OpDef};
use crate::ops::rules::{not_empty, reduced_dim, reduced_sizes, require};
use crate::ops::sample::{Fill, SampleArg, error, plain, sample, tensor};
use keyway_dispatcher::dims::wrap_dim;
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Plan, Rule, Strides};

impl Tensor {
    /// The smallest elements along `dim`, which stays as size 1 if `keepdim`, and their places: the first of
    /// equals; NaN wins. Only the element at that place gets the gradient.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let (value, place) = Tensor::from_slice(&[1.0f32, 3.0])?.min(0, false)?;
    /// assert_eq!((value.item::<f32>()?, place.item::<i64>()?), (1.0, 0));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A dimension out of range or of size 0; bool.
    pub fn min(&self, dim: i64, keepdim: bool) -> Result<(Tensor, Tensor)> {
        DEF.run_two(&[self.into(), Arg::Int(dim), Arg::Bool(keepdim)])
    }
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let t = args.tensor(0)?;
    require(args, 0, t.dtype(), t.dtype() != DType::BOOL, "a number; cast bool first")?;
    let mask = reduced_dim(args, 1, t.ndim())?;
    not_empty(args, t.sizes(), mask)?;
    let sizes = reduced_sizes(t.sizes(), mask, args.bool(2)?);
    Ok(Plan::one(t.dtype(), sizes.clone(), t.dtype(), Strides::Contiguous).and(
        sizes,
        DType::I64,
        Strides::Contiguous,
    ))
}

/// `min`
pub static DEF: OpDef = OpDef {
    schema: "min(Tensor self, int dim, bool keepdim=False) -> (Tensor, Tensor)",
    rule: Rule::Dense(rule),
    decomposition: None,
    derivative: Derivative::Formula {
        saves: 0,
        saves_outputs: 0b10,
        formula: |b, g| {
            g.set(0, || {
                let sizes = b.sizes(0);
                let places = b.unreduce(&b.output(1)?, 0, b.arg(1), b.bool(2)?)?;
                let grad = b.unreduce(b.grad(0)?, 0, b.arg(1), b.bool(2)?)?;
                let mut along = vec![1; sizes.len()];
                let mut n = 1;
                if !sizes.is_empty() {
                    let dim = wrap_dim("min", b.int(1)?, sizes.len())?;
                    n = sizes[dim];
                    along[dim] = n;
                }
                let all = Tensor::from_vec((0..n as i64).collect(), &along)?.to_device(b.device(0))?;
                grad.mul(&places.eq(&all)?.to_dtype(grad.dtype())?)
            })
        },
    },
    forms: Forms::New,
    dtypes: Dtypes::NUMERIC,
    samples: || {
        let call = |sizes: &[usize], dim: i64, keep| {
            sample([tensor(sizes, Fill::Distinct(-2.0, 2.0)), SampleArg::Int(dim), SampleArg::Bool(keep)])
        };
        vec![
            call(&[], 0, false),
            call(&[5], 0, false),
            call(&[3, 4], 0, true),
            call(&[3, 4], -1, false),
            call(&[2, 3, 4], 1, false),
        ]
    },
    errors: || {
        vec![
            error([plain(&[3]), SampleArg::Int(1), SampleArg::Bool(false)], "out of range"),
            error([plain(&[3, 0]), SampleArg::Int(1), SampleArg::Bool(false)], "not empty"),
        ]
    },
    entry: Entry::new(),
};
