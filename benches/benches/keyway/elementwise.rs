//! Elementwise ops and copies: memory-bound beyond a few thousand elements.

use criterion::Criterion;
use keyway::Tensor;
use keyway::nn::Approximate;
use keyway_benches::{case, wanted};

fn rand(n: usize) -> Tensor {
    Tensor::rand([n]).expect("memory")
}

/// The cases.
pub fn cases(c: &mut Criterion) {
    for (label, n) in [("1e4", 10_000usize), ("1e6", 1_000_000), ("1e8", 100_000_000)] {
        if !wanted("ew", label) {
            continue;
        }
        let bytes = |per_element: f64| per_element * n as f64;
        let (a, b, d, mut o) = (rand(n), rand(n), rand(n), rand(n));
        case(c, &format!("ew.copy_{label}"), "byte", bytes(8.0), || o.copy_(&a).expect("copy"));
        case(c, &format!("ew.add_{label}"), "byte", bytes(12.0), || a.add(&b).expect("add"));
        case(c, &format!("ew.add_out_{label}"), "byte", bytes(12.0), || a.add_out(&b, &mut o).expect("add"));
        case(c, &format!("ew.muladd_{label}"), "byte", bytes(16.0), || {
            a.mul(&b).and_then(|ab| ab.add(&d)).expect("mul and add")
        });
        case(c, &format!("ew.addcmul_{label}"), "byte", bytes(16.0), || d.addcmul(&a, &b).expect("addcmul"));
        case(c, &format!("ew.exp_{label}"), "byte", bytes(8.0), || a.exp().expect("exp"));
        case(c, &format!("ew.exp_out_{label}"), "byte", bytes(8.0), || a.exp_out(&mut o).expect("exp"));
        case(c, &format!("ew.gelu_{label}"), "byte", bytes(8.0), || a.gelu().expect("gelu"));
        case(c, &format!("ew.gelu_tanh_{label}"), "byte", bytes(8.0), || {
            a.gelu_with(Approximate::Tanh).expect("gelu")
        });
        case(c, &format!("ew.relu_{label}"), "byte", bytes(8.0), || a.relu().expect("relu"));
        let side = (n as f64).sqrt().round() as i64;
        let square = |t: &Tensor| t.view([side, side]).expect("a square");
        let (at, b2, mut o2) = (square(&a).t().expect("a matrix"), square(&b), square(&o));
        let row = at.select(0, 0).expect("a row");
        let column = at.narrow(1, 0, 1).expect("a column");
        case(c, &format!("ew.add_t_{label}"), "byte", bytes(12.0), || at.add(&b2).expect("add"));
        case(c, &format!("ew.add_t_out_{label}"), "byte", bytes(12.0), || {
            at.add_out(&b2, &mut o2).expect("add")
        });
        case(c, &format!("ew.transpose_copy_{label}"), "byte", bytes(8.0), || o2.copy_(&at).expect("copy"));
        case(c, &format!("ew.bcast_row_{label}"), "byte", bytes(8.0), || b2.add(&row).expect("add"));
        case(c, &format!("ew.bcast_col_{label}"), "byte", bytes(8.0), || b2.add(&column).expect("add"));
    }
}
