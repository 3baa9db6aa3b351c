//! The CPU backend of Keyway, a plugin.
//!
//! Decisions:
//! - kernels are plain loops that the compiler vectorises; the library is built once for each CPU level, and the host
//!   selects the best one for the machine. Only AMX and AVX-512 BF16, which no level implies, are detected at run time;
//! - f16 and bf16 are computed and accumulated in f32;
//! - reductions and matrix products split their work by sizes alone, never by the number of threads, so that results do not
//!   depend on it.

mod device;
mod kernels;
mod math;
mod memory;

keyway_sdk::plugin! {
    name: "keyway-cpu",
    version: env!("CARGO_PKG_VERSION"),
    description: "Kernels for the CPU",
    devices: ["cpu"],
    layouts: ["strided"],
    setup: |contents| {
        memory::watch_forks();
        contents.device(&device::API);
        Ok(())
    },
}
