//! Keyway's Fourier transforms on the CPU, a plugin: complex to complex, real to half spectrum, half spectrum to real.
//!
//! Decisions:
//! - the algorithms are those of `rustfft` and `realfft`, which select their SIMD code at run time, so one build serves every CPU
//!   level: mixed radices, Rader's and Bluestein's for lengths with large prime factors, `O(n log n)` for every length. FFTW is a C
//!   dependency under the GPL;
//! - a library of its own: a program without Fourier transforms need not load two megabytes of code;
//! - several dimensions are transformed sequentially, the last one first. Lines that are strided in memory are gathered in blocks, so that whole
//!   cache lines are read and written, transformed in scratch memory, and scattered;
//! - lines are split over the host's thread pool in blocks by the sizes alone, so results do not depend on the number of threads.
//!   One line is transformed by one thread;
//! - plans are cached by length and direction, in a bounded list of the most recently used.

mod kernels;
mod number;
mod plans;

keyway_sdk::plugin! {
    name: "keyway-fft",
    version: env!("CARGO_PKG_VERSION"),
    description: "Fourier transforms on the CPU",
    devices: ["cpu"],
    layouts: ["strided"],
}
