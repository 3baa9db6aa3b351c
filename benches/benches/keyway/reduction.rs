//! Reductions, softmax and layer_norm over a matrix of 4096 by 4096.

use criterion::Criterion;
use keyway::autograd::{BackwardOptions, grad};
use keyway::{DType, Device, Tensor};
use keyway_benches::{case, wanted};

const D: usize = 4096;

/// The cases.
pub fn cases(c: &mut Criterion) {
    if !wanted("red", "") {
        return;
    }
    let rand = |sizes: &[usize]| Tensor::rand(sizes, DType::F32, Device::CPU).expect("memory");
    let bytes = (D * D * 4) as f64;
    let (x, w, b) = (rand(&[D, D]), rand(&[D]), rand(&[D]));
    case(c, "red.sum_all", "byte", bytes, || x.sum().expect("sum"));
    case(c, "red.sum_last", "byte", bytes, || x.sum_dims(&[-1], false).expect("sum"));
    case(c, "red.sum_first", "byte", bytes, || x.sum_dims(&[0], false).expect("sum"));
    case(c, "red.max_last", "byte", bytes, || x.amax_dims(&[-1], false).expect("amax"));
    case(c, "red.argmax_last", "byte", bytes, || x.argmax(Some(-1), false).expect("argmax"));
    case(c, "red.var_last", "byte", bytes, || x.var_dims(&[-1], 1.0, false).expect("var"));
    case(c, "red.softmax_last", "byte", 2.0 * bytes, || x.softmax(-1).expect("softmax"));
    case(c, "red.softmax_first", "byte", 2.0 * bytes, || x.softmax(0).expect("softmax"));
    case(c, "red.layer_norm", "byte", 2.0 * bytes, || {
        x.layer_norm(&[D], Some(&w), Some(&b), 1e-5).expect("layer_norm")
    });
    let leaf = |t: &Tensor| t.copied().and_then(|t| t.set_requires_grad(true)).expect("a float leaf");
    let (xg, wg, bg, start) = (leaf(&x), leaf(&w), leaf(&b), rand(&[D, D]));
    let options = || BackwardOptions { gradients: Some(vec![start.clone()]), ..BackwardOptions::default() };
    case(c, "red.layer_norm_fwdbwd", "byte", 5.0 * bytes, || {
        let y = xg.layer_norm(&[D], Some(&wg), Some(&bg), 1e-5).expect("layer_norm");
        grad(&[y], &[xg.clone(), wg.clone(), bg.clone()], options()).expect("a graph")
    });
    case(c, "red.softmax_fwdbwd", "byte", 5.0 * bytes, || {
        grad(&[xg.softmax(-1).expect("softmax")], &[xg.clone()], options()).expect("a graph")
    });
}
