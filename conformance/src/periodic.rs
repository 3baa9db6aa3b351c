//! Calls on periodic tensors: the elements of a large tensor are those of a small one, repeated along some dimensions, and so are
//! the elements of the result. The oracle computes one period, and every element of a large result is compared.
//!
//! The repeatable dimensions are found without knowledge of the ops: the oracle determines on small sizes whether the result of a
//! repeated tensor is the repeated result. So rows and columns of a matrix product repeat and its reduction dimension does not,
//! nor do the rows of a convolved image. Periods are odd primes, so that no block, vector or thread begins at the start of a
//! period.

use crate::array::{Array, Indices, Number, Offsets, flat};
use crate::call::Prepared;
use crate::compare::{self, Tolerance};
use crate::encode;
use crate::families::tensors;
use crate::growth::{self, Named};
use crate::inputs;
use crate::memory::Arrangement;
use crate::oracle::{Inputs, Oracle};
use crate::outcome::Failure;
use keyway::dispatcher::memory::{Storage, write_bytes};
use keyway::dispatcher::tensor::TensorImpl;
use keyway::ops::sample::Sample;
use keyway::{DType, Device, Result, Tensor};

/// The lengths of periods; those of one sample are all different.
const PERIODS: [usize; 8] = [7, 5, 11, 13, 3, 17, 19, 23];

/// A sample some of whose sizes can be extended to any length, periodically.
#[derive(Clone, Debug)]
pub struct Periodic {
    /// The sample of one period.
    pub sample: Sample,
    /// The periods, each a size of the sample, in the order of their first use.
    pub periods: Vec<usize>,
    /// The sizes of the results of one period.
    results: Vec<Vec<usize>>,
    named: Named,
}

/// A large call.
#[derive(Debug)]
pub struct Large {
    /// The arguments, without the elements of tensors.
    inputs: Inputs,
    /// The period and the full sizes of each tensor.
    tensors: Vec<(Array, Vec<usize>)>,
    /// The period and the full sizes of each output.
    expected: Vec<(Array, Vec<usize>)>,
}

impl Periodic {
    /// The sample with periods for all sizes that can repeat; `None` if none can.
    pub fn of(sample: &Sample, oracle: Oracle, dtype: DType, seed: u64) -> Option<Periodic> {
        let sizes = growth::sizes(sample);
        let free = PERIODS.into_iter().filter(|period| !sizes.contains(period));
        for named in [Named::Limits, Named::Nothing, Named::Lists] {
            let repeats = |changes: &[(usize, usize)]| {
                let sample = growth::resized(sample, changes, named);
                let periods = changes.iter().map(|(_, period)| *period).collect();
                Periodic { sample, periods, results: Vec::new(), named }.verified(oracle, dtype, seed)
            };
            let mut changes: Vec<(usize, usize)> = Vec::new();
            for &size in &sizes {
                let change = free.clone().nth(changes.len()).map(|period| (size, period));
                changes.extend(change.filter(|&change| repeats(&[change]).is_some()));
            }
            while !changes.is_empty() {
                // Each size may repeat separately and not together with the others.
                if let Some(periodic) = repeats(&changes) {
                    return Some(periodic);
                }
                changes.pop();
            }
        }
        None
    }

    /// A sample that is known to repeat in all dimensions with these sizes.
    pub fn known(sample: Sample, periods: &[usize]) -> Periodic {
        Periodic { sample, periods: periods.to_vec(), results: Vec::new(), named: Named::Nothing }
    }

    /// The same sample with the sizes of its results, if they repeat.
    fn verified(mut self, oracle: Oracle, dtype: DType, seed: u64) -> Option<Periodic> {
        self.results = self.results_of_period(oracle, dtype, seed)?;
        self.repeats(oracle, dtype, seed).then_some(self)
    }

    fn results_of_period(&self, oracle: Oracle, dtype: DType, seed: u64) -> Option<Vec<Vec<usize>>> {
        let made = oracle(&inputs::of_sample(&self.sample.args, dtype, seed)).ok()?;
        Some(made.into_iter().map(|array| array.sizes).collect())
    }

    /// The sizes that do not repeat.
    pub fn fixed(&self) -> Vec<usize> {
        growth::sizes(&self.sample).into_iter().filter(|size| !self.periods.contains(size)).collect()
    }

    /// The same with one non-repeating size replaced, over its full length; `None` if the oracle would take more than
    /// `most` steps, or has no expected value.
    pub fn with_fixed(
        &self,
        [from, to]: [usize; 2],
        most: usize,
        oracle: Oracle,
        dtype: DType,
        seed: u64,
    ) -> Option<Periodic> {
        let longer =
            Periodic { sample: growth::resized(&self.sample, &[(from, to)], self.named), ..self.clone() };
        if longer.steps(&[]) > most {
            return None;
        }
        longer.verified(oracle, dtype, seed)
    }

