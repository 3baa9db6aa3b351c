//! Powers and products of several matrices.

use super::matrix::{checked_shape, checked_square};
use crate::Tensor;
use crate::error::{Result, called};
use keyway_dispatcher::error::Error;
use std::borrow::Borrow;

impl Tensor {
    /// The power of each square matrix, `[.., n, n]`, by repeated squaring: the identity for an exponent of 0, a power of the
    /// inverse ([`Tensor::inv`]) for a negative one.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let fibonacci = Tensor::new([[1i64, 1], [1, 0]])?.matrix_power(10)?;
    /// assert_eq!(fibonacci.to_vec::<i64>()?, [89, 55, 55, 34]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Matrices that are not square; bool; a negative power of a singular matrix, or of another dtype than f32, f64, c64 and c128.
    #[doc(alias = "linalg_matrix_power")]
    pub fn matrix_power(&self, n: i64) -> Result<Tensor> {
        called("matrix_power", &["self", "n"], || {
            checked_shape("matrix_power", self)?;
            let mut base = if n < 0 { self.inv()? } else { self.clone() };
            let (mut exponent, mut made) = (n.unsigned_abs(), None::<Tensor>);
            while exponent > 0 {
                if exponent & 1 == 1 {
                    made = Some(match made {
                        Some(made) => made.matmul(&base)?,
                        None => base.clone(),
                    });
                }
                exponent >>= 1;
                if exponent > 0 {
                    base = base.matmul(&base)?;
                }
            }
            match made {
                Some(made) => made.contiguous(),
                None => {
                    let n = self.dim(-1)?;
                    let one = Tensor::eye_with(n, n, (self.dtype(), self.device()))?;
                    one.expand(self.shape())?.contiguous()
                }
            }
        })
    }

    /// The matrix exponential of each square matrix, `[.., n, n]` of f32, f64, c64 or c128, by scaling and squaring with a Padé approximant of
    /// degree 13, or 7 for f32 (N. Higham, "The scaling and squaring method for the matrix exponential revisited", 2005). The
    /// number of squarings follows from the largest 1-norm of the batch, which is read on the host.
    ///
    /// The gradient is that of the parts. The kernels are those of the library `keyway-linalg`.
    ///
    /// ```no_run
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let nilpotent = Tensor::new([[0.0f64, 3.0], [0.0, 0.0]])?;
    /// assert_eq!(nilpotent.matrix_exp()?.round()?.to_vec::<f64>()?, [1.0, 3.0, 0.0, 1.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Matrices that are not square; another dtype.
    #[doc(alias = "expm")]
    #[doc(alias = "linalg_matrix_exp")]
    pub fn matrix_exp(&self) -> Result<Tensor> {
        called("matrix_exp", &["self"], || {
            checked_square("matrix_exp", self)?;
            if self.elem_count() == 0 {
                return self.contiguous();
            }
            let is_wide = self.dtype().to_real() == crate::DType::F64;
            let (theta, coefficients) =
                if is_wide { (THETA_13, &PADE_13[..]) } else { (THETA_7, &PADE_7[..]) };
            let norm =
                self.detach().matrix_norm_with(1.0)?.max_all()?.to_dtype(crate::DType::F64)?.item::<f64>()?;
            // A norm that is not finite leads to NaN, without squarings.
            let squarings = if norm.is_finite() { (norm / theta).log2().ceil().max(0.0) as i32 } else { 0 };
            let a = self.mul(0.5f64.powi(squarings))?;
            let mut made = approximant(&a, coefficients)?;
            for _ in 0..squarings {
                made = made.matmul(&made)?;
            }
            Ok(made)
        })
    }

