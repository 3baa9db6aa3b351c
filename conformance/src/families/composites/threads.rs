//! Kernels and conversions of composite layouts, called by several threads concurrently: two with the same arguments, and others with
//! arguments of their own.

use super::kernel::{self, Kind, Subject};
use super::layout;
use crate::families::at_once::{Repeated, at_once};
use crate::families::{Context, tensors};
use crate::growth::{self, enlarged};
use crate::memory::{Arrangement, Placed};
use crate::outcome::{Steps, Stop};
use keyway::dispatcher::memory::Storage;

/// Threads with arguments of their own; one more has those of the first.
const THREADS: u64 = 3;
/// Elements of the largest tensor of a call, long enough that calls overlap; on a device whose memory the host cannot read a call
/// is long at any size.
const ELEMENTS: f64 = 20_000.0;
const APART: f64 = 600.0;
/// How many times as many elements conversions have, which read each once.
const CONVERSIONS: f64 = 4.0;
/// The most steps of a call.
const STEPS: usize = 1_000_000;
/// Samples.
const KINDS: usize = 16;

/// Runs a case of the family.
///
/// # Errors
/// Another result than that of a lone call.
pub fn run(context: &Context<'_>) -> Steps {
    if let Some(subject) = layout::Subject::of(context)? {
        return conversions(&subject);
    }
    let subject = Subject::of(context)?;
    let kinds = subject.kinds(KINDS)?;
    let numel = |kind: &&Kind| tensors(&kind.sample).map(|t| t.sizes.iter().product::<usize>()).max();
    let Some(kind) = kinds.iter().max_by_key(numel) else {
        return Err(Stop::Skipped("the kernel serves no sample with sizes".to_string()));
    };
    let mut elements = elements(context)?;
    let mut sample = enlarged(&kind.sample, elements);
    while growth::steps(&sample) > STEPS && elements > 1.0 {
        elements /= 2.0;
        sample = enlarged(&kind.sample, elements);
    }
    for &choice in &kind.choices {
        let mut placed = Vec::new();
        // An argument may name sizes; then the sample's own are used.
        for sample in [&sample, &kind.sample] {
            for salt in 0..THREADS {
                placed.extend(subject.place(sample, &subject.inputs(sample, salt), choice, 0)?);
            }
            let served = |placed| subject.bits(placed).is_ok();
            if placed.first().is_some_and(served) {
                break;
            }
            placed.clear();
        }
        let calls: Vec<Repeated<'_>> =
            placed.iter().filter_map(|placed| Repeated::new(|| subject.bits(placed)).ok()).collect();
        together(&calls)?;
    }
    Ok(())
}

fn elements(context: &Context<'_>) -> Steps<f64> {
    let near = Storage::allocate(context.target.device, 1)?.is_host_accessible();
    Ok(if near { ELEMENTS } else { APART })
}

/// Makes all calls concurrently, the first on two threads.
fn together(calls: &[Repeated<'_>]) -> Steps {
    match calls.first() {
        Some(first) => at_once(&calls.iter().chain([first]).collect::<Vec<_>>(), None),
        None => Ok(()),
    }
}

/// Conversions to the layout and back, of several tensors.
fn conversions(subject: &layout::Subject<'_>) -> Steps {
    let most = CONVERSIONS * elements(subject.context)?;
    for shape in subject.shapes()?.into_iter().take(2) {
        let larger = shape.enlarged(most);
        let shape = if subject.accepts(&larger)? { shape.with(larger) } else { shape };
        let mut all = subject.fillings(&shape)?;
        let reversed = all.iter().map(|values| {
            let mut reversed = values.clone();
            reversed.values.reverse();
            reversed
        });
        all.extend(reversed.collect::<Vec<_>>());
        let placed = all.iter().map(|values| Placed::new(values, Arrangement::Contiguous, subject.device));
        let placed = placed.collect::<keyway::Result<Vec<_>>>()?;
        let calls = placed.iter().filter_map(|strided| {
            let call = || {
                let composite = subject.convert(&shape, &strided.tensor)?;
                let mut bits = kernel::bytes(&composite)?;
                bits.push(composite.to_strided()?.to_bytes()?);
                Ok(bits)
            };
            Repeated::new(call).ok()
        });
        together(&calls.collect::<Vec<_>>())?;
    }
    Ok(())
}