    /// The estimated number of steps of a call with periods extended to these lengths, see [`growth::steps`], or the number
    /// of elements of its results, whichever is larger.
    pub fn steps(&self, lengths: &[(usize, usize)]) -> usize {
        let length = |size: usize| lengths.iter().find(|(from, _)| *from == size).map_or(size, |(_, to)| *to);
        let product =
            |sizes: &[usize]| sizes.iter().fold(1_usize, |all, &size| all.saturating_mul(length(size)));
        let results = self.results.iter().map(|sizes| product(sizes)).max().unwrap_or(0);
        let steps = growth::steps_with(&self.sample, length);
        results.max(steps)
    }

    /// The number of elements of the largest argument or result, with periods extended to these lengths.
    pub fn largest(&self, lengths: &[(usize, usize)]) -> usize {
        let length = |size: usize| lengths.iter().find(|(from, _)| *from == size).map_or(size, |(_, to)| *to);
        let of_arguments = tensors(&self.sample).map(|t| t.sizes.as_slice());
        let all = of_arguments.chain(self.results.iter().map(Vec::as_slice));
        all.map(|sizes| sizes.iter().fold(1_usize, |n, &size| n.saturating_mul(length(size))))
            .max()
            .unwrap_or(0)
    }

    /// The sample with periods extended to these lengths.
    pub fn grown(&self, lengths: &[(usize, usize)]) -> Sample {
        growth::resized(&self.sample, lengths, self.named)
    }

    /// Whether the oracle's results repeat along with the arguments.
    fn repeats(&self, oracle: Oracle, dtype: DType, seed: u64) -> bool {
        let each = |grow: fn(usize) -> usize| -> Vec<(usize, usize)> {
            self.periods.iter().map(|&period| (period, grow(period))).collect()
        };
        [each(|period| period + 2), each(|period| 2 * period + 1)].iter().all(|lengths| {
            let Some(large) = self.large(lengths, oracle, dtype, seed) else { return false };
            let mut inputs = large.inputs.clone();
            let mut all = large.tensors.iter();
            inputs::map_arrays(&mut inputs, |array| {
                if let Some((period, sizes)) = all.next() {
                    *array = repeated(period, sizes);
                }
            });
            let Ok(made) = oracle(&inputs) else { return false };
            made.len() == large.expected.len()
                && made
                    .iter()
                    .zip(&large.expected)
                    .all(|(made, (period, sizes))| made.sizes == *sizes && is_repeated(made, period))
        })
    }

    /// The call on tensors of these lengths, built by repeating the period; `None` if the oracle has no expected value.
    pub fn large(
        &self,
        lengths: &[(usize, usize)],
        oracle: Oracle,
        dtype: DType,
        seed: u64,
    ) -> Option<Large> {
        let grown = self.grown(lengths);
        let small = inputs::of_sample(&self.sample.args, dtype, seed);
        let expected = oracle(&small).ok()?;
        let mut periods = Vec::new();
        inputs::map_arrays(&mut small.clone(), |array| periods.push(array.clone()));
        let sizes = tensors(&grown).map(|t| t.sizes.clone());
        let length = |size: usize| lengths.iter().find(|(from, _)| *from == size).map_or(size, |(_, to)| *to);
        let grow = |array: &Array| array.sizes.iter().map(|&size| length(size)).collect();
        let expected = expected.into_iter().map(|array| (array.clone(), grow(&array)));
        Some(Large {
            inputs: inputs::shapes_of_sample(&grown.args, dtype),
            expected: expected.collect(),
            tensors: periods.into_iter().zip(sizes).collect(),
        })
    }
}

impl Large {
    /// The call, without its tensors.
    pub fn prepared(&self) -> Prepared {
        Prepared::unplaced(&self.inputs)
    }