    /// The product of several matrices, in the order of the multiplications that needs the fewest operations (dynamic
    /// programming; T. Cormen et al., "Introduction to Algorithms", 15.2). The first may be a vector, which is a row, the last one
    /// too, which is a column.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let (a, b) = (Tensor::ones((10, 100))?, Tensor::ones((100, 5))?);
    /// let made = Tensor::multi_dot(&[&a, &b, &Tensor::ones((5, 2))?])?;
    /// assert_eq!((made.shape(), made.max_all()?.item::<f32>()?), (&[10, 2][..], 500.0));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Fewer than two tensors; tensors that are not matrices, or whose sizes do not match.
    #[doc(alias = "chain_matmul")]
    #[doc(alias = "linalg_multi_dot")]
    pub fn multi_dot<T: Borrow<Tensor>>(tensors: &[T]) -> Result<Tensor> {
        called("multi_dot", &["tensors"], || {
            let wrong = |expected: &str, got: String| {
                let (argument, expected) = ("tensors", expected.to_string());
                crate::Error::from(Error::Value { op: "multi_dot", argument, expected, got })
            };
            if tensors.len() < 2 {
                return Err(wrong("two tensors or more", tensors.len().to_string()));
            }
            let last = tensors.len() - 1;
            let mut matrices = Vec::with_capacity(tensors.len());
            for (i, t) in tensors.iter().map(Borrow::borrow).enumerate() {
                matrices.push(match t.rank() {
                    2 => t.clone(),
                    1 if i == 0 => t.unsqueeze(0)?,
                    1 if i == last => t.unsqueeze(-1)?,
                    _ => return Err(wrong("matrices, or a vector at an end", format!("{:?}", t.shape()))),
                });
            }
            let made = in_order(&matrices, &splits(&matrices), 0, last)?;
            let made = if tensors[last].borrow().rank() == 1 { made.squeeze(-1)? } else { made };
            if tensors[0].borrow().rank() == 1 { made.squeeze(0) } else { Ok(made) }
        })
    }
}

/// The table of the best first split of each range `i..=j` of matrices.
fn splits(matrices: &[Tensor]) -> Vec<Vec<usize>> {
    let count = matrices.len();
    let sizes: Vec<f64> =
        matrices.iter().map(|m| m.shape()[0] as f64).chain([matrices[count - 1].shape()[1] as f64]).collect();
    let (mut costs, mut best) = (vec![vec![0.0f64; count]; count], vec![vec![0; count]; count]);
    for length in 1..count {
        for i in 0..count - length {
            let j = i + length;
            costs[i][j] = f64::INFINITY;
            for k in i..j {
                let cost = costs[i][k] + costs[k + 1][j] + sizes[i] * sizes[k + 1] * sizes[j + 1];
                if cost < costs[i][j] {
                    (costs[i][j], best[i][j]) = (cost, k);
                }
            }
        }
    }
    best
}

/// The product of the matrices `i..=j`, split as the table says.
fn in_order(matrices: &[Tensor], splits: &[Vec<usize>], i: usize, j: usize) -> Result<Tensor> {
    if i == j {
        return Ok(matrices[i].clone());
    }
    let k = splits[i][j];
    in_order(matrices, splits, i, k)?.mm(&in_order(matrices, splits, k + 1, j)?)
}

/// The largest 1-norms for which the approximants of degree 13 in f64, and 7 in f32, have a backward error below the unit
/// roundoff (Higham 2005, table 2.3; for f32, A. Al-Mohy and N. Higham, 2009).
const THETA_13: f64 = 5.371920351148152;
const THETA_7: f64 = 3.92572478313866;

/// The coefficients of the numerators, of the lowest power first.
const PADE_13: [f64; 14] = [
    64764752532480000.0,
    32382376266240000.0,
    7771770303897600.0,
    1187353796428800.0,
    129060195264000.0,
    10559470521600.0,
    670442572800.0,
    33522128640.0,
    1323241920.0,
    40840800.0,
    960960.0,
    16380.0,
    182.0,
    1.0,
];
const PADE_7: [f64; 8] = [17297280.0, 8648640.0, 1995840.0, 277200.0, 25200.0, 1512.0, 56.0, 1.0];

/// `(V - U)⁻¹ (V + U)`, where `U` has the odd powers of the approximant and `V` the even ones. The coefficients are divided by the
/// first, so that f32 holds them.
fn approximant(a: &Tensor, coefficients: &[f64]) -> Result<Tensor> {
    let n = a.dim(-1)?;
    let one = Tensor::eye_with(n, n, (a.dtype(), a.device()))?;
    let (square, mut power) = (a.matmul(a)?, one);
    let (mut odd, mut even) = (None::<Tensor>, None::<Tensor>);
    let sum = |sum: Option<Tensor>, power: &Tensor, c: f64| -> Result<Option<Tensor>> {
        let addend = power.mul(c / coefficients[0])?;
        Ok(Some(match sum {
            Some(sum) => sum.add(&addend)?,
            None => addend,
        }))
    };
    for (i, pair) in coefficients.chunks(2).enumerate() {
        if i > 0 {
            power = if i == 1 { square.clone() } else { power.matmul(&square)? };
        }
        even = sum(even, &power, pair[0])?;
        odd = sum(odd, &power, pair[1])?;
    }
    let (Some(odd), Some(even)) = (odd, even) else { return Ok(power) };
    let odd = a.matmul(&odd)?;
    even.sub(&odd)?.solve_with(&even.add(&odd)?, true)
}
