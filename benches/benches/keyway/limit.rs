//! Limits of the machine, as a reference for kernels.

use criterion::Criterion;
use keyway_benches::case;
use std::hint::black_box;

/// The bandwidth at which one thread copies memory.
pub fn cases(c: &mut Criterion) {
    const FLOATS: usize = 1 << 24;
    let source = vec![1.0f32; FLOATS];
    let mut target = vec![0.0f32; FLOATS];
    case(c, "limit.memcpy_64MB_16.8e6", "byte", 8.0 * FLOATS as f64, || {
        target.copy_from_slice(black_box(&source));
        black_box(&mut target)[0]
    });
}
