//! Fourier transforms: each kernel of `fft_c2c`, `fft_r2c` and `fft_c2r` beside the transform by its definition, in f64: short lengths,
//! primes, powers of two, products; all normalizations and both directions; several dimensions; strides; batches.

use super::{Context, Family, Scope, is_in};
use crate::case::Case;
use crate::outcome::{Failure, Steps, Stop};
use crate::recorder;
use keyway::ops::def::OpDef;
use keyway::ops::fft;
use keyway::{Complex, DType, Device, Layout, Tensor};
use std::collections::BTreeSet;
use std::f64::consts::PI;

/// The definition of this family of cases.
pub const FAMILY: Family = Family {
    name: "fft",
    about: "Fourier transforms are those of the definition: lengths, factors, directions, dimensions, strides",
    cases,
    run,
};

type C = Complex<f64>;

const NORMS: [&str; 3] = ["backward", "ortho", "forward"];

/// How an input is stored.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Stored {
    Rows,
    /// The dimensions in reverse order in memory.
    Reversed,
    /// Every other element of each dimension.
    Gaps,
    /// The first dimension has stride 0.
    Expanded,
}

/// The signals of a variant: sizes of the signal, dimensions.
type Calls = Vec<(Vec<usize>, Vec<i64>)>;

/// A group of calls, one case for each dtype.
struct Variant {
    name: &'static str,
    stored: Stored,
    calls: fn() -> Calls,
}

fn lines(lengths: impl IntoIterator<Item = usize>) -> Calls {
    lengths.into_iter().map(|n| (vec![3, n], vec![1])).collect()
}

fn dimensions() -> Calls {
    let dims: [&[i64]; 9] = [&[0], &[1], &[2], &[-1, 0], &[1, 2], &[2, 1], &[0, 1, 2], &[2, 0, 1], &[-2, -1]];
    [[4, 5, 6], [3, 2, 7]]
        .iter()
        .flat_map(|sizes| dims.iter().map(|dims| (sizes.to_vec(), dims.to_vec())))
        .collect()
}

const VARIANTS: [Variant; 8] = [
    Variant { name: "short", stored: Stored::Rows, calls: || lines(1..=40) },
    Variant { name: "primes", stored: Stored::Rows, calls: || lines([41, 97, 101, 127, 257, 509, 1009]) },
    Variant { name: "powers_of_two", stored: Stored::Rows, calls: || lines((6..=11).map(|e| 1 << e)) },
    Variant {
        name: "products",
        stored: Stored::Rows,
        calls: || lines([60, 100, 105, 243, 343, 625, 1000, 1155]),
    },
    Variant { name: "dimensions", stored: Stored::Rows, calls: dimensions },
    Variant { name: "reversed", stored: Stored::Reversed, calls: dimensions },
    Variant { name: "gaps", stored: Stored::Gaps, calls: dimensions },
    Variant {
        name: "batches",
        stored: Stored::Expanded,
        calls: || {
            vec![(vec![2, 700, 12], vec![2]), (vec![2, 12, 700], vec![1]), (vec![2, 9, 301], vec![1, 2])]
        },
    },
];

/// Whether this family judges the kernels of the op, and no other.
pub(super) fn judges(def: &'static OpDef) -> bool {
    is_in(def, &[fft::ALL])
}

fn cases(scope: &Scope<'_>, cases: &mut Vec<Case>) {
    let mut seen = BTreeSet::new();
    for kernel in scope.target.kernels.iter().filter(|kernel| kernel.layout == Layout::STRIDED) {
        let Some(def) = fft::ALL.iter().find(|def| def.name() == kernel.op) else { continue };
        let Some(dtype) = DType::from_code(kernel.dtype) else { continue };
        if seen.insert((kernel.op, kernel.dtype)) {
            cases.extend(VARIANTS.iter().map(|v| Case::of(FAMILY.name, def, dtype, 0, v.name)));
        }
    }
}

