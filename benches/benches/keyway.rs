//! The measured cases. `cargo xtask bench` runs them and prints one JSON line each.

use keyway_benches::{case, criterion};
use std::hint::black_box;

fn main() {
    let mut c = criterion();
    memcpy(&mut c);
    c.final_summary();
}

/// What one thread reaches when it copies memory: the limit that memory-bound kernels are held against.
fn memcpy(c: &mut criterion::Criterion) {
    const FLOATS: usize = 1 << 24;
    let source = vec![1.0f32; FLOATS];
    let mut target = vec![0.0f32; FLOATS];
    case(c, "limit.memcpy_64MB_16.8e6", "byte", 8.0 * FLOATS as f64, || {
        target.copy_from_slice(black_box(&source));
        black_box(&mut target)[0]
    });
}
