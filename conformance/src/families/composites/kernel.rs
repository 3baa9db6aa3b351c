//! A kernel of a composite layout under test: the samples that it serves, its calls and their verdict.

use super::dtypes_of;
use crate::array::Array;
use crate::call::is_of_arguments;
use crate::compare::{self, Tolerance};
use crate::families::kernels::{self, Change};
use crate::families::placements::{self, Call};
use crate::families::unclaimed::is_refusal;
use crate::families::{Context, has_tested, is_in, tensors};
use crate::growth;
use crate::inputs;
use crate::oracle::Inputs;
use crate::outcome::{Failure, Steps, Stop};
use crate::recorder;
use keyway::dispatcher::op::{OpEntry, Out};
use keyway::dispatcher::registry::KernelEntry;
use keyway::ops::def::{OpDef, definition};
use keyway::ops::sample::{Sample, SampleArg};
use keyway::ops::{by_name, pointwise};
use keyway::{DType, Device, Error, Layout, Tensor};

/// Factor of the usual tolerance for sums of many addends: the test detects wrong pieces.
const LOOSE: f64 = 100.0;
/// The same for f16 and bf16, where the final rounding dominates.
const LOOSE_HALF: f64 = 4.0;
/// The most elements of results that the oracle computes: those of an expanded tensor are many more than its own.
const RESULTS: usize = 120_000;

/// A kernel under test.
pub struct Subject<'a> {
    /// The case.
    pub context: &'a Context<'a>,
    /// The op.
    pub entry: &'static OpEntry,
    /// Its definition; none for an op of a plugin.
    pub def: Option<&'static OpDef>,
    /// The layout.
    pub layout: Layout,
    /// The device of the tensors.
    pub device: Device,
    kernel: &'static KernelEntry,
}

/// A sample that the kernel serves.
pub struct Kind {
    /// The sample, with sizes that the layout holds.
    pub sample: Sample,
    /// The served choices of its tensors in the layout; see [`placements::choices`].
    pub choices: Vec<usize>,
}

/// The result of a call.
pub enum Judged {
    /// The kernel served it, and its result is right.
    Right,
    /// The layout does not hold the tensors, the op does not take them, or another candidate serves the call.
    Elsewhere,
    /// No candidate serves it, with the reason.
    Refused(String),
}

impl<'a> Subject<'a> {
    /// The kernel of a case.
    ///
    /// # Errors
    /// A kernel that the target does not have.
    pub fn of(context: &'a Context<'a>) -> Steps<Subject<'a>> {
        let entry = context.entry()?;
        let device = context.target.device;
        let is_it = |k: &&&'static KernelEntry| {
            (k.op, k.device, k.dtype) == (entry.name, device.kind, context.dtype().code())
                && kernels::key_of(k) == context.case.variant
        };
        let kernel = *context
            .target
            .kernels
            .iter()
            .find(|k| is_it(k))
            .ok_or_else(|| Stop::Skipped("there is no such kernel".to_string()))?;
        Ok(Subject { context, entry, def: definition(entry), layout: kernel.layout, device, kernel })
    }

    /// The dtype under test.
    pub fn dtype(&self) -> DType {
        self.context.dtype()
    }

    /// Whether the dtype is the usual one of the target's kernels of the op: others have the same code for sizes.
    pub fn is_usual(&self) -> bool {
        dtypes_of(self.context.target, self.kernel).first() == Some(&self.dtype())
    }

    /// Whether each element of the result is computed from one element of each argument.
    pub fn is_pointwise(&self) -> bool {
        self.def.is_some_and(|def| is_in(def, &[pointwise::ALL]))
    }

    /// Factor of the tolerance for many addends.
    pub fn loose(&self) -> f64 {
        match self.dtype() {
            _ if self.is_pointwise() => 1.0,
            DType::F16 | DType::BF16 => LOOSE_HALF,
            _ => LOOSE,
        }
    }

    /// The values of a sample; others for each `salt`.
    pub fn inputs(&self, sample: &Sample, salt: u64) -> Inputs {
        inputs::of_sample(&sample.args, self.dtype(), self.context.seed + salt)
    }

    /// The first samples that the kernel serves, of those that differ in more than their sizes; all the samples with other sizes
    /// if it serves none with their own.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn kinds(&self, most: usize) -> Steps<Vec<Kind>> {
        let samples = by_name::samples(self.entry.name)?;
        let mut kinds = Vec::new();
        for change in [Change::None, Change::Squared, Change::Matrices] {
            let mut seen: Vec<String> = Vec::new();
            for sample in samples.iter().filter(|sample| has_tested(sample)) {
                let sample = kernels::reshaped(sample, change);
                let whole = tensors(&sample).all(|t| !t.sizes.contains(&0));
                let name = name_of(&sample);
                if kinds.len() == most || !whole || growth::sizes(&sample).is_empty() || seen.contains(&name)
                {
                    continue;
                }
                let inputs = self.inputs(&sample, 0);
                let mut choices = Vec::new();
                for choice in 0..placements::choices(&sample) {
                    let placed = self.place(&sample, &inputs, choice, 0)?;
                    if placed.is_some_and(|placed| self.made(&placed).is_ok_and(|made| made.is_some())) {
                        choices.push(choice);
                    }
                }
                if !choices.is_empty() {
                    seen.push(name);
                    kinds.push(Kind { sample, choices });
                }
            }
            if !kinds.is_empty() {
                break;
            }
        }
        Ok(kinds)
    }

    /// A call with the tensors of a choice in the layout, in form `form` of [`placements::forms`].
    ///
    /// # Errors
    /// Errors of the device.
    pub fn place(&self, sample: &Sample, inputs: &Inputs, choice: usize, form: usize) -> Steps<Option<Call>> {
        let nth = form * placements::choices(sample) + choice;
        placements::place(self.layout, sample, inputs, nth, self.device)
    }

    /// The results of a call that the kernel serves; `None` if another candidate does.
    fn made(&self, placed: &Call) -> keyway::Result<Option<Vec<Tensor>>> {
        let before = recorder::served_by(self.kernel);
        let made = placed.prepared.call_entry(self.entry, &placed.tensors, Out::New)?;
        Ok((recorder::served_by(self.kernel) > before).then_some(made))
    }

    /// Makes a call and compares its results, with `loose` times the tolerance.
    ///
    /// # Errors
    /// A wrong result; an error that is no refusal.
    pub fn judge(&self, sample: &Sample, placed: &Call, loose: f64) -> Steps<Judged> {
        self.judge_with(sample, placed, loose, |_, _| Ok(()))
    }

    /// As [`Subject::judge`], with a further check of the expected and the actual results.
    ///
    /// # Errors
    /// As [`Subject::judge`]; those of the check.
    pub fn judge_with(
        &self,
        sample: &Sample,
        placed: &Call,
        loose: f64,
        also: impl Fn(&[Array], &[Tensor]) -> Result<(), Failure>,
    ) -> Steps<Judged> {
        let by_oracle = || self.def.map(|def| kernels::by_oracle(def, &placed.inputs, placed));
        let made = match self.made(placed) {
            Ok(Some(made)) => made,
            Ok(None) | Err(Error::NoLayout { .. }) => return Ok(Judged::Elsewhere),
            Err(error) if is_of_arguments(&error) => return Ok(Judged::Elsewhere),
            // For example indices that must be sorted and no longer are.
            Err(_) if by_oracle().is_some_and(|expected| expected.is_none()) => return Ok(Judged::Elsewhere),
            Err(Error::Dispatch(error)) if is_refusal(&error) => {
                return Ok(Judged::Refused(error.to_string()));
            }
            Err(error) => return Err(named(sample, placed, error.into()).into()),
        };
        if made.iter().map(Tensor::elem_count).sum::<usize>() > RESULTS {
            return Ok(Judged::Elsewhere);
        }
        if let Some(how) = placed.how {
            self.context.judge_by(how);
        }
        let Some(expected) = kernels::expected(self.context, self.entry, placed, &made)? else {
            return Ok(if self.def.is_some() { Judged::Elsewhere } else { Judged::Right });
        };
        let factor = kernels::factor_of(self.entry, sample);
        let tolerance = |of: &Array| match loose > 1.0 {
            true => compare::of_terms(of, factor, loose),
            false => Tolerance::of(of.dtype).times(factor),
        };
        kernels::same(&expected, &made, placed.tolerance, tolerance)
            .and_then(|()| also(&expected, &made))
            .map_err(|failure| named(sample, placed, failure))?;
        Ok(Judged::Right)
    }

    /// The bytes of the results of a call, those of a composite tensor component by component.
    ///
    /// # Errors
    /// Errors of the call.
    pub fn bits(&self, placed: &Call) -> Steps<Vec<Vec<u8>>> {
        let made = placed.prepared.call_entry(self.entry, &placed.tensors, Out::New)?;
        made.iter().map(bytes).collect::<Steps<Vec<_>>>().map(|all| all.concat())
    }
}

