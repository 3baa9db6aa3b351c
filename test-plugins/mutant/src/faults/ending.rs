//! Calls that end the process, or never return.

use super::fault::Fault;
use crate::site::Site;
use keyway_sdk::Error;
use std::time::Duration;

pub(super) const FAULTS: &[Fault] = &[
    Fault::new("panic", "panics", &["sigmoid"], |_| panic!("told to panic")).dtypes(&["bf16"]),
    Fault::new("crash", "writes to address 8", &["relu"], |_| {
        // SAFETY: none: the address is not mapped, and the process ends.
        unsafe { std::ptr::without_provenance_mut::<u64>(8).write_volatile(1) };
        Ok(())
    })
    .dtypes(&["bf16"]),
    Fault::new("abort", "aborts the process", &["sigmoid"], |_| std::process::abort()).dtypes(&["bf16"]),
    Fault::new("exit", "ends the process as if all were well", &["relu"], |_| std::process::exit(0))
        .dtypes(&["bf16"]),
    Fault::new("hang", "never returns", &["relu"], |_| {
        loop {
            std::thread::sleep(Duration::from_secs(1));
        }
    })
    .dtypes(&["i16"]),
    Fault::new("wakes_up", "never returns, and wakes up every 50 ms", &["relu"], |_| {
        loop {
            std::thread::sleep(Duration::from_millis(50));
        }
    })
    .dtypes(&["i16"]),
    Fault::new("memory_blow_up", "takes memory until the process is ended", &["relu"], memory_blow_up)
        .dtypes(&["i16"]),
];

/// Allocates two gigabytes in chunks: more than the limit of a worker, but little enough for a machine without limits.
fn memory_blow_up(site: &Site<'_>) -> Result<(), Error> {
    const PIECE: usize = 32 << 20;
    let mut taken: Vec<Vec<u8>> = Vec::new();
    while taken.len() * PIECE < 2 << 30 {
        taken.push(vec![1; PIECE]);
        std::thread::sleep(Duration::from_millis(5));
    }
    site.run()
}
