//! `lu_solve`
//!
//! Arguments:
//! - `pivots`: the pivots of the factorisation.

use super::lu_factor::{permutations, permuted};
use super::matrix::{LIBRARY, h, matrices, solution};
use super::solve_triangular::solved;
use crate::autograd::{Backward, Grads};
use crate::error::Result;
use crate::ops::def::{Derivative, Dtypes, OpDef, OpFlags};
use crate::ops::rules::wrong_shape;
use crate::ops::sample::{Fill, Sample, SampleArg, error, fixed, plain, sample, tensor};
use crate::{DType, Tensor};
use keyway_dispatcher::dims::broadcast;
use keyway_dispatcher::error::{Error, Result as RuleResult};
use keyway_dispatcher::op::{Arg, Args, Plan, Rule, Strides};

impl Tensor {
    /// The solution `X` of `A X = B` from the decomposition of [`Tensor::lu_factor`]: `self` is its `LU` (`[.., n, n]`),
    /// `pivots` its second result, `b` is `[.., n, k]`. Leading dimensions broadcast.
    ///
    /// The kernels are those of the library `keyway-linalg`.
    ///
    /// ```no_run
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let (lu, pivots) = Tensor::new([[1.0f32, 2.0], [2.0, 6.0]])?.lu_factor()?;
    /// let x = lu.lu_solve(&pivots, &Tensor::new([[3.0f32], [8.0]])?)?;
    /// assert_eq!(x.to_vec::<f32>()?, [1.0, 1.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Sizes that do not match; different dtypes; leading dimensions that do not broadcast. A singular matrix: the error names
    /// the zero on the diagonal of `U`, and the index of the matrix in the batch. Pivots that are no row numbers.
    #[doc(alias = "linalg_lu_solve")]
    pub fn lu_solve(&self, pivots: &Tensor, b: &Tensor) -> Result<Tensor> {
        self.lu_solve_with(pivots, b, true, false)
    }

    /// [`Tensor::lu_solve`]; with `adjoint` the solution of `Aᴴ X = B`, without `left` that of `X A = B`, or `X Aᴴ = B`.
    ///
    /// ```no_run
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let (lu, pivots) = Tensor::new([[1.0f32, 2.0], [2.0, 6.0]])?.lu_factor()?;
    /// let x = lu.lu_solve_with(&pivots, &Tensor::new([[3.0f32, 8.0]])?, false, false)?;
    /// assert_eq!(x.to_vec::<f32>()?, [1.0, 1.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The same.
    pub fn lu_solve_with(&self, pivots: &Tensor, b: &Tensor, left: bool, adjoint: bool) -> Result<Tensor> {
        DEF.run(&[self.into(), pivots.into(), b.into(), Arg::Bool(left), Arg::Bool(adjoint)])
    }
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let (dtype, sizes) = solution(args, [0, 2], args.bool(3)?)?;
    let (lu, pivots) = (matrices(args, 0)?, args.tensor(1)?);
    if pivots.dtype() != DType::I32 {
        let (argument, expected) = ("pivots", "i32, as `lu_factor` returns them".to_string());
        return Err(Error::DType { op: args.name(), argument, expected, got: pivots.dtype() });
    }
    let expected = || format!("of {} elements in the last dimension, as `lu_factor` returns them", lu.rows);
    match pivots.sizes() {
        [lead @ .., n] if *n == lu.rows => {
            let all = &sizes[..sizes.len() - 2];
            let joined = broadcast(args.name(), all, lead)?;
            if joined[..] != *all {
                return Err(wrong_shape(args, 1, format!("of leading dimensions {all:?}"), pivots.sizes()));
            }
        }
        got => return Err(wrong_shape(args, 1, expected(), got)),
    }
    Ok(Plan::one(dtype, sizes, dtype, Strides::Contiguous))
}