/// The bytes of a tensor, or of each of its components.
///
/// # Errors
/// Errors of the device.
pub fn bytes(tensor: &Tensor) -> Steps<Vec<Vec<u8>>> {
    if tensor.as_ref().is_strided() {
        return Ok(vec![tensor.to_bytes()?]);
    }
    let parts = tensor.components()?;
    Ok(parts.iter().map(Tensor::to_bytes).collect::<keyway::Result<_>>()?)
}

/// The arguments of a sample besides its tensors, and the numbers of dimensions of these.
fn name_of(sample: &Sample) -> String {
    let others: Vec<_> = sample.args.iter().filter(|arg| !matches!(arg, SampleArg::Tensor(_))).collect();
    let ranks: Vec<usize> = tensors(sample).map(|t| t.sizes.len()).collect();
    format!("{others:?} {ranks:?}")
}

/// A failure with the sizes and the placement of the call.
fn named(sample: &Sample, placed: &Call, mut failure: Failure) -> Failure {
    let sizes: Vec<String> = tensors(sample).map(|t| format!("{:?}", t.sizes)).collect();
    failure.what = format!("{}, {}: {}", sizes.join(" "), placed.name, failure.what);
    failure
}

/// The number of right calls, and why others were refused.
#[derive(Default)]
pub struct Tally {
    right: usize,
    refusal: Option<String>,
}

impl Tally {
    /// Counts a call; whether it was right.
    pub fn count(&mut self, judged: Judged) -> bool {
        let right = matches!(judged, Judged::Right);
        self.right += usize::from(right);
        if let Judged::Refused(why) = judged {
            self.refusal.get_or_insert(why);
        }
        right
    }

    /// The verdict of a case: a kernel that serves the samples must serve one of the larger calls.
    ///
    /// # Errors
    /// A kernel that refused all; no call at all.
    pub fn larger(self) -> Steps {
        match self {
            Tally { right: 0, refusal: Some(why) } => {
                let what = "calls with other sizes than those of the samples, which the kernel serves";
                Err(Failure::new(what, "one that it serves", why).into())
            }
            other => other.any(),
        }
    }

    /// The verdict of a case whose calls the kernel may refuse.
    ///
    /// # Errors
    /// No call at all.
    pub fn any(self) -> Steps {
        match self.right {
            0 => Err(Stop::Skipped("the kernel serves no such call".to_string())),
            _ => Ok(()),
        }
    }
}
