//! Factorisations and solvers of complex matrices, and eigenvalues of general ones, by what their results must satisfy: the
//! factors multiply to the matrix, residuals vanish, vectors are orthonormal, signs and phases are fixed.

mod judge;
mod matrix;

use super::{Context, Family, Scope};
use crate::case::Case;
use crate::outcome::{Failure, Steps, Stop};
use crate::recorder;
use judge::Judge;
use keyway::autograd::gradcheck::{Tolerance, gradcheck, gradgradcheck};
use keyway::dispatcher::registry::KernelEntry;
use keyway::ops::def::OpDef;
use keyway::{Complex, DType, Device, Layout, Tensor};
use matrix::{C, Matrix};
use std::collections::BTreeSet;

/// The definition of this family of cases.
pub const FAMILY: Family = Family {
    name: "linalg",
    about: "factorisations of complex matrices and general eigenvalues: products of factors, residuals, phases, bad input, derivatives",
    cases,
    run,
};

/// The ops that this family judges for complex tensors.
const OPS: [&str; 14] = [
    "cholesky",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "inv",
    "lu_factor",
    "lu_solve",
    "pinv",
    "qr",
    "solve",
    "solve_triangular",
    "svd",
    "svdvals",
];

/// Those whose results are complex for real matrices, too.
const COMPLEX_RESULTS: [&str; 2] = ["eig", "eigvals"];

/// Whether this family judges the kernels of the op for complex tensors, and no other.
pub(super) fn judges(def: &'static OpDef) -> bool {
    OPS.contains(&def.name())
}

/// How the matrices are stored.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Stored {
    Rows,
    /// By columns.
    Columns,
    /// Every other element of a row.
    Gaps,
}

/// A group of calls, one case for each kernel.
struct Variant {
    name: &'static str,
    /// Whether quick runs have it.
    quick: bool,
    /// Whether only kernels of 8-byte parts have it, because finite differences need their digits.
    wide: bool,
    run: fn(&Subject<'_>) -> Steps<u64>,
}

const VARIANTS: [Variant; 6] = [
    Variant { name: "values", quick: true, wide: false, run: |subject| subject.sizes(Stored::Rows) },
    Variant { name: "columns", quick: false, wide: false, run: |subject| subject.sizes(Stored::Columns) },
    Variant { name: "gaps", quick: false, wide: false, run: |subject| subject.sizes(Stored::Gaps) },
    Variant { name: "bad_input", quick: true, wide: false, run: |subject| subject.bad_input() },
    Variant { name: "gradcheck", quick: false, wide: true, run: |subject| subject.derivatives(false) },
    Variant { name: "gradgradcheck", quick: false, wide: true, run: |subject| subject.derivatives(true) },
];

fn cases(scope: &Scope<'_>, cases: &mut Vec<Case>) {
    let mut seen = BTreeSet::new();
    for kernel in scope.target.kernels.iter().filter(|kernel| kernel.layout == Layout::STRIDED) {
        let Some(op) = scope.ops.iter().find(|op| op.def.name() == kernel.op && judges(op.def)) else {
            continue;
        };
        let Some(dtype) = DType::from_code(kernel.dtype) else { continue };
        if !dtype.is_complex() && !COMPLEX_RESULTS.contains(&kernel.op)
            || !seen.insert((kernel.op, kernel.dtype))
        {
            continue;
        }
        let wanted = |v: &&Variant| (v.quick || !scope.quick) && (!v.wide || dtype.to_real() == DType::F64);
        let variants = VARIANTS.iter().filter(wanted);
        cases.extend(variants.map(|v| Case::of(FAMILY.name, op.def, dtype, 0, v.name)));
    }
}

fn run(context: &Context<'_>) -> Steps {
    let variant = VARIANTS.iter().find(|variant| variant.name == context.case.variant);
    let variant = variant.ok_or_else(|| Stop::Skipped("there is no such variant".to_string()))?;
    let (op, dtype) = (context.entry()?.name, context.dtype());
    let is_it = |k: &&&'static KernelEntry| (k.op, k.dtype, k.layout) == (op, dtype.code(), Layout::STRIDED);
    let kernel = context.target.kernels.iter().find(is_it).copied();
    let kernel = kernel.ok_or_else(|| Stop::Skipped("there is no such kernel".to_string()))?;
    context.judge_by("products of the factors and residuals, in f64");
    let before = recorder::served_by(kernel);
    let subject = Subject { op, dtype, device: context.target.device, seed: context.seed };
    let calls = (variant.run)(&subject)?;
    match recorder::served_by(kernel) - before {
        served if served < calls => {
            Err(Failure::new("calls of the kernel", calls.to_string(), served.to_string()).into())
        }
        _ => Ok(()),
    }
}

/// The kernel under test.
struct Subject<'a> {
    op: &'a str,
    dtype: DType,
    device: Device,
    seed: u64,
}

