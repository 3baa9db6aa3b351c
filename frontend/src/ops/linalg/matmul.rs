//! `matmul`

use crate::Tensor;
use crate::error::Result;
use crate::ops::composite::{one, tensor};
use crate::ops::def::{Derivative, Dtypes, OpDef, OpFlags};
use crate::ops::rules::{FIRST_TWO, wrong_shape};
use crate::ops::sample::{Sample, error, plain, sample};
use keyway_dispatcher::dims::{Dims, broadcast};
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Args, Plan, Rule, Strides};

impl Tensor {
    /// The matrix product of the last two dimensions, with leading dimensions broadcast; a vector is a row on the left and a
    /// column on the right.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::from_vec(vec![1.0f32, 2.0, 3.0, 4.0], (2, 1, 2))?;
    /// let b = Tensor::new([1.0f32, 10.0])?;
    /// assert_eq!(a.matmul(&b)?.to_vec::<f32>()?, [21.0, 43.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// 0-d tensors, or incompatible sizes.
    #[doc(alias = "broadcast_matmul")]
    pub fn matmul(&self, other: &Tensor) -> Result<Tensor> {
        DEF.run(&[self.into(), other.into()])
    }
}

/// The sizes of the product of tensors of these sizes, which are arguments `i` and `j`.
///
/// # Errors
/// `Shape`, `Broadcast`.
pub(crate) fn product_sizes(
    args: &Args<'_>,
    [i, j]: [usize; 2],
    a: &[usize],
    b: &[usize],
) -> RuleResult<Dims> {
    let few = |at, got: &[usize]| Err(wrong_shape(args, at, "at least one dimension".into(), got));
    let Some((&k, rows)) = a.split_last() else { return few(i, a) };
    // A vector is a row on the left and a column on the right; its dimension is removed from the result.
    let (inner, lead, columns) = match b {
        [] => return few(j, b),
        [n] => (*n, &[][..], None),
        [lead @ .., n, m] => (*n, lead, Some(*m)),
    };
    if inner != k {
        let place = if columns.is_none() { "elements" } else { "rows (the last dimension but one)" };
        let name = args.op.schema.param_name(i);
        let expected = format!("{k} {place}, as the last dimension of `{name}`, {a:?}, is {k}");
        return Err(wrong_shape(args, j, expected, b));
    }
    let mut sizes = match rows {
        [] => Dims::from_slice(lead),
        [own @ .., n] => {
            let mut sizes = broadcast(args.name(), own, lead)?;
            sizes.push(*n);
            sizes
        }
    };
    sizes.extend(columns);
    Ok(sizes)
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let sizes = product_sizes(args, [0, 1], args.tensor(0)?.sizes(), args.tensor(1)?.sizes())?;
    let dtype = args.promote(FIRST_TWO)?;
    let mut plan = Plan::one(dtype, sizes, dtype, Strides::Contiguous);
    plan.cast = FIRST_TWO;
    Ok(plan)
}

fn compose(args: &Args<'_>) -> Result<Tensor> {
    product(&tensor(args, 0)?, &tensor(args, 1)?)
}

fn product(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    match (a.rank(), b.rank()) {
        (1, 1) => a.dot(b),
        (2, 1) => a.mv(b),
        (1, 2) => b.t()?.mv(a),
        (2, 2) => a.mm(b),
        // All rows of `a` are multiplied by the same `b`: a single matrix product.
        (_, 1 | 2) => {
            let k = b.shape()[0];
            let rows: usize = a.shape()[..a.rank() - 1].iter().product();
            let mut sizes = Dims::from_slice(&a.shape()[..a.rank() - 1]);
            let flat = a.reshape_as_sizes(&[rows, k])?;
            let made = if b.rank() == 1 { flat.mv(b)? } else { flat.mm(b)? };
            sizes.extend(b.shape().get(1).copied());
            made.reshape_as_sizes(&sizes)
        }
        (1, _) => product(&a.unsqueeze(0)?, b)?.squeeze(-2),
        _ => batched(a, b),
    }
}

fn batched(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let (lead_a, [n, k]) = split(a);
    let (lead_b, [_, m]) = split(b);
    let lead = broadcast("matmul", lead_a, lead_b)?;
    let count = lead.iter().product();
    let flat = |t: &Tensor, rows: usize, columns: usize| -> Result<Tensor> {
        let mut sizes = lead.clone();
        sizes.extend([rows, columns]);
        t.expand(&sizes)?.reshape_as_sizes(&[count, rows, columns])
    };
    let mut sizes = lead.clone();
    sizes.extend([n, m]);
    flat(a, n, k)?.bmm(&flat(b, k, m)?)?.reshape_as_sizes(&sizes)
}

/// The leading sizes and the last two, of a tensor of rank 2 or more.
fn split(t: &Tensor) -> (&[usize], [usize; 2]) {
    match t.shape() {
        [lead @ .., n, m] => (lead, [*n, *m]),
        other => (other, [1, 1]),
    }
}

fn samples() -> Vec<Sample> {
    let shapes: [(&[usize], &[usize]); 14] = [
        (&[3], &[3]),
        (&[2, 3], &[3]),
        (&[3], &[3, 4]),
        (&[2, 3], &[3, 4]),
        (&[5, 2, 3], &[3, 4]),
        (&[5, 2, 3], &[3]),
        (&[3], &[5, 3, 4]),
        (&[2, 3], &[5, 3, 4]),
        (&[5, 1, 2, 3], &[2, 3, 4]),
        (&[2, 2, 3], &[2, 3, 4]),
        (&[2, 1, 2, 2, 3], &[2, 1, 3, 2]),
        (&[3], &[2, 1, 2, 3, 2]),
        (&[0, 2, 3], &[3, 2]),
        (&[2, 2, 0], &[2, 0, 3]),
    ];
    shapes.iter().map(|(a, b)| sample([plain(a), plain(b)])).collect()
}

/// `matmul`
pub static DEF: OpDef = OpDef::new(
    "matmul(Tensor self, Tensor other) -> Tensor",
    Rule::Structured(rule),
    Derivative::Composite,
    samples,
)
.dtypes(Dtypes::NUMERIC)
.errors(|| {
    vec![
        error([plain(&[2, 3]), plain(&[4, 2])], "3 rows"),
        error([plain(&[]), plain(&[3])], "at least one dimension"),
        error([plain(&[2, 2, 3]), plain(&[3, 3, 4])], "broadcast"),
    ]
})
.decomposed(|args| one(compose(args)))
.with(OpFlags::AUTOCAST);
