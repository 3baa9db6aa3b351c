//! `einsum`
//!
//! Arguments:
//! - `equation`: the subscripts of each operand and of the result, as in `ij,jk->ik`.
//! - `operands`: the tensors.

use super::equation::{Equation, Label, pair};
use crate::error::Result;
use crate::ops::composite::{cast, one, widened};
use crate::ops::def::{Derivative, Dtypes, OpDef, OpFlags};
use crate::ops::rules::{require, wrong_shape, wrong_value};
use crate::ops::sample::{ErrorSample, Fill, Role, Sample, SampleArg, TensorSample, error, sample};
use crate::tensor::refs;
use crate::{DType, Tensor};
use keyway_dispatcher::dims::{Dims, contiguous_strides};
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Plan, Rule, Strides};
use keyway_dispatcher::tensor::TensorRef;
use std::borrow::Borrow;
use std::collections::BTreeMap;

impl Tensor {
    /// Sums of products in Einstein notation: a letter names a dimension, and a letter that the result lacks is summed over.
    /// `...` stands for all other dimensions, which broadcast; a repeated letter in one operand takes its diagonal; a dimension
    /// of size 1 is expanded. Without `->` the result has the dimensions of `...`, then in alphabetical order (capitals first)
    /// the letters that occur once. Operands are multiplied from left to right.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::from_vec(vec![1.0f32, 2.0, 3.0, 4.0], (2, 2))?;
    /// assert_eq!(Tensor::einsum("ij,kj->ik", &[&a, &a])?.to_vec::<f32>()?, [5.0, 11.0, 11.0, 25.0]);
    /// assert_eq!(Tensor::einsum("ii", &[&a])?.item::<f32>()?, 5.0);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// An equation that does not match the operands; different sizes for one letter.
    pub fn einsum<T: Borrow<Tensor>>(equation: &str, operands: &[T]) -> Result<Tensor> {
        DEF.run(&[Arg::Str(equation), Arg::Tensors(&refs(operands))])
    }
}

/// A tensor with a distinct label for each dimension.
struct Labelled {
    t: Tensor,
    labels: Vec<Label>,
}

impl Labelled {
    /// Takes the diagonal of each pair of dimensions with equal labels.
    fn new(mut t: Tensor, mut labels: Vec<Label>) -> Result<Labelled> {
        while let Some((i, j)) = pair(&labels) {
            t = t.diagonal_with(0, i as i64, j as i64)?;
            labels.remove(j);
            let label = labels.remove(i);
            labels.push(label);
        }
        Ok(Labelled { t, labels })
    }

    fn place(&self, label: Label) -> Option<usize> {
        self.labels.iter().position(|&own| own == label)
    }

    fn size(&self, label: Label) -> usize {
        self.place(label).map_or(1, |d| self.t.shape()[d])
    }

    /// Sums over every dimension whose label `keep` rejects.
    fn keeping(self, keep: impl Fn(Label) -> bool) -> Result<Labelled> {
        let gone = self.labels.iter().enumerate().filter(|&(_, &label)| !keep(label));
        let dims: Vec<i64> = gone.map(|(d, _)| d as i64).collect();
        if dims.is_empty() {
            return Ok(self);
        }
        let sum = widened(&self.t)?.sum(&dims)?;
        // A sum of integers is widened to i64; the result has the dtype of the factors.
        let t = if sum.dtype().is_inexact() { sum } else { cast(sum, self.t.dtype())? };
        Ok(Labelled { t, labels: self.labels.into_iter().filter(|&label| keep(label)).collect() })
    }

    /// Permutes the dimensions to this order.
    fn ordered(&self, labels: impl Iterator<Item = Label>) -> Result<Tensor> {
        let order: Vec<i64> = labels.filter_map(|label| self.place(label)).map(|d| d as i64).collect();
        self.t.permute(&order)
    }

    /// Permutes and flattens to three dimensions, one per group of labels; a label that the tensor lacks, or has with size 1,
    /// is expanded.
    fn grouped(&self, groups: [&[Label]; 3], sizes: &BTreeMap<Label, usize>) -> Result<Tensor> {
        let all = groups.concat();
        let size = |label: &Label| sizes.get(label).copied().unwrap_or(1);
        let full: Dims = all.iter().map(size).collect();
        let flat = groups.map(|group| group.iter().map(size).product::<usize>());
        self.ordered(all.into_iter())?.expand(&full)?.reshape_as_sizes(&flat)
    }
}