fn run(context: &Context<'_>) -> Steps {
    let variant = VARIANTS.iter().find(|variant| variant.name == context.case.variant);
    let variant = variant.ok_or_else(|| Stop::Skipped("there is no such variant".to_string()))?;
    let (op, dtype) = (context.entry()?, context.dtype());
    let kernel = context.target.kernels.iter().find(|kernel| {
        kernel.op == op.name && kernel.dtype == dtype.code() && kernel.layout == Layout::STRIDED
    });
    let kernel = kernel.ok_or_else(|| Stop::Skipped("there is no such kernel".to_string()))?;
    context.judge_by("the transform by its definition, in f64");
    let before = recorder::served_by(kernel);
    let mut calls = 0;
    for (nth, (sizes, dims)) in (variant.calls)().into_iter().enumerate() {
        let direction = nth % 2 == 0;
        for norm in NORMS {
            let call =
                Call { op: op.name, dtype, sizes: &sizes, dims: &dims, norm, device: context.target.device };
            // Both values of the last argument.
            for flag in [direction, !direction] {
                call.check(flag, variant.stored, context.seed.wrapping_add(nth as u64))?;
                calls += 1;
            }
        }
    }
    match recorder::served_by(kernel) - before {
        served if served < calls => {
            Err(Failure::new("calls of the kernel", calls.to_string(), served.to_string()).into())
        }
        _ => Ok(()),
    }
}

/// One call of an op.
struct Call<'a> {
    op: &'static str,
    dtype: DType,
    /// Those of the signal.
    sizes: &'a [usize],
    dims: &'a [i64],
    norm: &'static str,
    device: Device,
}

