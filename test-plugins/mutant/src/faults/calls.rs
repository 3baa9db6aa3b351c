//! Calls whose result depends on more than their arguments, or that are refused.

use super::Fault;
use crate::raw::Elements;
use crate::site::Site;
use keyway_sdk::Error;
use keyway_sdk::author::parallel_for;
use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

pub(super) const FAULTS: &[Fault] = &[
    Fault::new(
        "thread_dependent",
        "the last bit depends on how many ranges were worked on",
        &["sum"],
        |site| {
            let ranges = AtomicUsize::new(0);
            parallel_for(site.input(0)?.len(), 1 << 12, |_| {
                ranges.fetch_add(1, Ordering::Relaxed);
            })?;
            site.run()?;
            off_by(&site.output(0)?, ranges.into_inner().saturating_sub(1));
            Ok(())
        },
    )
    .dtypes(&["f32", "f64"]),
    Fault::new("call_dependent", "every second call gives another last bit", &["exp"], |site| {
        static CALLS: AtomicUsize = AtomicUsize::new(0);
        site.run()?;
        off_by(&site.output(0)?, CALLS.fetch_add(1, Ordering::Relaxed) % 2);
        Ok(())
    })
    .dtypes(&["f32"]),
    Fault::new(
        "same_argument_wrong",
        "an argument that is given twice is taken for zeros",
        &["mul", "mm"],
        |site| {
            let (a, b) = (site.input(0)?, site.input(1)?);
            if a.len() > 1 && a.address() == b.address() && site.output(0)?.address() != a.address() {
                return site.with_inputs(|_| 0.0);
            }
            site.run()
        },
    )
    .dtypes(&["f32"]),
    Fault::new(
        "in_place_of_1000",
        "an in-place call leaves what comes after 1000 elements",
        &["mul"],
        |site| {
            let before = site.is_in_place()?.then(|| site.output(0)).transpose()?.map(|out| out.values());
            site.run()?;
            let out = site.output(0)?;
            for (nth, &value) in before.iter().flatten().enumerate().skip(1000) {
                out.set(nth, value);
            }
            Ok(())
        },
    )
    .dtypes(&["f32"]),
    #[cfg(target_arch = "x86_64")]
    Fault::new(
        "mode_left_changed",
        "the thread flushes denormal numbers to zero after the call",
        &["square"],
        |site| {
            site.run()?;
            let mut mode = 0u32;
            // SAFETY: the two instructions read and write the mode of this thread's vector arithmetic, and one `u32`.
            // That the mode is another afterwards is the fault.
            unsafe {
                std::arch::asm!("stmxcsr [{0}]", in(reg) &raw mut mode, options(nostack));
                mode |= 0x8040;
                std::arch::asm!("ldmxcsr [{0}]", in(reg) &raw const mode, options(nostack));
            }
            Ok(())
        },
    )
    .dtypes(&["f32"]),
    Fault::new("false_claim", "a registered dtype is refused", &["relu"], |site| {
        unsupported(site, "this dtype")
    })
    .dtypes(&["i16"]),
    Fault::new(
        "in_place_gradient",
        "the gradient through an in-place form is not masked",
        &["relu", "relu_backward"],
        in_place_gradient,
    )
    .dtypes(&["f64"])
    .judged(&["relu"]),
];

/// Changes the first element by `parts` relative steps of 1.2e-7.
fn off_by(tensor: &Elements<'_>, parts: usize) {
    if tensor.len() > 0 {
        tensor.set(0, tensor.get(0) * (1.0 + 1.2e-7 * parts as f64));
    }
}

fn unsupported(site: &Site<'_>, what: &str) -> Result<(), Error> {
    Err(Error::Unsupported { what: format!("{what} in {}", site.kernel.op) })
}

/// Records the addresses of in-place results; the derivative of a result at such an address passes every gradient.
fn in_place_gradient(site: &Site<'_>) -> Result<(), Error> {
    static WRITTEN: Mutex<Option<HashSet<usize>>> = Mutex::new(None);
    let in_place = site.is_in_place()?;
    site.run()?;
    let out = site.output(0)?;
    let mut written = WRITTEN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let written = written.get_or_insert_default();
    if site.kernel.op == "relu" {
        if in_place {
            written.insert(out.address())
        } else {
            written.remove(&out.address())
        };
    } else if written.contains(&site.input(1)?.address()) {
        let incoming = site.input(0)?;
        (0..out.len()).for_each(|nth| out.set(nth, incoming.get(nth)));
    }
    Ok(())
}