/// From `L U X = Pᵀ B`: `gB = A⁻ᴴ gX`, `gL = -Pᵀ gB (U X)ᴴ`, `gU = -U⁻ᴴ gX Xᴴ`. From `Uᴴ Lᴴ Z = B` with `Z = Pᵀ X` for the adjoint:
/// `gB = A⁻¹ gX`, `gL = -Z (U gB)ᴴ`, `gU = -Lᴴ Z gBᴴ`.
fn derivative(b: &Backward<'_>, g: &mut Grads<'_>) -> Result<()> {
    let (lu, pivots, x) = (b.input(0)?, b.input(1)?, b.output(0)?);
    let (left, adjoint) = (b.bool(3)?, b.bool(4)?);
    let of_b = lu.lu_solve_with(&pivots, b.grad(0)?, left, !adjoint)?;
    g.set(0, || {
        // X A = B is Aᴴ Xᴴ = Bᴴ.
        let side = |x: &Tensor| if left { Ok(x.clone()) } else { h(x) };
        let (x, of_x, of_b, adjoint) = (side(&x)?, side(b.grad(0)?)?, side(&of_b)?, adjoint == left);
        let n = lu.dim(-1)?;
        let l = lu.tril_with(-1)?.add(&Tensor::eye_with(n, n, (lu.dtype(), lu.device()))?)?;
        let u = lu.triu()?;
        let [forward, _] = permutations(&pivots, n)?;
        let exchanged = |x: &Tensor| {
            let lead = &x.shape()[..x.rank() - 2];
            permuted(x, &forward.expand([lead, &[n]].concat())?)
        };
        let (of_l, of_u) = if adjoint {
            let z = exchanged(&x)?;
            (z.matmul(&h(&u.matmul(&of_b)?)?)?, h(&l)?.matmul(&z)?.matmul(&h(&of_b)?)?)
        } else {
            let of_u = solved(&h(&u)?, &of_x, [false, true, false])?.matmul(&h(&x)?)?;
            (exchanged(&of_b)?.matmul(&h(&u.matmul(&x)?)?)?, of_u)
        };
        of_l.tril_with(-1)?.add(&of_u.triu()?)?.neg()
    })?;
    g.set(2, || Ok(of_b.clone()))
}

fn samples() -> Vec<Sample> {
    let pivots = |lead: &[usize], list: &[f64]| {
        fixed(&[lead, &[list.len()]].concat(), DType::I32, Fill::Values(list.to_vec()))
    };
    let call = |lead: &[usize], list: &[f64], b: &[usize], left, adjoint| {
        let n = list.len();
        let lu = tensor(&[lead, &[n, n]].concat(), Fill::Definite);
        sample([lu, pivots(lead, list), plain(b), SampleArg::Bool(left), SampleArg::Bool(adjoint)])
    };
    vec![
        call(&[], &[1.0], &[1, 1], true, false),
        call(&[], &[3.0, 3.0, 3.0], &[3, 2], true, false),
        call(&[], &[2.0, 3.0, 3.0], &[3, 2], true, true),
        call(&[], &[2.0, 3.0, 3.0], &[2, 3], false, false),
        call(&[], &[3.0, 2.0, 3.0], &[1, 3], false, true),
        call(&[2], &[2.0, 3.0, 3.0], &[2, 3, 2], true, false),
        call(&[2], &[2.0, 2.0], &[2, 3], true, false),
        call(&[], &[2.0, 2.0], &[3, 2, 2], true, true),
        call(&[], &[], &[0, 2], true, false),
        call(&[], &[2.0, 2.0], &[2, 0], true, false),
    ]
}

/// `lu_solve`
pub static DEF: OpDef = OpDef::new(
    "lu_solve(Tensor self, Tensor pivots, Tensor b, bool left=True, bool adjoint=False) -> Tensor",
    Rule::Structured(rule),
    Derivative::Formula { saves: 0b11, saves_outputs: 0b1, formula: derivative },
    samples,
)
.dtypes(Dtypes::F32_F64)
.errors(|| {
    let call = |lu, pivots, b, message| {
        error([lu, pivots, b, SampleArg::Bool(true), SampleArg::Bool(false)], message)
    };
    let pivots = |list: &[f64]| fixed(&[list.len()], DType::I32, Fill::Values(list.to_vec()));
    let zero = || tensor(&[2, 2], Fill::Values(vec![1.0, 1.0, 1.0, 0.0]));
    vec![
        call(plain(&[2, 3]), pivots(&[1.0, 2.0]), plain(&[2, 1]), "a square matrix"),
        call(plain(&[2, 2]), pivots(&[1.0]), plain(&[2, 1]), "of 2 elements"),
        call(plain(&[2, 2]), pivots(&[1.0, 2.0]), plain(&[3, 1]), "of 2 rows"),
        call(plain(&[2, 2]), pivots(&[1.0, 3.0]), plain(&[2, 1]), "from 1 to 2"),
        call(plain(&[2, 2]), fixed(&[2], DType::I64, Fill::Index(1)), plain(&[2, 1]), "i32"),
        call(zero(), pivots(&[1.0, 2.0]), plain(&[2, 1]), "element [1, 1] of U is 0"),
    ]
})
.with(OpFlags::COMPLEX)
.in_library(LIBRARY);