impl Call<'_> {
    /// Calls the op with its last argument `flag`, where it is one, and compares.
    fn check(&self, flag: bool, stored: Stored, seed: u64) -> Steps {
        let last = self.last();
        let n = self.sizes[last];
        let mut given = self.sizes.to_vec();
        if self.op == "fft_c2r" {
            given[last] = n / 2 + 1;
        }
        let is_real = self.op == "fft_r2c";
        let values = drawn(&given, seed, is_real, stored == Stored::Expanded);
        let input = self.placed(&values, &given, stored)?;
        let count: f64 = self.dims.iter().map(|&dim| self.sizes[self.at(dim)] as f64).product();
        let forward = is_real || self.op == "fft_c2c" && flag;
        let factor = match (self.norm, forward) {
            ("backward", true) | ("forward", false) => 1.0,
            ("ortho", _) => count.sqrt().recip(),
            _ => count.recip(),
        };
        let (made, mut wanted, mut sizes) = match self.op {
            "fft_c2c" => (input.fft_c2c(self.dims, self.norm, flag)?, values, given),
            "fft_r2c" => (input.fft_r2c(self.dims, self.norm, flag)?, values, given),
            _ => (input.fft_c2r(self.dims, self.norm, n)?, values, given),
        };
        for &dim in self.dims[..self.dims.len() - 1].iter().chain([&(last as i64)]) {
            let at = self.at(dim);
            if self.op == "fft_c2r" && at == last {
                (wanted, sizes) = extended(&wanted, &sizes, last, n);
            }
            wanted = along(&wanted, &sizes, at, forward);
        }
        if is_real && flag {
            wanted = cropped(&wanted, &sizes, last, n / 2 + 1);
            sizes[last] = n / 2 + 1;
        }
        let wanted: Vec<C> = wanted.into_iter().map(|z| z * factor).collect();
        self.compare(&made, &sizes, &wanted, flag)
    }

    fn compare(&self, made: &Tensor, sizes: &[usize], wanted: &[C], flag: bool) -> Steps {
        let what = || format!("{} of {:?} along {:?}, {}, {flag}", self.op, self.sizes, self.dims, self.norm);
        let real = self.op == "fft_c2r";
        let dtype = if real { self.dtype.to_real() } else { self.dtype.to_complex().unwrap_or(self.dtype) };
        if made.shape() != sizes || made.dtype() != dtype {
            let expected = format!("{dtype}{sizes:?}");
            return Err(Failure::new(what(), expected, format!("{}{:?}", made.dtype(), made.shape())).into());
        }
        let got = host(made)?;
        let wide = self.dtype.to_real() == DType::F64;
        let largest = wanted.iter().map(|z| z.norm()).fold(f64::MIN_POSITIVE, f64::max);
        let tolerance = if wide { 1e-13 } else { 3e-6 } * largest;
        // A NaN is not close.
        let close = |(got, wanted): (&C, &C)| (got - wanted).norm() <= tolerance && !(real && got.im != 0.0);
        match got.iter().zip(wanted).position(|pair| !close(pair)) {
            None => Ok(()),
            Some(nth) => {
                let what = format!("{}, element {nth}", what());
                Err(Failure::new(what, wanted[nth].to_string(), got[nth].to_string()).into())
            }
        }
    }

    fn at(&self, dim: i64) -> usize {
        if dim < 0 { (dim + self.sizes.len() as i64) as usize } else { dim as usize }
    }

    /// The last dimension that is transformed.
    fn last(&self) -> usize {
        self.dims.last().map_or(0, |&dim| self.at(dim))
    }

    /// The tensor of these values.
    fn placed(&self, values: &[C], sizes: &[usize], stored: Stored) -> Steps<Tensor> {
        // The memory as the view of it needs it.
        let rank = sizes.len();
        let reversed: Vec<usize> = (0..rank).rev().collect();
        let (stored_sizes, stored_values) = match stored {
            Stored::Rows => (sizes.to_vec(), values.to_vec()),
            Stored::Reversed => {
                let turned: Vec<usize> = sizes.iter().rev().copied().collect();
                let at = |nth: usize| {
                    let mut index = index_of(nth, &turned);
                    index.reverse();
                    values[offset_of(&index, sizes)]
                };
                (turned.clone(), (0..values.len()).map(at).collect())
            }
            Stored::Gaps => {
                let wide: Vec<usize> = sizes.iter().map(|size| 2 * size).collect();
                let at = |nth: usize| {
                    let index = index_of(nth, &wide);
                    match index.iter().all(|i| i % 2 == 1) {
                        true => values[offset_of(&index.iter().map(|i| i / 2).collect::<Vec<_>>(), sizes)],
                        false => C::new(f64::NAN, f64::NAN),
                    }
                };
                (wide.clone(), (0..wide.iter().product()).map(at).collect())
            }
            Stored::Expanded => {
                let one = [&[1], &sizes[1..]].concat();
                (one.clone(), values[..one.iter().product()].to_vec())
            }
        };
        let made = match self.dtype {
            DType::F32 => {
                Tensor::from_vec(stored_values.iter().map(|z| z.re as f32).collect(), stored_sizes)?
            }
            DType::F64 => Tensor::from_vec(stored_values.iter().map(|z| z.re).collect(), stored_sizes)?,
            DType::C64 => {
                let narrow = |z: &C| Complex::new(z.re as f32, z.im as f32);
                Tensor::from_vec(stored_values.iter().map(narrow).collect(), stored_sizes)?
            }
            _ => Tensor::from_vec(stored_values, stored_sizes)?,
        };
        let mut made = made.to_device(self.device)?;
        match stored {
            Stored::Rows => {}
            Stored::Reversed => made = made.permute(&reversed)?,
            Stored::Gaps => {
                for dim in 0..rank {
                    made = made.slice(dim, Some(1), None, 2)?;
                }
            }
            Stored::Expanded => made = made.expand(sizes)?,
        }
        Ok(made)
    }
}

/// The values of a tensor as complex numbers.
fn host(t: &Tensor) -> Steps<Vec<C>> {
    let t = t.to_device(Device::CPU)?;
    Ok(match t.dtype() {
        DType::F32 => t.to_vec::<f32>()?.into_iter().map(|x| C::new(x.into(), 0.0)).collect(),
        DType::F64 => t.to_vec::<f64>()?.into_iter().map(|x| C::new(x, 0.0)).collect(),
        DType::C64 => {
            t.to_vec::<Complex<f32>>()?.into_iter().map(|z| C::new(z.re.into(), z.im.into())).collect()
        }
        _ => t.to_vec::<C>()?,
    })
}