    /// The tensors, arranged as `arrange` returns for their sizes.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn tensors(&self, device: Device, arrange: impl Fn(&[usize]) -> Arrangement) -> Result<Vec<Tensor>> {
        let each = self.tensors.iter();
        each.map(|(period, sizes)| {
            let bytes = repeated_bytes(&bytes_of(period), &period.sizes, sizes, period.dtype.size());
            place(&bytes, period.dtype, sizes, arrange(sizes), device)
        })
        .collect()
    }

    /// Tensors for `out=` of the results' sizes, filled with one byte, not valid results.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn outs(&self, device: Device, arrange: impl Fn(&[usize]) -> Arrangement) -> Result<Vec<Tensor>> {
        let each = self.expected.iter();
        each.map(|(period, sizes)| {
            let bytes = vec![0xA5; sizes.iter().product::<usize>() * period.dtype.size()];
            place(&bytes, period.dtype, sizes, arrange(sizes), device)
        })
        .collect()
    }

    /// The dtype and sizes of each output.
    pub fn results(&self) -> impl Iterator<Item = (DType, &[usize])> {
        self.expected.iter().map(|(period, sizes)| (period.dtype, &sizes[..]))
    }

    /// The dtype and sizes of the first tensor.
    pub fn first(&self) -> Option<(DType, &[usize])> {
        self.tensors.first().map(|(period, sizes)| (period.dtype, &sizes[..]))
    }

    /// Compares every element of the results.
    ///
    /// # Errors
    /// The first output that is wrong.
    pub fn check(
        &self,
        got: &[Tensor],
        tolerance: impl Fn(&Array) -> Tolerance,
    ) -> std::result::Result<(), Failure> {
        if got.len() != self.expected.len() {
            let (expected, got) = (self.expected.len().to_string(), got.len().to_string());
            return Err(Failure::new("wrong number of outputs", expected, got));
        }
        for (nth, ((period, sizes), got)) in self.expected.iter().zip(got).enumerate() {
            if (got.dtype(), got.shape()) != (period.dtype, &sizes[..]) {
                return Err(Failure::new(
                    format!("output {nth} has the wrong dtype or shape"),
                    format!("{} {sizes:?}", period.dtype),
                    format!("{} {:?}", got.dtype(), got.shape()),
                ));
            }
            output(nth, period, sizes, &got.detach().to_bytes()?, tolerance(period))?;
        }
        Ok(())
    }
}

/// Checks one output: the first period by the oracle, and that all others have its bytes; periods with different bytes by
/// the oracle too.
fn output(
    nth: usize,
    period: &Array,
    sizes: &[usize],
    got: &[u8],
    tolerance: Tolerance,
) -> std::result::Result<(), Failure> {
    let size = period.dtype.size();
    let first: Vec<u8> = Indices::new(&period.sizes)
        .flat_map(|index| {
            let at = flat(sizes, &index) * size;
            got.get(at..at + size).unwrap_or(&[]).to_vec()
        })
        .collect();
    let read = |bytes: &[u8]| -> Option<Vec<Number>> {
        bytes.chunks_exact(size).map(|bytes| encode::number(bytes, period.dtype)).collect()
    };
    let invalid = || {
        Failure::new(
            format!("output {nth} holds bytes that are no {}", period.dtype),
            "valid elements",
            "invalid bytes",
        )
    };
    // Tensors without an element have no period.
    let repeats = sizes.iter().zip(&period.sizes).all(|(&large, &small)| large >= small);
    if repeats {
        let values = Array::new(period.dtype, period.sizes.clone(), read(&first).ok_or_else(invalid)?);
        compare::array(nth, period, &values, tolerance)?;
        if repeated_bytes(&first, &period.sizes, sizes, size) == got {
            return Ok(());
        }
    }
    let expected = repeated(period, sizes);
    let values = Array::new(period.dtype, sizes, read(got).ok_or_else(invalid)?);
    compare::array(nth, &expected, &values, tolerance)
}

fn bytes_of(array: &Array) -> Vec<u8> {
    array.values.iter().flat_map(|&value| encode::bytes(value, array.dtype)).collect()
}

/// The elements of `period` at each index modulo its sizes.
fn repeated(period: &Array, sizes: &[usize]) -> Array {
    let mut within = vec![0; sizes.len()];
    Array::from_fn(period.dtype, sizes, |index| {
        within.iter_mut().zip(index).zip(&period.sizes).for_each(|((at, i), n)| *at = i % n);
        period.at(&within)
    })
}

/// Whether an array is a smaller one, repeated. Floats may be rounded differently, as the order of addends varies.
fn is_repeated(array: &Array, period: &Array) -> bool {
    let equal = |a: Number, b: Number| match (a, b) {
        (Number::Float(a), Number::Float(b)) => {
            a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= 1e-9 * a.abs().max(b.abs())
        }
        (Number::Complex(..), Number::Complex(..)) => {
            let far = |re: f64, im: f64| re.hypot(im);
            a == b
                || far(a.float() - b.float(), a.imaginary() - b.imaginary())
                    <= 1e-9 * far(a.float(), a.imaginary())
        }
        (a, b) => a == b,
    };
    let expected = repeated(period, &array.sizes);
    array.values.iter().zip(&expected.values).all(|(&a, &b)| equal(a, b))
}

