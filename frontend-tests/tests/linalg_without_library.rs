//! Without the library of the factorisations, or that of Fourier transforms, the error of a call that needs it names the library and how
//! to install it.

mod rehearsal_support;

use keyway::nn::init;
use keyway::{Tensor, fft};
use rehearsal_support::{load, message};

#[test]
fn what_is_missing_is_named() {
    let _one = load(&[]);
    let a = Tensor::ones((2, 2)).unwrap();
    for text in [
        message(a.cholesky()),
        message(a.solve(&a)),
        message(a.det()),
        message(a.pinv()),
        message(init::orthogonal((2, 3), 1.0)),
    ] {
        assert!(text.contains("`keyway-linalg`") && text.contains("keyway backend install"), "{text}");
    }
    for text in [message(fft::fft(&a)), message(fft::ifft2(&a)), message(fft::irfft(&a))] {
        assert!(text.contains("`keyway-fft`") && text.contains("keyway backend install"), "{text}");
    }
    assert_eq!(a.matrix_norm().unwrap().item::<f32>().unwrap(), 2.0);
}