/// Values that f32 represents, by an LCG (D. Knuth); the same for each index of the first dimension if it is `repeated`.
fn drawn(sizes: &[usize], seed: u64, is_real: bool, repeated: bool) -> Vec<C> {
    let count: usize = sizes.iter().product();
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(1);
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        f64::from((state >> 44) as u32) / f64::from(1 << 19) - 1.0
    };
    let mut all: Vec<C> = (0..count).map(|_| C::new(next(), if is_real { 0.0 } else { next() })).collect();
    if repeated {
        let row = count / sizes[0];
        (row..count).for_each(|at| all[at] = all[at - row]);
    }
    all
}

fn index_of(nth: usize, sizes: &[usize]) -> Vec<usize> {
    let mut rest = nth;
    let mut index: Vec<usize> = sizes
        .iter()
        .rev()
        .map(|&size| {
            let at = rest % size;
            rest /= size;
            at
        })
        .collect();
    index.reverse();
    index
}

fn offset_of(index: &[usize], sizes: &[usize]) -> usize {
    index.iter().zip(sizes).fold(0, |offset, (i, size)| offset * size + i)
}

/// The transform along one dimension, by its definition.
fn along(x: &[C], sizes: &[usize], dim: usize, forward: bool) -> Vec<C> {
    let (n, inner) = (sizes[dim], sizes[dim + 1..].iter().product::<usize>());
    let sign = if forward { -1.0 } else { 1.0 };
    let roots: Vec<C> = (0..n).map(|k| C::from_polar(1.0, sign * 2.0 * PI * k as f64 / n as f64)).collect();
    let element = |at: usize| {
        let (k, line) = (at / inner % n, at - at / inner % n * inner);
        (0..n).map(|j| x[line + j * inner] * roots[j * k % n]).sum()
    };
    (0..x.len()).map(element).collect()
}

/// The whole spectrum of real lines of `n` elements, from its first half.
fn extended(x: &[C], sizes: &[usize], dim: usize, n: usize) -> (Vec<C>, Vec<usize>) {
    let mut whole = sizes.to_vec();
    whole[dim] = n;
    let element = |nth: usize| {
        let mut index = index_of(nth, &whole);
        let k = index[dim];
        let mirrored = k > n / 2;
        index[dim] = if mirrored { n - k } else { k };
        let z = x[offset_of(&index, sizes)];
        // Of a real line, elements that are their own conjugates are real.
        if k == 0 || 2 * k == n {
            C::new(z.re, 0.0)
        } else if mirrored {
            z.conj()
        } else {
            z
        }
    };
    ((0..whole.iter().product()).map(element).collect(), whole)
}

/// The first `len` elements along a dimension.
fn cropped(x: &[C], sizes: &[usize], dim: usize, len: usize) -> Vec<C> {
    (0..x.len()).filter(|&nth| index_of(nth, sizes)[dim] < len).map(|nth| x[nth]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_inverts_itself() {
        let sizes = [3, 5, 4];
        let x = drawn(&sizes, 1, false, false);
        for dim in 0..3 {
            let back = along(&along(&x, &sizes, dim, true), &sizes, dim, false);
            let n = sizes[dim] as f64;
            assert!(back.iter().zip(&x).all(|(a, b)| (a / n - b).norm() < 1e-14), "{dim}");
        }
    }

    #[test]
    fn half_a_spectrum_is_that_of_a_real_line() {
        for n in [1, 2, 5, 6] {
            let x = drawn(&[2, n], 2, true, false);
            let half = cropped(&along(&x, &[2, n], 1, true), &[2, n], 1, n / 2 + 1);
            let (whole, sizes) = extended(&half, &[2, n / 2 + 1], 1, n);
            let back = along(&whole, &sizes, 1, false);
            assert!(back.iter().zip(&x).all(|(a, b)| (a / n as f64 - b).norm() < 1e-14), "{n}");
        }
    }
}
