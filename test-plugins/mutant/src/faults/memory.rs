//! Memory that is leaked, shared, or written too late.

use super::fault::Fault;
use crate::site::Site;
use keyway_sdk::Error;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

pub(super) const FAULTS: &[Fault] = &[
    Fault::new("device_leak", "a tensor of the host's is never given back", &["add"], |site| {
        std::mem::forget(site.call.new_tensor::<f32>(&[256])?);
        site.run()
    }),
    Fault::new("heap_leak", "a megabyte of each call is never freed", &["mul"], |site| {
        std::mem::forget(vec![1u8; 1 << 20]);
        site.run()
    })
    .dtypes(&["f32"]),
    Fault::new("leak_of_results", "a copy of each result is never freed", &["exp"], |site| {
        site.run()?;
        std::mem::forget(site.output(0)?.values());
        Ok(())
    })
    .dtypes(&["f32"]),
    Fault::new("late_write", "writes to the output after the return", &["exp"], |site| {
        site.run()?;
        let out = site.output(0)?;
        let (address, width) = (out.address(), out.width());
        if out.len() > 0 {
            std::thread::spawn(move || {
                std::thread::sleep(Duration::from_millis(5));
                // SAFETY: none: the memory may have been freed, which is what the fault is.
                unsafe { (address as *mut u8).write_bytes(0x3C, width) };
            });
        }
        Ok(())
    })
    .dtypes(&["f32"]),
    Fault::new("shared_scratch", "threads that call at once share one buffer", &["add"], shared_scratch)
        .dtypes(&["f32", "bf16"]),
];

/// The capacity of the shared buffer in elements.
const ROOM: usize = 4096;

/// Writes the result to the buffer, waits like a long computation, and reads it back.
fn shared_scratch(site: &Site<'_>) -> Result<(), Error> {
    static SCRATCH: [AtomicU64; ROOM] = [const { AtomicU64::new(0) }; ROOM];
    site.run()?;
    let out = site.output(0)?;
    let count = out.len().min(ROOM);
    (0..count).for_each(|nth| SCRATCH[nth].store(out.get(nth).to_bits(), Ordering::Relaxed));
    std::thread::sleep(Duration::from_micros(300));
    (0..count).for_each(|nth| out.set(nth, f64::from_bits(SCRATCH[nth].load(Ordering::Relaxed))));
    Ok(())
}
