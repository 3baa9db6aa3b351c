//! Element-wise calls on periodic vectors: the oracle computes one period, and every element of each result is compared.

use super::super::Context;
use super::vectors::{at, vectors};
use crate::array::{Array, Number};
use crate::call::Prepared;
use crate::compare::{self, Tolerance};
use crate::families::factor;
use crate::outcome::{Failure, Steps};
use crate::{encode, inputs};
use keyway::dispatcher::memory::{Storage, read_bytes, write_bytes};
use keyway::dispatcher::op::Out;
use keyway::dispatcher::tensor::TensorImpl;
use keyway::ops::sample::Sample;
use keyway::{DType, Device, Tensor};

/// The number of elements of a period: a prime, so that no vector or block begins at the start of a period.
pub const PERIOD: usize = 4_093;
/// The number of periods that are written and read at a time.
const PERIODS: usize = 64;

/// Calls the op on prefixes of the same vectors, one for each length.
pub fn run(context: &Context<'_>, sample: &Sample, lengths: &[usize]) -> Steps {
    let def = context.def()?;
    let sample = vectors(sample, PERIOD)?;
    let inputs = inputs::of_sample(&sample.args, context.dtype(), context.sample_seed());
    let mut outputs: Vec<Periodic> = context.expected(&inputs)?.into_iter().map(Periodic::new).collect();
    let longest = lengths.iter().copied().max().unwrap_or(1);
    let mut storages = Vec::new();
    let mut failed = Ok(());
    inputs::map_arrays(&mut inputs.clone(), |array| {
        let made = repeated(array, longest, context.target.device);
        match made {
            Ok(storage) => storages.push((storage, array.dtype)),
            Err(error) => failed = Err(error),
        }
    });
    failed?;
    let prepared = Prepared::unplaced(&inputs);
    let factor = factor(def, &sample);
    for &length in lengths {
        let tensors = storages
            .iter()
            .map(|(storage, dtype)| vector(storage.clone(), length, *dtype))
            .collect::<keyway::Result<Vec<_>>>()?;
        let mut one = || -> Steps {
            let made = prepared.call_with(def, &tensors, Out::New).map_err(|error| context.refused(error))?;
            if made.len() != outputs.len() {
                let (expected, got) = (outputs.len().to_string(), made.len().to_string());
                return Err(Failure::new("wrong number of outputs", expected, got).into());
            }
            let mut each = outputs.iter_mut().zip(&made).enumerate();
            each.try_for_each(|(nth, (output, got))| output.check(nth, got, length, factor))
        };
        one().map_err(|stop| at(context, length, stop))?;
    }
    Ok(())
}

/// A storage of this many elements, those of `period` repeated.
pub fn repeated(period: &Array, count: usize, device: Device) -> keyway::Result<Storage> {
    let size = period.dtype.size();
    let once: Vec<u8> = period.values.iter().flat_map(|&value| encode::bytes(value, period.dtype)).collect();
    let chunk = once.repeat(PERIODS.min(count.div_ceil(period.numel())));
    let storage = Storage::allocate(device, count * size)?;
    for from in (0..count * size).step_by(chunk.len()) {
        write_bytes(&storage, from, &chunk[..chunk.len().min(count * size - from)])?;
    }
    Ok(storage)
}

/// A vector of the first elements of a storage.
pub fn vector(storage: Storage, length: usize, dtype: DType) -> keyway::Result<Tensor> {
    Ok(Tensor::from_ref(TensorImpl::strided(storage, 0, &[length], &[1], dtype)?))
}

/// One period of an output.
struct Periodic {
    expected: Array,
    /// Bytes that have been found to be within the tolerance.
    accepted: Vec<u8>,
}

impl Periodic {
    fn new(expected: Array) -> Periodic {
        let accepted =
            expected.values.iter().flat_map(|&value| encode::bytes(value, expected.dtype)).collect();
        Periodic { expected, accepted }
    }

    /// Checks every element of a result of this length.
    fn check(&mut self, nth: usize, got: &Tensor, length: usize, factor: f64) -> Steps {
        let dtype = self.expected.dtype;
        let tolerance = Tolerance::of(dtype).times(factor);
        if got.dtype() != dtype || got.shape() != [length] {
            return Err(Failure::new(
                format!("output {nth} has the wrong dtype or shape"),
                format!("{dtype} [{length}]"),
                format!("{} {:?}", got.dtype(), got.shape()),
            )
            .into());
        }
        let got = got.detach().contiguous()?;
        let (storage, offset) = (got.storage()?, got.storage_offset());
        let chunk = self.accepted.len() * PERIODS;
        let (size, bytes) = (dtype.size(), length * dtype.size());
        let mut read = vec![0; chunk.min(bytes)];
        for from in (0..bytes).step_by(chunk) {
            let part = &mut read[..chunk.min(bytes - from)];
            read_bytes(storage, offset * size + from, part)?;
            for (position, period) in part.chunks(self.accepted.len()).enumerate() {
                if *period != self.accepted[..period.len()] {
                    let start = from / size + position * self.expected.numel();
                    self.compare(nth, start, period, tolerance).map_err(|mut failure| {
                        if let Some(mismatch) = &mut failure.mismatch {
                            mismatch.of = length;
                        }
                        failure
                    })?;
                }
            }
        }
        Ok(())
    }

    /// Compares the elements of a period that have other bytes than before.
    fn compare(&mut self, nth: usize, start: usize, got: &[u8], tolerance: Tolerance) -> Result<(), Failure> {
        let (dtype, size) = (self.expected.dtype, self.expected.dtype.size());
        let pairs = got.chunks(size).zip(self.accepted.chunks(size)).enumerate();
        let other: Vec<usize> = pairs.filter(|(_, (got, known))| got != known).map(|(at, _)| at).collect();
        let values: Option<Vec<Number>> =
            other.iter().map(|&at| encode::number(&got[at * size..(at + 1) * size], dtype)).collect();
        let Some(values) = values else {
            let what = format!("output {nth} holds bytes that are no {dtype}, from element {start} on");
            return Err(Failure::new(what, "valid elements", "invalid bytes"));
        };
        let expected = other.iter().map(|&at| self.expected.values[at]).collect();
        let (expected, values) =
            (Array::new(dtype, [other.len()], expected), Array::new(dtype, [other.len()], values));
        compare::array(nth, &expected, &values, tolerance).map_err(|mut failure| {
            if let Some(mismatch) = &mut failure.mismatch {
                let element = start + mismatch.element.first().map_or(0, |&at| other[at]);
                failure.what = format!("output {nth}: element {element} is wrong");
                mismatch.element = vec![element];
            }
            failure
        })?;
        let copy = |&at: &usize| {
            let element = at * size..(at + 1) * size;
            self.accepted[element.clone()].copy_from_slice(&got[element]);
        };
        other.iter().for_each(copy);
        Ok(())
    }
}