/// Leading dimensions, rows, columns, and columns of right sides.
type Sizes = (&'static [usize], [usize; 3]);

/// Sizes of square and of other matrices, batches, and sizes on both sides of those of blocks.
const SIZES: [Sizes; 18] = [
    (&[], [1, 1, 1]),
    (&[], [2, 2, 3]),
    (&[], [3, 3, 1]),
    (&[], [5, 5, 2]),
    (&[2], [4, 4, 2]),
    (&[2, 3], [3, 3, 4]),
    (&[400], [3, 3, 1]),
    (&[], [4, 2, 1]),
    (&[], [2, 5, 1]),
    (&[3], [6, 3, 1]),
    (&[], [0, 0, 2]),
    (&[], [3, 3, 0]),
    (&[0], [3, 3, 1]),
    (&[], [8, 8, 1]),
    (&[], [17, 17, 3]),
    (&[], [19, 33, 2]),
    (&[], [33, 33, 2]),
    (&[], [70, 70, 2]),
];

/// Small matrices for finite differences.
const SMALL: [Sizes; 4] = [(&[], [3, 3, 2]), (&[2], [2, 2, 1]), (&[], [4, 2, 1]), (&[], [2, 3, 1])];

impl Subject<'_> {
    /// Whether the op takes square matrices only.
    fn is_square(&self) -> bool {
        !matches!(self.op, "lu_factor" | "pinv" | "qr" | "svd" | "svdvals")
    }

    fn is_real(&self) -> bool {
        !self.dtype.is_complex()
    }

    /// All values of the truth arguments.
    fn flags(&self) -> Vec<[bool; 3]> {
        let count = match self.op {
            "cholesky" | "qr" | "solve" | "svd" => 1,
            "lu_solve" => 2,
            "solve_triangular" => 3,
            _ => 0,
        };
        (0..1 << count).map(|bits| [bits & 1 != 0, bits & 2 != 0, bits & 4 != 0]).collect()
    }

    /// The sizes of a list that the op accepts.
    fn of_op<'a>(&self, list: &'a [Sizes]) -> impl Iterator<Item = &'a Sizes> {
        let square = self.is_square();
        list.iter().filter(move |(_, [m, n, _])| m == n || !square)
    }

    fn sizes(&self, stored: Stored) -> Steps<u64> {
        let mut calls = 0;
        for (nth, (lead, sizes)) in self.of_op(&SIZES).enumerate() {
            for flags in self.flags() {
                self.check(lead, *sizes, flags, stored, self.seed.wrapping_add(nth as u64))?;
                calls += u64::from(!sizes.contains(&0) && !lead.contains(&0));
            }
        }
        Ok(calls)
    }

    /// Calls the op and checks each matrix of the batch.
    fn check(&self, lead: &[usize], sizes: [usize; 3], flags: [bool; 3], stored: Stored, seed: u64) -> Steps {
        let count = lead.iter().product();
        let mut draw = Draw::new(seed, self.is_real());
        let given: Vec<Vec<Matrix>> = (0..count).map(|_| self.given(sizes, flags, &mut draw)).collect();
        let given_pivots: Vec<Vec<i64>> = (0..count).map(|_| draw.pivots(sizes[0])).collect();
        let arguments = given.first().map_or_else(|| self.given(sizes, flags, &mut draw), Clone::clone).len();
        let tensors = (0..arguments).map(|i| {
            let shape = self.given(sizes, flags, &mut Draw::new(0, true));
            let all: Vec<C> = given.iter().flat_map(|all| all[i].values.iter().copied()).collect();
            self.placed(&all, &[lead, &[shape[i].rows, shape[i].columns]].concat(), stored)
        });
        let tensors = tensors.collect::<Steps<Vec<_>>>()?;
        let pivots = given_pivots.iter().flatten().map(|&pivot| pivot as i32).collect();
        let pivots = Tensor::from_vec(pivots, [lead, &[sizes[0]]].concat())?.to_device(self.device)?;
        let made = self.call(&tensors, &pivots, flags)?;
        let results: Vec<Vec<C>> = made.iter().map(host).collect::<Steps<_>>()?;
        let largest = sizes.into_iter().max().unwrap_or(1).max(1) as f64;
        let epsilon = if self.dtype.to_real() == DType::F64 { f64::EPSILON } else { f64::from(f32::EPSILON) };
        for nth in 0..count {
            let (mut matrices, mut factors) = (Vec::new(), given_pivots[nth].clone());
            for (tensor, values) in made.iter().zip(&results) {
                let (rows, columns) = match &tensor.shape()[lead.len()..] {
                    &[rows, columns] => (rows, columns),
                    &[columns] => (1, columns),
                    got => {
                        return Err(Failure::new("the sizes", "those of a matrix", format!("{got:?}")).into());
                    }
                };
                let values = values[nth * rows * columns..][..rows * columns].to_vec();
                match tensor.dtype() {
                    DType::I32 => factors = values.iter().map(|z| z.re as i64).collect(),
                    _ => matrices.push(Matrix { rows, columns, values }),
                }
            }
            let judge = Judge {
                op: self.op,
                flags,
                is_real: self.is_real(),
                given: &given[nth],
                pivots: &factors,
                made: &matrices,
                unit: 40.0 * largest * epsilon,
            };
            if let Err(wrong) = judge.check() {
                let what = format!(
                    "{} of {lead:?}, {sizes:?}, {flags:?}, {stored:?}, matrix {nth}: {}",
                    self.op, wrong.what
                );
                let (bound, error) = (format!("at most {:e}", wrong.bound), format!("{:e}", wrong.error));
                return Err(Failure::new(what, bound, error).into());
            }
        }
        self.dtypes(&made)
    }

    /// The dtypes of the results: those of values that are real by definition are real.
    fn dtypes(&self, made: &[Tensor]) -> Steps {
        let complex = self.dtype.to_complex().unwrap_or(self.dtype);
        let real = self.dtype.to_real();
        let wanted: &[DType] = match self.op {
            "eigh" => &[real, complex],
            "eigvalsh" | "svdvals" => &[real],
            "svd" => &[complex, real, complex],
            "qr" => &[complex, complex],
            "eig" => &[complex, complex],
            "lu_factor" => &[complex, DType::I32],
            _ => &[complex],
        };
        let got: Vec<DType> = made.iter().map(|t| t.dtype()).collect();
        match got == wanted {
            true => Ok(()),
            false => Err(Failure::new("the dtypes", format!("{wanted:?}"), format!("{got:?}")).into()),
        }
    }

    /// Random arguments for one matrix.
    fn given(&self, [m, n, k]: [usize; 3], flags: [bool; 3], draw: &mut Draw) -> Vec<Matrix> {
        let scale = |a: Matrix, by: f64| Matrix { values: a.values.iter().map(|z| z * by).collect(), ..a };
        // Elements small enough for a well-conditioned triangle, and larger ones on the diagonal.
        let triangle = |draw: &mut Draw| {
            let (rest, diagonal) = (scale(draw.matrix(n, n), 1.0 / n.max(1) as f64), draw.matrix(n, 1));
            Matrix::from_fn(n, n, |i, j| {
                let z = diagonal.at(i, 0);
                if i != j { rest.at(i, j) } else { z + C::new(if z.re < 0.0 { -1.5 } else { 1.5 }, 0.0) }
            })
        };
        let right = |left: bool, draw: &mut Draw| if left { draw.matrix(n, k) } else { draw.matrix(k, n) };
        let all = match self.op {
            "cholesky" => {
                let (g, rest) = (draw.matrix(n, n), draw.matrix(n, n));
                let square = scale(g.times(&g.h()), 1.0 / n.max(1) as f64);
                // A part that is not Hermitian has no effect.
                let skew = scale(rest.minus(&rest.h()), 0.25);
                vec![Matrix::from_fn(n, n, |i, j| {
                    square.at(i, j) + skew.at(i, j) + if i == j { C::new(0.5, 0.0) } else { C::default() }
                })]
            }
            "lu_solve" => {
                let lu = triangle(draw);
                vec![lu, right(flags[0], draw)]
            }
            "solve_triangular" => {
                let (a, garbage, [upper, left, unit]) = (triangle(draw), draw.matrix(n, n), flags);
                let a = Matrix::from_fn(n, n, |i, j| {
                    let is_read = if upper { i < j } else { i > j };
                    if is_read || (i == j && !unit) { a.at(i, j) } else { 100.0 * garbage.at(i, j) }
                });
                vec![a, right(left, draw)]
            }
            "solve" => vec![triangle(draw), right(flags[0], draw)],
            "inv" => vec![triangle(draw)],
            _ => vec![draw.matrix(m, n)],
        };
        // Values that f32 represents.
        let rounded = |z: &C| C::new(f64::from(z.re as f32), f64::from(z.im as f32));
        let all = all.into_iter();
        all.map(|a| Matrix { values: a.values.iter().map(rounded).collect(), ..a }).collect()
    }

    fn call(&self, tensors: &[Tensor], pivots: &Tensor, flags: [bool; 3]) -> keyway::Result<Vec<Tensor>> {
        let a = &tensors[0];
        let pair = |(a, b)| vec![a, b];
        Ok(match self.op {
            "cholesky" => vec![a.cholesky_with(flags[0])?],
            "eig" => pair(a.eig()?),
            "eigh" => pair(a.eigh()?),
            "eigvals" => vec![a.eigvals()?],
            "eigvalsh" => vec![a.eigvalsh()?],
            "inv" => vec![a.inv()?],
            "lu_factor" => pair(a.lu_factor()?),
            "lu_solve" => vec![a.lu_solve_with(pivots, &tensors[1], flags[0], flags[1])?],
            "pinv" => vec![a.pinv()?],
            "qr" => pair(a.qr_with(if flags[0] { "complete" } else { "reduced" })?),
            "solve" => vec![a.solve_with(&tensors[1], flags[0])?],
            "solve_triangular" => vec![a.solve_triangular_with(&tensors[1], flags[0], flags[1], flags[2])?],
            "svd" => {
                let (u, s, vh) = a.svd_with(flags[0])?;
                vec![u, s, vh]
            }
            _ => vec![a.svdvals()?],
        })
    }

    /// Matrices without a factorisation are errors that name the matrix; NaN is not lost.
    fn bad_input(&self) -> Steps<u64> {
        let (one, zero) = (Matrix::one(3), Matrix::from_fn(3, 3, |_, _| C::default()));
        let mut spoilt = one.clone();
        spoilt.values[4] = if self.is_real() { C::new(f64::NAN, 0.0) } else { C::new(1.0, f64::NAN) };
        let expected = match self.op {
            "cholesky" => [Some("order 1"), Some("order 2")],
            "inv" | "solve" | "lu_solve" => [Some("element [0, 0] of U is 0"), None],
            "solve_triangular" => [Some("a zero at row 0"), None],
            "eig" | "eigh" | "eigvals" | "eigvalsh" | "svd" | "svdvals" | "pinv" => {
                [None, Some("row 1, column 1")]
            }
            _ => [None, None],
        };
        let flags = [self.op == "lu_solve", self.op == "solve_triangular", false];
        let flags = if self.op == "solve" { [true, false, false] } else { flags };
        for (is_zero, bad, expected) in [(true, &zero, expected[0]), (false, &spoilt, expected[1])] {
            let all = [one.values.clone(), bad.values.clone()].concat();
            let a = self.placed(&all, &[2, 3, 3], Stored::Rows)?;
            let b = self.placed(&one.values, &[3, 3], Stored::Rows)?;
            let pivots = Tensor::from_vec(vec![1i32, 2, 3], 3)?.to_device(self.device)?;
            let made = self.call(&[a, b], &pivots, flags);
            match (expected, made) {
                (Some(wanted), Err(error)) => {
                    let text = error.to_string();
                    if !text.contains(wanted) || !text.contains("batch index [1]") {
                        let wanted = format!("{wanted} at batch index [1]");
                        return Err(Failure::new("the error", wanted, text).into());
                    }
                }
                (Some(wanted), Ok(_)) => {
                    return Err(Failure::new("a matrix without a result", wanted, "a result").into());
                }
                (None, Err(error)) => {
                    return Err(Failure::new("a result", "no error", error.to_string()).into());
                }
                (None, Ok(made)) => {
                    let values = host(&made[0])?;
                    let (first, second) = values.split_at(values.len() / 2);
                    let is_nan = second.iter().any(|z| z.is_nan());
                    if first.iter().any(|z| z.is_nan()) || is_nan == is_zero {
                        let wanted = if is_zero { "numbers" } else { "NaN in the second matrix alone" };
                        return Err(Failure::new("the result", wanted, format!("{values:?}")).into());
                    }
                }
            }
        }
        // Refused calls are not recorded.
        Ok(0)
    }

    /// Derivatives against central differences.
    fn derivatives(&self, second: bool) -> Steps<u64> {
        for (nth, (lead, sizes)) in self.of_op(&SMALL).enumerate() {
            for flags in self.flags() {
                let [m, n, _] = *sizes;
                // The further vectors are not unique.
                if flags[0] && (self.op == "svd" && m != n || self.op == "qr" && m > n) {
                    continue;
                }
                let count: usize = lead.iter().product();
                let mut draw = Draw::new(self.seed.wrapping_add(nth as u64), self.is_real());
                let given: Vec<Vec<Matrix>> =
                    (0..count).map(|_| self.given(*sizes, flags, &mut draw)).collect();
                let leaf = |i: usize| {
                    let all: Vec<C> = given.iter().flat_map(|all| all[i].values.iter().copied()).collect();
                    let shape = [*lead, &[given[0][i].rows, given[0][i].columns]].concat();
                    let leaf = placed(&all, &shape, self.dtype)?;
                    Ok(leaf.requires_grad_(true)?)
                };
                let leaves = (0..given[0].len()).map(leaf).collect::<Steps<Vec<Tensor>>>()?;
                let pivots = (0..count).flat_map(|_| 1..=sizes[0] as i32).collect();
                let pivots =
                    Tensor::from_vec(pivots, [*lead, &[sizes[0]]].concat())?.to_device(self.device)?;
                let function = |tensors: &[Tensor]| -> keyway::Result<Vec<Tensor>> {
                    let there = tensors.iter().map(|t| t.to_device(self.device));
                    let made = self.call(&there.collect::<keyway::Result<Vec<_>>>()?, &pivots, flags)?;
                    let made = made.into_iter().filter(|t| t.dtype() != DType::I32);
                    made.map(|t| t.to_device(Device::CPU)).collect()
                };
                let run = if second { gradgradcheck } else { gradcheck };
                if let Some(m) = run(&function, &leaves, Tolerance::default())? {
                    let what = format!(
                        "{} of {lead:?}, {sizes:?}, {flags:?}: d output {}[{}] / d input {}[{}], parts as elements",
                        self.op, m.output, m.output_element, m.input, m.input_element
                    );
                    return Err(Failure::new(what, m.numeric.to_string(), m.analytic.to_string()).into());
                }
            }
        }
        // With a gradient, values may be computed by the kernel with vectors.
        Ok(0)
    }

    /// A tensor of these values on the device under test.
    fn placed(&self, values: &[C], sizes: &[usize], stored: Stored) -> Steps<Tensor> {
        let dims = sizes.len();
        let (rows, columns) = (sizes[dims - 2], sizes[dims - 1]);
        let on_device = |values: &[C], sizes: &[usize]| {
            Ok::<_, Stop>(placed(values, sizes, self.dtype)?.to_device(self.device)?)
        };
        match stored {
            Stored::Rows => on_device(values, sizes),
            Stored::Columns => {
                let mut transposed = sizes.to_vec();
                transposed.swap(dims - 2, dims - 1);
                let size = (rows * columns).max(1);
                let at = |nth: usize| values[nth / size * size + nth % rows * columns + nth % size / rows];
                let all: Vec<C> = (0..values.len()).map(at).collect();
                Ok(on_device(&all, &transposed)?.transpose(-2, -1)?)
            }
            Stored::Gaps => {
                let wide = [&sizes[..dims - 1], &[2 * columns]].concat();
                let gap = C::new(f64::NAN, f64::NAN);
                let all: Vec<C> = values.iter().flat_map(|&z| [gap, z]).collect();
                Ok(on_device(&all, &wide)?.slice(dims - 1, Some(1), None, 2)?)
            }
        }
    }
}

