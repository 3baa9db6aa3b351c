//! Matrix products.

use criterion::Criterion;
use keyway::{DType, Tensor};
use keyway_benches::{case, wanted};

/// The cases.
pub fn cases(c: &mut Criterion) {
    if !wanted("mm", "") {
        return;
    }
    let rand = |sizes: &[usize], dtype| Tensor::rand(sizes).and_then(|t| t.to_dtype(dtype)).expect("memory");
    let flop = |n: usize| 2.0 * (n as f64).powi(3);
    for n in [64usize, 256, 1024, 2048] {
        let (a, b) = (rand(&[n, n], DType::F32), rand(&[n, n], DType::F32));
        case(c, &format!("mm.f32_{n}"), "flop", flop(n), || a.mm(&b).expect("mm"));
    }
    let (a, b) = (rand(&[1024, 1024], DType::F32), rand(&[1024, 1024], DType::F32));
    let (at, bt) = (a.t().expect("a matrix"), b.t().expect("a matrix"));
    case(c, "mm.f32_nt_1024", "flop", flop(1024), || a.mm(&bt).expect("mm"));
    case(c, "mm.f32_tn_1024", "flop", flop(1024), || at.mm(&b).expect("mm"));
    for dtype in [DType::F64, DType::F16, DType::BF16] {
        let (a, b) = (rand(&[1024, 1024], dtype), rand(&[1024, 1024], dtype));
        case(c, &format!("mm.{dtype}_1024"), "flop", flop(1024), || a.mm(&b).expect("mm"));
    }
    let (a, b) = (rand(&[32, 128, 128], DType::F32), rand(&[32, 128, 128], DType::F32));
    case(c, "mm.f32_bmm_32x128", "flop", 32.0 * flop(128), || a.bmm(&b).expect("bmm"));
    let (a, v) = (rand(&[4096, 4096], DType::F32), rand(&[4096], DType::F32));
    case(c, "mm.f32_gemv_4096", "byte", 4.0 * 4096.0 * 4096.0, || a.mv(&v).expect("mv"));
}
