//! What the results of each op must satisfy, without another factorisation: products of the factors, residuals of equations,
//! orthonormal columns, triangles, signs and phases.

use super::matrix::{C, Matrix};

/// A condition that does not hold.
pub struct Wrong {
    /// The condition.
    pub what: &'static str,
    /// The largest error.
    pub error: f64,
    /// The largest allowed error.
    pub bound: f64,
}

/// The arguments and results of one matrix of a batch.
pub struct Judge<'a> {
    /// The op.
    pub op: &'a str,
    /// Its truth arguments.
    pub flags: [bool; 3],
    /// Whether the matrices are real.
    pub is_real: bool,
    /// The matrices that are arguments.
    pub given: &'a [Matrix],
    /// The pivots that are an argument or a result.
    pub pivots: &'a [i64],
    /// The matrices that are results; vectors have one row.
    pub made: &'a [Matrix],
    /// The allowed error of sizes near 1.
    pub unit: f64,
}

type Outcome = Result<(), Wrong>;

impl Judge<'_> {
    /// Checks all conditions of the op.
    ///
    /// # Errors
    /// The first that does not hold.
    pub fn check(&self) -> Outcome {
        let (a, made) = (&self.given[0], self.made);
        let size = a.norm().max(1.0);
        match self.op {
            "cholesky" => {
                let l = if self.flags[0] { made[0].h() } else { made[0].clone() };
                self.same("the triangle", &l.lower(), &l, 0.0)?;
                self.diagonal(&l)?;
                self.same("L Lᴴ", &l.times(&l.h()), &a.hermitian(), size)
            }
            "eigh" | "eigvalsh" => {
                let values: Vec<f64> = made[0].values.iter().map(|z| z.re).collect();
                self.holds("ascending values", values.windows(2).all(|pair| pair[0] <= pair[1]))?;
                if self.op == "eigvalsh" {
                    // The singular values of a matrix that is shifted until it is positive definite.
                    let shift = 2.0 * size;
                    let a = a.hermitian();
                    let shifted = Matrix::from_fn(a.rows, a.rows, |i, j| {
                        a.at(i, j) + if i == j { C::new(shift, 0.0) } else { C::default() }
                    });
                    let wanted = shifted.singular_values().into_iter().rev().map(|x| C::new(x - shift, 0.0));
                    let wanted = Matrix { rows: 1, columns: values.len(), values: wanted.collect() };
                    return self.same("the eigenvalues", &made[0], &wanted, size);
                }
                self.columns(&made[1])?;
                self.phases(&made[1])?;
                let product = made[1].times(&Matrix::diagonal(&made[0].values)).times(&made[1].h());
                self.same("V diag(L) Vᴴ", &product, &a.hermitian(), size)
            }
            "eig" | "eigvals" => self.eigenvalues(a, size),
            "lu_factor" => {
                let (lu, k) = (&made[0], a.rows.min(a.columns));
                let l = lu.corner(a.rows, k).lower().unit();
                let mut product = l.times(&lu.corner(k, a.columns).upper());
                self.holds("multipliers of at most 1", l.largest() <= 2f64.sqrt() + self.unit || k == 0)?;
                for (i, &pivot) in self.pivots.iter().enumerate().rev() {
                    self.holds("pivots", (i as i64 + 1..=a.rows as i64).contains(&pivot))?;
                    exchange(&mut product, i, pivot as usize - 1);
                }
                self.same("P L U", &product, a, size)
            }
            "lu_solve" => {
                let mut matrix = a.lower().unit().times(&a.upper());
                for (i, &pivot) in self.pivots.iter().enumerate().rev() {
                    exchange(&mut matrix, i, pivot as usize - 1);
                }
                self.solution(&if self.flags[1] { matrix.h() } else { matrix }, self.flags[0])
            }
            "solve" => self.solution(a, self.flags[0]),
            "solve_triangular" => {
                let [upper, left, unit] = self.flags;
                let triangle = if upper { a.upper() } else { a.lower() };
                self.solution(&if unit { triangle.unit() } else { triangle }, left)
            }
            "inv" => self.same("A A⁻¹", &a.times(&made[0]), &Matrix::one(a.rows), size * made[0].norm()),
            "pinv" => {
                let p = &made[0];
                let (left, right) = (a.times(p), p.times(a));
                let size = size * p.norm();
                self.same("A P A", &left.times(a), a, size * a.norm())?;
                self.same("P A P", &right.times(p), p, size * p.norm())?;
                self.same("(A P)ᴴ", &left.h(), &left, size)?;
                self.same("(P A)ᴴ", &right.h(), &right, size)
            }
            "qr" => {
                let (q, r) = (&made[0], &made[1]);
                self.columns(q)?;
                self.same("the triangle", &r.upper(), r, 0.0)?;
                self.diagonal(r)?;
                self.same("Q R", &q.times(r), a, size)
            }
            "svd" => {
                let (u, vh) = (&made[0], &made[2]);
                self.columns(u)?;
                self.columns(&vh.h())?;
                self.descend(&made[1])?;
                let k = a.rows.min(a.columns);
                let first = u.corner(a.rows, k);
                self.phases(&first)?;
                let product = first.times(&Matrix::diagonal(&made[1].values)).times(&vh.corner(k, a.columns));
                self.same("U diag(S) Vᴴ", &product, a, size)
            }
            "svdvals" => {
                self.descend(&made[0])?;
                let wanted = a.singular_values().into_iter().map(|x| C::new(x, 0.0)).collect::<Vec<_>>();
                let wanted = Matrix { rows: 1, columns: wanted.len(), values: wanted };
                self.same("the singular values", &made[0], &wanted, size)
            }
            _ => self.holds("an op of this family", false),
        }
    }

    /// `A V = V diag(L)` with vectors of length 1, or for values alone that `A - Lⱼ` is nearly singular, and that the sums of the
    /// values and of their squares are traces. Conjugate pairs of a real matrix are adjacent.
    fn eigenvalues(&self, a: &Matrix, size: f64) -> Outcome {
        let values = &self.made[0];
        let n = values.columns;
        if self.op == "eig" {
            let v = &self.made[1];
            let product = v.times(&Matrix::diagonal(&values.values));
            self.same("A V = V diag(L)", &a.times(v), &product, size)?;
            let lengths = (0..n).map(|j| (0..n).map(|i| v.at(i, j).norm_sqr()).sum::<f64>());
            self.holds("vectors of length 1", lengths.into_iter().all(|x| (x - 1.0).abs() <= self.unit))?;
            self.phases(v)?;
        } else {
            for value in &values.values {
                let shifted = a.minus(&Matrix::diagonal(&vec![*value; n]));
                let least = shifted.singular_values().last().copied().unwrap_or(0.0);
                self.below("the smallest singular value of A - L", least, self.unit * size)?;
            }
        }
        let trace = |m: &Matrix| (0..n).map(|i| m.at(i, i)).sum::<C>();
        let (sum, squares) =
            (values.values.iter().sum::<C>(), values.values.iter().map(|z| z * z).sum::<C>());
        // Eigenvalues may be less accurate than the matrix; their sums are not.
        let unit = self.unit * (n as f64).sqrt();
        self.below("the sum of the values", (sum - trace(a)).norm(), unit * size)?;
        self.below("the sum of the squares", (squares - trace(&a.times(a))).norm(), unit * size * size)?;
        let mut j = 0;
        while self.is_real && j < n {
            let z = values.values[j];
            let is_pair = z.im > 0.0 && values.values.get(j + 1) == Some(&z.conj());
            self.holds("pairs of conjugates, the positive imaginary part first", z.im == 0.0 || is_pair)?;
            j += if z.im == 0.0 { 1 } else { 2 };
        }
        Ok(())
    }

    /// The equation that the first result solves.
    fn solution(&self, matrix: &Matrix, left: bool) -> Outcome {
        let (x, b) = (&self.made[0], &self.given[1]);
        let product = if left { matrix.times(x) } else { x.times(matrix) };
        self.same("the residual", &product, b, matrix.norm().max(1.0) * x.norm().max(1.0))
    }

    fn same(&self, what: &'static str, got: &Matrix, wanted: &Matrix, size: f64) -> Outcome {
        self.holds("the sizes", (got.rows, got.columns) == (wanted.rows, wanted.columns))?;
        self.below(what, got.minus(wanted).largest(), self.unit * size)
    }

    fn below(&self, what: &'static str, error: f64, bound: f64) -> Outcome {
        // NaN is not below.
        if error <= bound { Ok(()) } else { Err(Wrong { what, error, bound }) }
    }

    fn holds(&self, what: &'static str, condition: bool) -> Outcome {
        self.below(what, if condition { 0.0 } else { f64::INFINITY }, 0.0)
    }

    /// Orthonormal columns.
    fn columns(&self, q: &Matrix) -> Outcome {
        self.same("orthonormal vectors", &q.h().times(q), &Matrix::one(q.columns), 1.0)
    }

    /// A diagonal of real numbers of 0 or more.
    fn diagonal(&self, a: &Matrix) -> Outcome {
        let right = (0..a.rows.min(a.columns)).all(|i| a.at(i, i).im == 0.0 && a.at(i, i).re >= 0.0);
        self.holds("a real diagonal of 0 or more", right)
    }

    fn descend(&self, values: &Matrix) -> Outcome {
        let all = &values.values;
        let right = all.windows(2).all(|pair| pair[0].re >= pair[1].re) && all.iter().all(|z| z.re >= 0.0);
        self.holds("descending values of 0 or more", right)
    }

    /// The first component of each column that is larger than a thousandth of its largest one is real and positive.
    fn phases(&self, v: &Matrix) -> Outcome {
        let right = (0..v.columns).all(|j| {
            let sizes: Vec<f64> = (0..v.rows).map(|i| v.at(i, j).norm()).collect();
            let bound = sizes.iter().copied().fold(0.0, f64::max) / 1024.0;
            // A component on the bound may be on either side.
            let near = |&i: &usize| (sizes[i] - bound).abs() < 1e-3 * bound;
            let first = (0..v.rows).find(|&i| sizes[i] > bound);
            (0..first.unwrap_or(0)).any(|i| near(&i))
                || first.is_none_or(|i| near(&i) || (v.at(i, j).im == 0.0 && v.at(i, j).re > 0.0))
        });
        self.holds("first components that are real and positive", right)
    }
}

fn exchange(a: &mut Matrix, i: usize, j: usize) {
    for column in 0..a.columns {
        a.values.swap(i * a.columns + column, j * a.columns + column);
    }
}