/// A tensor in host memory.
fn placed(values: &[C], sizes: &[usize], dtype: DType) -> Steps<Tensor> {
    Ok(match dtype {
        DType::F32 => Tensor::from_vec(values.iter().map(|z| z.re as f32).collect(), sizes)?,
        DType::F64 => Tensor::from_vec(values.iter().map(|z| z.re).collect(), sizes)?,
        DType::C64 => {
            Tensor::from_vec(values.iter().map(|z| Complex::new(z.re as f32, z.im as f32)).collect(), sizes)?
        }
        _ => Tensor::from_vec(values.to_vec(), sizes)?,
    })
}

/// The values of a tensor as complex numbers.
fn host(t: &Tensor) -> Steps<Vec<C>> {
    let t = t.to_device(Device::CPU)?;
    Ok(match t.dtype() {
        DType::I32 => t.to_vec::<i32>()?.into_iter().map(|x| C::new(x.into(), 0.0)).collect(),
        DType::F32 => t.to_vec::<f32>()?.into_iter().map(|x| C::new(x.into(), 0.0)).collect(),
        DType::F64 => t.to_vec::<f64>()?.into_iter().map(|x| C::new(x, 0.0)).collect(),
        DType::C64 => {
            t.to_vec::<Complex<f32>>()?.into_iter().map(|z| C::new(z.re.into(), z.im.into())).collect()
        }
        _ => t.to_vec::<C>()?,
    })
}

/// Random values by an LCG (D. Knuth).
struct Draw {
    state: u64,
    is_real: bool,
}

impl Draw {
    fn new(seed: u64, is_real: bool) -> Draw {
        Draw { state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(1), is_real }
    }

    fn next(&mut self) -> f64 {
        self.state =
            self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        f64::from((self.state >> 44) as u32) / f64::from(1 << 19) - 1.0
    }

    fn matrix(&mut self, rows: usize, columns: usize) -> Matrix {
        Matrix::from_fn(rows, columns, |_, _| {
            C::new(self.next(), if self.is_real { 0.0 } else { self.next() })
        })
    }

    /// Pivots of `n` rows, from 1.
    fn pivots(&mut self, n: usize) -> Vec<i64> {
        let mut at = |i: usize| i as i64 + 1 + ((self.next() + 1.0) * 0.5 * (n - i) as f64) as i64;
        (0..n).map(|i| at(i).min(n as i64)).collect()
    }
}
