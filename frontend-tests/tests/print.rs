//! Printing against PyTorch's own output, but for the names of dtypes.

use keyway::{DType, Result, Tensor};

fn shows(values: &[f32], text: &str) {
    assert_eq!(Tensor::new(values).unwrap().to_string(), text);
}

#[test]
fn floats_by_their_range() {
    shows(&[1.0, 2.0, 100.0], "tensor([  1.,   2., 100.])");
    shows(&[-0.5, 0.25], "tensor([-0.5000,  0.2500])");
    shows(&[1e-5, 1.0, 1e5], "tensor([1.0000e-05, 1.0000e+00, 1.0000e+05])");
    shows(&[1e8, 2e9], "tensor([1.0000e+08, 2.0000e+09])");
    shows(&[1e-6, 2e-6], "tensor([1.0000e-06, 2.0000e-06])");
    shows(&[0.001, 1000.5], "tensor([1.0000e-03, 1.0005e+03])");
    shows(&[-1e-10, 1.0], "tensor([-1.0000e-10,  1.0000e+00])");
    shows(&[0.0, 0.0, 0.0], "tensor([0., 0., 0.])");
    shows(&[f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1.5], "tensor([   nan,    inf,   -inf, 1.5000])");
    shows(&[f32::NAN, f32::INFINITY, 1.0], "tensor([nan, inf, 1.])");
    shows(&[], "tensor([])");
}

#[test]
fn other_dtypes_and_ranks() -> Result<()> {
    assert_eq!(Tensor::new(std::f32::consts::PI)?.to_string(), "tensor(3.1416)");
    assert_eq!(Tensor::new(7i64)?.to_string(), "tensor(7)");
    assert_eq!(Tensor::new(1e-7f32)?.to_string(), "tensor(1.0000e-07)");
    let t = Tensor::from_vec(vec![1i32, -20, 300, 4], [2, 2])?;
    assert_eq!(t.to_string(), "tensor([[  1, -20],\n        [300,   4]], dtype=i32)");
    assert_eq!(Tensor::new([true, false])?.to_string(), "tensor([ True, False])");
    assert_eq!(Tensor::new([u64::MAX])?.to_string(), "tensor([18446744073709551615], dtype=u64)");
    let half = Tensor::new([1.5f32, 2.0])?.to_dtype(DType::F16)?;
    assert_eq!(half.to_string(), "tensor([1.5000, 2.0000], dtype=f16)");
    assert_eq!(Tensor::from_vec(Vec::<f32>::new(), [2, 0, 3])?.to_string(), "tensor([], size=(2, 0, 3))");
    let cube = Tensor::from_vec((0..12).map(|i| i as f32).collect(), [2, 2, 3])?;
    let text = "tensor([[[ 0.,  1.,  2.],\n         [ 3.,  4.,  5.]],\n\n        [[ 6.,  7.,  8.],\n         [ 9., 10., 11.]]])";
    assert_eq!(cube.to_string(), text);
    Ok(())
}

#[test]
fn the_graph_is_named() -> Result<()> {
    let x = Tensor::new([1.5f32])?.requires_grad_(true)?;
    assert_eq!(x.to_string(), "tensor([1.5000], requires_grad=true)");
    assert_eq!(x.mul(2)?.to_string(), "tensor([3.], grad_fn=<mul>)");
    Ok(())
}

#[test]
fn long_rows_wrap_and_large_tensors_are_cut() -> Result<()> {
    let row = Tensor::from_vec((0..14).map(|i| f64::from(i) / 7.0).collect(), [14])?.requires_grad_(true)?;
    let text = "tensor([0.0000, 0.1429, 0.2857, 0.4286, 0.5714, 0.7143, 0.8571, 1.0000, 1.1429,\n        \
                1.2857, 1.4286, 1.5714, 1.7143, 1.8571], dtype=f64, requires_grad=true)";
    assert_eq!(row.to_string(), text);
    let many = Tensor::from_vec((0..2000i64).collect(), [2000])?;
    assert_eq!(many.to_string(), "tensor([   0,    1,    2,  ..., 1997, 1998, 1999])");
    let square = Tensor::from_vec((0..40000).map(|i| i as f32).collect(), [200, 200])?.to_string();
    let start =
        "tensor([[0.0000e+00, 1.0000e+00, 2.0000e+00,  ..., 1.9700e+02, 1.9800e+02,\n         1.9900e+02],\n";
    assert!(square.starts_with(start), "{square}");
    assert!(square.contains("],\n        ...,\n        [3.9400e+04, "), "{square}");
    Ok(())
}

#[test]
fn many_dimensions_are_cut_short_and_only_what_is_shown_is_read() -> Result<()> {
    let one = Tensor::new(1.0f32)?;
    for sizes in [vec![7usize; 10], vec![2; 30], vec![1, 7, 1, 7, 7, 7, 7, 7, 7, 7], vec![1 << 25, 1 << 25]] {
        let began = std::time::Instant::now();
        let text = one.expand(&sizes)?.to_string();
        assert!(began.elapsed().as_secs() < 10, "{sizes:?} takes {:?}", began.elapsed());
        let shown = text.matches("1.").count();
        assert!((1..=10_000).contains(&shown) && text.contains("..."), "{sizes:?} shows {shown} elements");
        let depth = sizes.len();
        assert!(text.starts_with(&format!("tensor({}1.", "[".repeat(depth))), "{sizes:?}");
        assert_eq!(text.matches('[').count(), text.matches(']').count(), "{sizes:?}");
    }
    // As PyTorch does it, as long as that is not too much.
    let text = one.expand([20, 30, 40])?.to_string();
    assert_eq!((text.matches("1.").count(), text.matches("...").count()), (216, 43));
    let outer = Tensor::from_vec((0..16_384).map(|i| i as f32).collect(), [2; 14])?.to_string();
    assert!(outer.starts_with(&format!("tensor({}0.0000e+00, ", "[".repeat(14))), "{outer}");
    assert!(outer.contains("8.1910e+03") && !outer.contains("8.1920e+03"), "{outer}");
    Ok(())
}