/// The product of two operands, summed over each label that is no longer `needed`.
fn product(a: Labelled, b: Labelled, needed: impl Fn(Label) -> bool) -> Result<Labelled> {
    let a = a.keeping(|label| needed(label) || b.place(label).is_some())?;
    let b = b.keeping(|label| needed(label) || a.place(label).is_some())?;
    let sizes: BTreeMap<Label, usize> = a
        .labels
        .iter()
        .chain(&b.labels)
        .map(|&label| (label, joined(a.size(label), b.size(label))))
        .collect();
    let of = |from: &Labelled, choose: &dyn Fn(Label) -> bool| -> Vec<Label> {
        from.labels.iter().copied().filter(|&label| choose(label)).collect()
    };
    let (in_a, in_b) = (|label| a.place(label).is_some(), |label| b.place(label).is_some());
    let batch = of(&a, &|label| in_b(label) && needed(label));
    let summed = of(&a, &|label| in_b(label) && !needed(label));
    let (rows, columns) = (of(&a, &|label| !in_b(label)), of(&b, &|label| !in_a(label)));
    let left = a.grouped([&batch, &rows, &summed], &sizes)?;
    let right = b.grouped([&batch, &summed, &columns], &sizes)?;
    let labels = [batch, rows, columns].concat();
    let full: Dims = labels.iter().map(|label| sizes.get(label).copied().unwrap_or(1)).collect();
    Ok(Labelled { t: left.bmm(&right)?.reshape_as_sizes(&full)?, labels })
}

/// The broadcast size of two sizes of one label.
fn joined(a: usize, b: usize) -> usize {
    if a == 1 { b } else { a }
}

/// The size of each label.
fn sizes_of_labels(
    args: &Args<'_>,
    equation: &Equation,
    operands: &[&TensorRef],
) -> RuleResult<BTreeMap<Label, usize>> {
    let mut known: BTreeMap<Label, usize> = BTreeMap::new();
    for (labels, t) in equation.operands.iter().zip(operands) {
        for (d, (&label, &size)) in labels.iter().zip(t.sizes()).enumerate() {
            let twice = labels[..d].iter().zip(t.sizes()).find(|(l, _)| **l == label).map(|(_, &s)| s);
            let before = known.entry(label).or_insert(size);
            *before = joined(*before, size);
            if (size != 1 && size != *before) || twice.is_some_and(|first| first != size) {
                let expected = format!("of one size or 1 in every dimension of one label, as of {label}");
                return Err(wrong_shape(args, 1, expected, t.sizes()));
            }
        }
    }
    Ok(known)
}

/// Parses the equation for these operands.
fn parsed(args: &Args<'_>, operands: &[&TensorRef]) -> RuleResult<Equation> {
    let ndims: Vec<usize> = operands.iter().map(|t| t.ndim()).collect();
    Equation::parse(args.str(0)?, &ndims).map_err(|expected| wrong_value(args, 0, expected))
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let given = args.tensors(1)?;
    let Some(first) = given.first() else {
        return Err(wrong_value(args, 1, "one operand or more".into()));
    };
    let numbers = given.iter().any(|t| t.dtype() != DType::BOOL);
    require(args, 1, first.dtype(), numbers, "a number dtype")?;
    let equation = parsed(args, given)?;
    let known = sizes_of_labels(args, &equation, given)?;
    let size = |label: &Label| known.get(label).copied().unwrap_or(1);
    let sizes: Dims = equation.result.iter().map(size).collect();
    // The last product or sum is contiguous in the order of its labels.
    let strides = match equation.order() {
        Some(order) => {
            let full: Vec<usize> = order.iter().map(size).collect();
            let made = contiguous_strides(&full);
            let of = |label: &Label| order.iter().position(|l| l == label).map_or(0, |d| made[d]);
            Strides::exact(equation.result.iter().map(of).collect())
        }
        None => Strides::Contiguous,
    };
    let dtype = args.promote(0b10)?;
    let mut plan = Plan::one(dtype, sizes, dtype, strides);
    plan.cast = 0b10;
    Ok(plan)
}

