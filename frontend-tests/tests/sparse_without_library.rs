//! Without a backend for `sparse_coo` or `sparse_csr`, the error of a call that needs one names the backends that serve it, in
//! the forward pass; everything else works.

mod rehearsal_support;

use keyway::Tensor;
use keyway::nn::BagOptions;
use keyway::optim::{SparseAdam, SparseAdamOptions};
use rehearsal_support::{load, message};

#[test]
fn what_is_missing_is_named() {
    let _one = load(&[]);
    let at = Tensor::from_vec(vec![0i64, 1], [1, 2]).unwrap();
    let values = Tensor::new([1.0f32, 2.0]).unwrap();
    let w = Tensor::from_vec(vec![1.0f32, 2.0, 3.0, 4.0], [2, 2]).unwrap().requires_grad_(true).unwrap();
    let bag = BagOptions { sparse: true, ..Default::default() };
    let csr = "`sparse_csr` is served by `keyway-sparse`";
    for text in [
        message(Tensor::sparse_csr(&values.to_dtype(keyway::DType::I64).unwrap(), &values, &values, [1, 3])),
        message(w.to_sparse_csr()),
    ] {
        assert!(text.contains(csr) && text.contains("keyway backend install"), "{text}");
    }
    for text in [
        message(Tensor::sparse_coo(&at, &values, [3])),
        message(values.to_sparse_with(1)),
        message(w.embedding_sparse(&at)),
        message(w.embedding_bag_with(&at, bag)),
        message(SparseAdam::new(vec![w.clone()], SparseAdamOptions::default())),
    ] {
        assert!(text.contains("`sparse_coo` is served by `keyway-sparse`"), "{text}");
        assert!(text.contains("keyway backend install"), "{text}");
    }
    w.embedding_bag(&at).unwrap().sum_all().unwrap().backward().unwrap();
    assert_eq!(w.grad().unwrap().to_vec::<f32>().unwrap(), [0.5; 4]);
}
