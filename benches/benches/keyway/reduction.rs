//! Reductions, softmax and layer_norm over a matrix of 4096 by 4096.

use criterion::Criterion;
use keyway::Tensor;
use keyway::autograd::{BackwardOptions, grad};
use keyway_benches::{case, wanted};

const D: usize = 4096;

/// The cases.
pub fn cases(c: &mut Criterion) {
    if !wanted("red", "") {
        return;
    }
    let rand = |sizes: &[usize]| Tensor::rand(sizes).expect("memory");
    let bytes = (D * D * 4) as f64;
    let (x, w, b) = (rand(&[D, D]), rand(&[D]), rand(&[D]));
    case(c, "red.sum_all", "byte", bytes, || x.sum_all().expect("sum"));
    case(c, "red.sum_last", "byte", bytes, || x.sum(-1).expect("sum"));
    case(c, "red.sum_first", "byte", bytes, || x.sum(0).expect("sum"));
    case(c, "red.max_last", "byte", bytes, || x.amax(-1).expect("amax"));
    case(c, "red.argmax_last", "byte", bytes, || x.argmax(-1).expect("argmax"));
    case(c, "red.var_last", "byte", bytes, || x.var(-1).expect("var"));
    case(c, "red.softmax_last", "byte", 2.0 * bytes, || x.softmax(-1).expect("softmax"));
    case(c, "red.softmax_first", "byte", 2.0 * bytes, || x.softmax(0).expect("softmax"));
    case(c, "red.layer_norm", "byte", 2.0 * bytes, || {
        x.layer_norm([D as i64], Some(&w), Some(&b)).expect("layer_norm")
    });
    let leaf = |t: &Tensor| t.copy().and_then(|t| t.requires_grad_(true)).expect("a float leaf");
    let (xg, wg, bg, start) = (leaf(&x), leaf(&w), leaf(&b), rand(&[D, D]));
    let options = || BackwardOptions { gradients: Some(vec![start.clone()]), ..BackwardOptions::default() };
    case(c, "red.layer_norm_fwdbwd", "byte", 5.0 * bytes, || {
        let y = xg.layer_norm([D as i64], Some(&wg), Some(&bg)).expect("layer_norm");
        grad(&[y], &[xg.clone(), wg.clone(), bg.clone()], options()).expect("a graph")
    });
    case(c, "red.softmax_fwdbwd", "byte", 5.0 * bytes, || {
        grad(&[xg.softmax(-1).expect("softmax")], std::slice::from_ref(&xg), options()).expect("a graph")
    });
}