fn compose(args: &Args<'_>) -> Result<Tensor> {
    let given = args.tensors(1)?;
    let Equation { operands, result } = parsed(args, given)?;
    // Whether an operand from index `k` on has this label.
    let later = |k: usize, label: Label| operands[k..].iter().any(|labels| labels.contains(&label));
    let mut made: Option<Labelled> = None;
    for (k, (labels, t)) in operands.iter().zip(given).enumerate() {
        let t = Tensor::from_ref((*t).clone());
        // With more than one product f16 and bf16 are computed in f32 and rounded once, at the end.
        let next = Labelled::new(if given.len() > 2 { widened(&t)? } else { t }, labels.clone())?;
        made = Some(match made {
            None => next,
            Some(so_far) => product(so_far, next, |label| result.contains(&label) || later(k + 1, label))?,
        });
    }
    let Some(made) = made else { return Err(wrong_value(args, 1, "one operand or more".into()).into()) };
    let made = made.keeping(|label| result.contains(&label))?.ordered(result.iter().copied())?;
    cast(made, args.promote(0b10)?)
}

fn call(equation: &'static str, shapes: &[&[usize]]) -> [SampleArg; 2] {
    let operand = |sizes: &&[usize]| TensorSample {
        sizes: sizes.to_vec(),
        fill: Fill::Uniform(-2.0, 2.0),
        role: Role::Tested,
    };
    [SampleArg::Str(equation), SampleArg::Tensors(shapes.iter().map(operand).collect())]
}

fn samples() -> Vec<Sample> {
    let cases: [(&'static str, &[&[usize]]); 18] = [
        ("->", &[&[]]),
        ("i->", &[&[3]]),
        ("ij->ji", &[&[2, 3]]),
        ("ii->i", &[&[3, 3]]),
        ("iji", &[&[2, 3, 2]]),
        ("i,i->", &[&[3], &[3]]),
        ("i,j", &[&[2], &[3]]),
        (",i->i", &[&[], &[3]]),
        ("ij,jk", &[&[2, 3], &[3, 4]]),
        ("bij,bjk->bik", &[&[2, 2, 3], &[2, 3, 2]]),
        ("ij,ij->ij", &[&[2, 3], &[2, 3]]),
        ("ijk,j->ik", &[&[2, 3, 2], &[1]]),
        ("ij,jk->i", &[&[2, 3], &[3, 2]]),
        ("...ij, ...jk -> ...ik", &[&[2, 1, 2, 3], &[3, 3, 2]]),
        ("b...->...", &[&[2, 3, 2]]),
        ("ij,jk,kl->il", &[&[2, 3], &[3, 2], &[2, 2]]),
        ("abcde,ea->bd", &[&[2, 1, 2, 2, 2], &[2, 2]]),
        ("ij,jk->ik", &[&[2, 0], &[0, 3]]),
    ];
    cases.iter().map(|(equation, shapes)| sample(call(equation, shapes))).collect()
}

fn errors() -> Vec<ErrorSample> {
    vec![
        error(call("ij,jk", &[&[2, 3]]), "labels for 1 operands"),
        error(call("i", &[&[2, 3]]), "the 2 dimensions of operand 0"),
        error(call("ij->ik", &[&[2, 3]]), "each of an operand"),
        error(call("i j 1", &[&[2, 3]]), "not `1`"),
        error(call("ij,jk", &[&[2, 3], &[2, 3]]), "of one size or 1"),
        error(call("ii", &[&[2, 1]]), "of one size or 1"),
    ]
}

/// `einsum`
pub static DEF: OpDef = OpDef::new(
    "einsum(str equation, Tensor[] operands) -> Tensor",
    Rule::Structured(rule),
    Derivative::Composite,
    samples,
)
.dtypes(Dtypes::NUMERIC)
.errors(errors)
.decomposed(|args| one(compose(args)))
.viewing(&["diagonal"])
.with(OpFlags::AUTOCAST);
