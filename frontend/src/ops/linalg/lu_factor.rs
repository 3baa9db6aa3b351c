//! `lu_factor`

use super::matrix::{LIBRARY, matrices, t};
use super::solve_triangular::solved;
use crate::autograd::Backward;
use crate::error::Result;
use crate::ops::def::{Derivative, Dtypes, OpDef, OpFlags};
use crate::ops::sample::{Fill, Sample, error, fixed, plain, sample, tensor};
use crate::{DType, Tensor};
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Args, Plan, Rule, Strides};

impl Tensor {
    /// The LU decomposition with partial pivoting of each matrix, `[.., m, n]` of f32, f64, c64 or c128, as `(LU, pivots)` for
    /// [`Tensor::lu_solve`]. `LU` has `U` in its upper triangle and `L` below the diagonal; the diagonal of `L` is 1 and not
    /// stored. `pivots` (i32, `[.., min(m, n)]`) are those of LAPACK: row `i` was exchanged with row `pivots[i] - 1`, for `i`
    /// in ascending order. [`Tensor::lu`] returns the factors as matrices.
    ///
    /// A singular matrix is decomposed too: `U` has a zero on its diagonal. Elements that are NaN or infinite lead to NaN.
    ///
    /// The gradient (PyTorch's `lu_factor_ex_backward`) needs a `U`, or its first `m` columns, without a zero on the diagonal;
    /// it is an error otherwise. The kernels are those of the library `keyway-linalg`.
    ///
    /// ```no_run
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let (lu, pivots) = Tensor::new([[1.0f32, 2.0], [2.0, 6.0]])?.lu_factor()?;
    /// assert_eq!(lu.to_vec::<f32>()?, [2.0, 6.0, 0.5, -1.0]);
    /// assert_eq!(pivots.to_vec::<i32>()?, [2, 2]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A tensor of fewer than two dimensions; another dtype.
    #[doc(alias = "linalg_lu_factor")]
    pub fn lu_factor(&self) -> Result<(Tensor, Tensor)> {
        DEF.run_pair(&[self.into()])
    }
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let a = matrices(args, 0)?;
    let pivots = a.with(&[a.rows.min(a.columns)]);
    let factors = Plan::one(a.dtype, a.with(&[a.rows, a.columns]), a.dtype, Strides::Contiguous);
    Ok(factors.and(pivots, DType::I32, Strides::Contiguous))
}

/// The permutation of `m` rows that the pivots describe, and its inverse, as i64 indices `[.., m]`: row `i` of `L U` is row
/// `permutation[i]` of the matrix.
pub(super) fn permutations(pivots: &Tensor, m: usize) -> Result<[Tensor; 2]> {
    let (k, device) = (pivots.dim(-1)?, pivots.device());
    let count = pivots.shape()[..pivots.rank() - 1].iter().product::<usize>();
    let exchanges = pivots.to_vec::<i32>()?;
    let (mut forward, mut inverse) = (Vec::with_capacity(count * m), vec![0i64; count * m]);
    for nth in 0..count {
        let mut rows: Vec<i64> = (0..m as i64).collect();
        for (i, &pivot) in exchanges[nth * k..][..k].iter().enumerate() {
            // Pivots out of range were passed by the caller, and `lu_solve` refuses them.
            let other = usize::try_from(pivot - 1).unwrap_or(i).min(m - 1);
            rows.swap(i, other);
        }
        for (i, &row) in rows.iter().enumerate() {
            inverse[nth * m + row as usize] = i as i64;
        }
        forward.extend(rows);
    }
    let mut sizes = pivots.shape().to_vec();
    sizes[pivots.rank() - 1] = m;
    let tensor = |list: Vec<i64>| Tensor::from_vec(list, &sizes[..])?.to_device(device);
    Ok([tensor(forward)?, tensor(inverse)?])
}

/// The rows of each matrix in the order of `index` (`[.., m]`).
pub(super) fn permuted(matrix: &Tensor, index: &Tensor) -> Result<Tensor> {
    matrix.gather(-2, &index.unsqueeze(-1)?.expand(matrix.shape())?)
}

/// For square `A = P L U`: `gA = P L⁻ᵀ [tril(Lᵀ gL, -1) + triu(gU Uᵀ)] U⁻ᵀ`. The further columns of a wide matrix, `A₂ = P L U₂`,
/// and the further rows of a tall one, `L₂ U`, have gradients that are also part of that of the square block.
fn derivative(b: &Backward<'_>) -> Result<Tensor> {
    let (lu, grad) = (b.output(0)?, b.grad(0)?);
    let &[.., m, n] = lu.shape() else { return Ok(grad.clone()) };
    let k = m.min(n);
    let block = |t: &Tensor| t.narrow(-2, 0, k)?.narrow(-1, 0, k);
    let (square, of_square) = (block(&lu)?, block(grad)?);
    let l = square.tril_with(-1)?.add(&Tensor::eye_with(k, k, (lu.dtype(), lu.device()))?)?;
    let u = square.triu()?;
    let mut lower = t(&l)?.matmul(&of_square.tril_with(-1)?)?;
    let mut upper = of_square.triu()?.matmul(&t(&u)?)?;
    let behind = |t: &Tensor, dim: i64, size: usize| t.narrow(dim, k, size - k);
    if n > k {
        let (u, of_u) = (behind(&lu, -1, n)?, behind(grad, -1, n)?);
        lower = lower.sub(&of_u.matmul(&t(&u)?)?)?;
    }
    if m > k {
        let (l, of_l) = (behind(&lu, -2, m)?, behind(grad, -2, m)?);
        upper = upper.sub(&t(&l)?.matmul(&of_l)?)?;
    }
    let inner = lower.tril_with(-1)?.add(&upper.triu()?)?;
    // U⁻ᵀ from the right, L⁻ᵀ from the left.
    let right = |x: &Tensor| solved(&t(&u)?, x, [false, false, false]);
    let left = |x: &Tensor| solved(&t(&l)?, x, [true, true, true]);
    let mut made = left(&right(&inner)?)?;
    if n > k {
        made = Tensor::cat(&[&made, &left(&behind(grad, -1, n)?)?], -1)?;
    }
    if m > k {
        made = Tensor::cat(&[&made, &right(&behind(grad, -2, m)?)?], -2)?;
    }
    let [_, inverse] = permutations(&b.output(1)?, m)?;
    permuted(&made, &inverse)
}

fn samples() -> Vec<Sample> {
    let call = |sizes: &[usize]| sample([tensor(sizes, Fill::Permuted)]);
    vec![
        call(&[1, 1]),
        call(&[4, 4]),
        call(&[3, 5]),
        call(&[5, 3]),
        call(&[2, 3, 3]),
        call(&[2, 2, 3, 2]),
        call(&[0, 0]),
        call(&[2, 0]),
        call(&[0, 2]),
        call(&[0, 3, 3]),
        call(&[9, 9]),
    ]
}

/// `lu_factor`
pub static DEF: OpDef = OpDef::new(
    "lu_factor(Tensor self) -> (Tensor, Tensor)",
    Rule::Structured(rule),
    Derivative::Formula { saves: 0, saves_outputs: 0b11, formula: |b, g| g.set(0, || derivative(b)) },
    samples,
)
.dtypes(Dtypes::F32_F64)
.errors(|| {
    vec![
        error([plain(&[3])], "a matrix or a batch of matrices"),
        error([fixed(&[2, 2], DType::I64, Fill::Index(3))], "f32, f64, c64 or c128"),
    ]
})
.with(OpFlags::HOLOMORPHIC)
.in_library(LIBRARY);
