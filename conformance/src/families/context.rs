//! Context of a running case, for all families.

use super::tensors;
use crate::array::Array;
use crate::call::{self, Prepared};
use crate::case::Case;
use crate::growth::{self, enlarged};
use crate::inputs;
use crate::memory::Arrangement;
use crate::oracle::{self, Inputs, Oracle};
use crate::outcome::{Steps, Stop};
use crate::target::Target;
use keyway::dispatcher::ledger::{Served, last_served};
use keyway::dispatcher::op::{OpEntry, Out};
use keyway::ops::by_name;
use keyway::ops::def::OpDef;
use keyway::ops::sample::Sample;
use keyway::{DType, Layout, Tensor};
use std::sync::{Mutex, PoisonError};

/// A case being run.
pub struct Context<'a> {
    /// The tested plugin and device.
    pub target: &'a Target,
    /// The case.
    pub case: &'a Case,
    /// Mixed into the values of the samples.
    pub seed: u64,
    /// Seed of the family `drawn`.
    pub draws: u64,
    /// The id of the simplest call that also fails, if one was found.
    shrunk: Mutex<Option<String>>,
    /// The reference of the results, if it is not the oracle.
    judged_by: Mutex<Option<String>>,
}

impl<'a> Context<'a> {
    /// The context of a case that is about to run.
    pub fn new(target: &'a Target, case: &'a Case, seed: u64, draws: u64) -> Context<'a> {
        Context { target, case, seed, draws, shrunk: Mutex::default(), judged_by: Mutex::default() }
    }

    /// Notes the id of a simpler call that fails as well.
    pub fn shrink_to(&self, id: String) {
        *self.shrunk.lock().unwrap_or_else(PoisonError::into_inner) = Some(id);
    }

    /// The id of the simplest call that also fails, if one was found.
    pub fn shrunk(&self) -> Option<String> {
        self.shrunk.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Records the reference of the results, if it is not the oracle.
    pub fn judge_by(&self, what: impl Into<String>) {
        *self.judged_by.lock().unwrap_or_else(PoisonError::into_inner) = Some(what.into());
    }

    /// The reference of the results, if it is not the oracle.
    pub fn judged_by(&self) -> Option<String> {
        self.judged_by.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The definition of the op.
    ///
    /// # Errors
    /// A case whose subject is not an op.
    pub fn def(&self) -> Steps<&'static OpDef> {
        self.case.def.ok_or_else(|| Stop::Skipped("the case is about no op".to_string()))
    }

    /// The dtype under test.
    pub fn dtype(&self) -> DType {
        self.case.dtype.unwrap_or(DType::F32)
    }

    /// The registered op, of a definition or a plugin.
    ///
    /// # Errors
    /// A case whose subject is not an op.
    pub fn entry(&self) -> Steps<&'static OpEntry> {
        match self.case.foreign {
            Some(op) => Ok(op),
            None => Ok(self.def()?.entry()?),
        }
    }

    /// The verdict of a failed call of a valid sample of the op; see [`call::refused`].
    pub fn refused(&self, error: keyway::Error) -> Stop {
        let dtype = self.case.dtype;
        self.entry().map_or_else(|stop| stop, |op| call::refused(self.target, op, dtype, error))
    }

    /// The sample.
    ///
    /// # Errors
    /// A sample that the op does not have.
    pub fn sample(&self) -> Steps<Sample> {
        let samples = by_name::samples(self.entry()?.name)?;
        let count = samples.len();
        samples
            .into_iter()
            .nth(self.case.sample)
            .ok_or_else(|| Stop::Skipped(format!("the op has {count} samples")))
    }

    /// The sample's inputs.
    ///
    /// # Errors
    /// As [`Context::sample`].
    pub fn inputs(&self) -> Steps<(Sample, Inputs)> {
        let sample = self.sample()?;
        let inputs = self.values_of(&sample, 0);
        Ok((sample, inputs))
    }

    /// The seed of this sample's values.
    pub fn sample_seed(&self) -> u64 {
        self.seed.wrapping_mul(1_000_003).wrapping_add(self.case.sample as u64)
    }

    /// The oracle of the op.
    ///
    /// # Errors
    /// An op without an oracle, with the reason.
    pub fn oracle(&self) -> Steps<Oracle> {
        let name = self.case.name();
        oracle::find(name).ok_or_else(|| {
            let reason = oracle::WITHOUT.iter().find(|(op, _)| *op == name);
            Stop::Skipped(reason.map_or("it has no oracle", |(_, why)| why).to_string())
        })
    }

    /// The memory format of images for which the target has kernels of this op: channels_last if it has none for strided
    /// tensors.
    pub fn images(&self) -> Arrangement {
        let of = |layout| {
            let kernels = &self.target.kernels;
            kernels.iter().any(|k| k.layout == layout && k.op == self.case.name())
        };
        match of(Layout::CHANNELS_LAST) && !of(Layout::STRIDED) {
            true => Arrangement::ChannelsLast,
            false => Arrangement::Contiguous,
        }
    }

    /// Allocates the inputs, images in the format of [`Context::images`].
    ///
    /// # Errors
    /// Errors of the device.
    pub fn place(&self, inputs: &Inputs) -> keyway::Result<Prepared> {
        let images = self.images();
        Prepared::new(inputs, self.target.device, |sizes| images.where_it_suits(sizes))
    }

    /// As [`Context::place`], without guard bands: a storage contains only the tensor's elements, as in a program.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn place_bare(&self, inputs: &Inputs) -> keyway::Result<Prepared> {
        let images = self.images();
        Prepared::bare_in(inputs, self.target.device, |sizes| images.where_it_suits(sizes))
    }

    /// The results of a valid call.
    ///
    /// # Errors
    /// The verdict of a refusal.
    pub fn call(&self, prepared: &Prepared) -> Steps<Vec<Tensor>> {
        let made = prepared.call_entry(self.entry()?, &prepared.tensors(), Out::New);
        made.map_err(|e| self.refused(e))
    }

    /// Allocates the inputs of the sample with its sizes multiplied so that the largest tensor has about `elements`
    /// elements; the sample's own inputs if the op does not accept others, since an argument specifies sizes. Also returns
    /// the sample used.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn place_enlarged(&self, elements: f64) -> Steps<(Prepared, Sample)> {
        let (given, op) = (self.sample()?, self.entry()?);
        let larger = enlarged(&given, elements);
        let prepared = self.place(&self.values_of(&larger, 0))?;
        if prepared.call_entry(op, &prepared.tensors(), Out::New).is_ok() {
            return Ok((prepared, larger));
        }
        Ok((self.place(&self.values_of(&given, 0))?, given))
    }

    /// As [`Context::place_enlarged`], with fewer elements if a call would take more than `steps` steps, or have a result
    /// of more than `results` elements: an outer product is larger than both of its arguments.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn place_scaled(&self, elements: f64, steps: usize, results: usize) -> Steps<(Prepared, Sample)> {
        let (given, op) = (self.sample()?, self.entry()?);
        let mut elements = elements;
        // A sample with an empty tensor remains empty at any size.
        let whole = tensors(&given).all(|t| !t.sizes.contains(&0));
        while whole && elements > 1.0 {
            let larger = enlarged(&given, elements);
            elements /= 2.0;
            if growth::steps(&larger) > steps {
                continue;
            }
            let prepared = self.place(&self.values_of(&larger, 0))?;
            match prepared.call_entry(op, &prepared.tensors(), Out::New) {
                Ok(made) if made.iter().all(|t| t.elem_count() <= results) => return Ok((prepared, larger)),
                Ok(_) => {}
                Err(_) => break,
            }
        }
        Ok((self.place(&self.values_of(&given, 0))?, given))
    }

    /// The values for a sample of the op, different for each `salt`.
    pub fn values_of(&self, sample: &Sample, salt: u64) -> Inputs {
        inputs::of_sample(&sample.args, self.dtype(), self.sample_seed() + 1000 * salt)
    }

    /// Whether a kernel of the target ran the last call.
    pub(super) fn served_by_target(&self) -> bool {
        matches!(last_served(), Served::Kernel(kernel) if kernel.plugin.name == self.target.plugin)
    }

    /// The bytes of the results of a valid call.
    ///
    /// # Errors
    /// As [`Context::call`]; bytes that cannot be read.
    pub fn bits(&self, prepared: &Prepared) -> Steps<Vec<Vec<u8>>> {
        Ok(self.call(prepared)?.iter().map(Tensor::to_bytes).collect::<Result<_, _>>()?)
    }

    /// The expected values of the oracle.
    ///
    /// # Errors
    /// An op that the oracle cannot compute, with the reason; a call that both the oracle and the backend refuse, such as an
    /// integer division by zero.
    pub fn expected(&self, inputs: &Inputs) -> Steps<Vec<Array>> {
        let def = self.def()?;
        self.oracle()?(inputs).map_err(|unknown| {
            let called = Prepared::bare(inputs, self.target.device).and_then(|p| p.call(def, Out::New));
            if called.is_err() { Stop::Agreed } else { Stop::Skipped(unknown.to_string()) }
        })
    }
}