/// The bytes of an array of `sizes` whose elements are those of a smaller one at each index modulo its sizes.
fn repeated_bytes(period: &[u8], small: &[usize], sizes: &[usize], size: usize) -> Vec<u8> {
    let (Some((&row, outer)), Some((&period_row, _))) = (sizes.split_last(), small.split_last()) else {
        return period.to_vec();
    };
    let mut bytes = Vec::with_capacity(sizes.iter().product::<usize>() * size);
    if bytes.capacity() == 0 {
        return bytes;
    }
    let mut within = vec![0; outer.len()];
    for index in Indices::new(outer) {
        within.iter_mut().zip(&index).zip(small).for_each(|((at, i), n)| *at = i % n);
        let from = flat(&small[..outer.len()], &within) * period_row * size;
        let source = &period[from..from + period_row * size];
        (0..row / period_row).for_each(|_| bytes.extend_from_slice(source));
        bytes.extend_from_slice(&source[..row % period_row * size]);
    }
    bytes
}

/// A tensor of these elements, without guard bands.
fn place(
    bytes: &[u8],
    dtype: DType,
    sizes: &[usize],
    arrangement: Arrangement,
    device: Device,
) -> Result<Tensor> {
    let strides = arrangement.strides(sizes);
    let size = dtype.size();
    let storage = if strides == Arrangement::Contiguous.strides(sizes) {
        let storage = Storage::allocate(device, bytes.len())?;
        write_bytes(&storage, 0, bytes)?;
        storage
    } else {
        let ends = sizes.iter().zip(&strides).map(|(&n, &s)| n.saturating_sub(1) * s);
        let mut spread = vec![0xA5; (ends.sum::<usize>() + 1) * size];
        for (element, to) in bytes.chunks_exact(size).zip(Offsets::new(sizes, &strides, 0)) {
            spread[to * size..(to + 1) * size].copy_from_slice(element);
        }
        let storage = Storage::allocate(device, spread.len())?;
        write_bytes(&storage, 0, &spread)?;
        storage
    };
    Ok(Tensor::from_ref(TensorImpl::strided(storage, 0, sizes, &strides, dtype)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle;
    use keyway::ops::sample::{SampleArg, plain, sample};

    fn of(op: &str, sample: &Sample) -> Option<Periodic> {
        Periodic::of(sample, oracle::find(op).expect("an oracle"), DType::F32, 1)
    }

    #[test]
    fn the_oracle_reports_what_repeats() {
        let product = of("mm", &sample([plain(&[2, 3]), plain(&[3, 4])])).expect("rows and columns");
        assert_eq!((product.periods.len(), product.fixed()), (2, vec![3]));
        let square = sample([plain(&[3, 3]), plain(&[3, 3])]);
        assert!(of("mm", &square).is_none(), "rows are terms");
        let rows = of("softmax", &sample([plain(&[2, 4]), SampleArg::Int(-1)])).expect("rows");
        assert_eq!(rows.fixed(), [4]);
        let all = of("exp", &sample([plain(&[2, 4])])).expect("all");
        assert_eq!((all.periods, all.sample.args), (vec![7, 5], vec![plain(&[7, 5])]));
        assert!(of("cumsum", &sample([plain(&[4]), SampleArg::Int(0)])).is_none());
    }

    #[test]
    fn bytes_repeat_as_elements_do() {
        let period = Array::from_fn(DType::U8, [2, 3], |at| Number::Int((10 * at[0] + at[1]) as i128));
        let large = repeated(&period, &[5, 7]);
        assert_eq!(large.at(&[3, 5]), Number::Int(12));
        assert_eq!(repeated_bytes(&bytes_of(&period), &[2, 3], &[5, 7], 1), bytes_of(&large));
        assert!(is_repeated(&large, &period));
        assert!(repeated_bytes(&bytes_of(&period), &[2, 3], &[0, 7], 1).is_empty());
    }

    #[test]
    fn one_wrong_element_of_many_is_found() {
        let period = Array::from_fn(DType::U8, [2, 3], |at| Number::Int((10 * at[0] + at[1]) as i128));
        let mut got = bytes_of(&repeated(&period, &[5, 7]));
        let check = |got: &[u8]| output(0, &period, &[5, 7], got, Tolerance::of(DType::U8));
        assert_eq!(check(&got), Ok(()));
        got[33] = 99;
        let failure = check(&got).expect_err("a wrong element");
        assert_eq!(failure.mismatch.expect("an element").element, [4, 5]);
    }
}
