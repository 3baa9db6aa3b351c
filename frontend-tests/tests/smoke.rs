//! The spine, end to end, through the real loader.
use keyway::{Tensor, runtime};

#[test]
fn add_through_a_loaded_library_with_a_gradient() {
    runtime::start().unwrap();
    let b = runtime::backends().unwrap();
    assert!(b.rejected.is_empty(), "{:?}", b.rejected);
    let x = Tensor::from_vec(vec![1.0f32, 2.0, 3.0], [3]).unwrap().requires_grad_(true).unwrap();
    let y = x.mul(&x).unwrap().add(1.0).unwrap();
    y.backward_with(keyway::autograd::BackwardOptions {
        gradients: Some(vec![Tensor::new([1.0f32, 1.0, 1.0]).unwrap()]),
        ..Default::default()
    })
    .unwrap();
    assert_eq!(x.grad().unwrap().to_vec::<f32>().unwrap(), [2.0, 4.0, 6.0]);
}

#[test]
fn calls_by_name_take_the_defaults_of_the_schema() {
    let x = Tensor::new([-1.0f32, 2.0]).unwrap();
    let by_name = |name: &str, args: &[keyway::Arg<'_>]| {
        keyway::ops::by_name::call(name, args).unwrap()[0].to_vec::<f32>().unwrap()
    };
    assert_eq!(by_name("gelu", &[(&x).into()]), x.gelu().unwrap().to_vec::<f32>().unwrap());
    let zeros = x.zeros_like().unwrap();
    assert_eq!(by_name("mse_loss", &[(&x).into(), (&zeros).into()]), [2.5]);
}
