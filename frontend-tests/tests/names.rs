//! The ways to write shapes, options, arrays and operators, and the graph to look at.

use keyway::autograd::{SavedSource, draw, set_grad_enabled};
use keyway::prelude::*;
use proptest::prelude::{Strategy, any, proptest};

fn refused<T>(made: keyway::Result<T>, message: &str) {
    let text = made.map(drop).expect_err(message).to_string();
    assert!(text.contains(message), "{text}");
}

#[test]
fn shapes() -> keyway::Result<()> {
    let n = 2usize;
    let dims: Vec<usize> = vec![2, 3];
    let same = [
        Tensor::zeros((2, 3))?,
        Tensor::zeros((n, 3))?,
        Tensor::zeros((n, 3i64))?,
        Tensor::zeros([2, 3])?,
        Tensor::zeros([2u32, 3])?,
        Tensor::zeros(&dims)?,
        Tensor::zeros(dims.as_slice())?,
        Tensor::zeros(vec![2i64, 3])?,
    ];
    assert!(same.iter().all(|t| t.shape() == [2, 3] && t.dims2().unwrap() == (2, 3)));
    let x = Tensor::zeros((1, 2, 3, 4, 5, 6, 7, 8))?;
    assert_eq!((x.rank(), x.elem_count(), x.dim(-1)?), (8, 40320, 8));
    assert_eq!(x.flatten_from(2)?.dims3()?, (1, 2, 20160));
    assert_eq!(x.flatten_to(-3)?.dims3()?, (720, 7, 8));
    assert_eq!(x.flatten_all()?.dims1()?, 40320);
    refused(x.dims4(), "a tensor of 4 dimensions");
    refused(x.dim(8), "out of range");
    for wrong in [(2, -3), (-1, 0)] {
        refused(Tensor::zeros(wrong), "sizes of 0 or more");
        refused(Tensor::from_vec(vec![0.0f32; 6], wrong), "sizes of 0 or more");
        refused(x.new_zeros(wrong), &format!("[{}, {}]", wrong.0, wrong.1));
    }
    refused(Tensor::zeros((usize::MAX, 2)), "");
    refused(Tensor::from_slice(&[1, 2, 3], (2, 2)), "4");
    let y = Tensor::arange(0, 24)?.reshape((2, -1, 4))?;
    assert_eq!(y.permute((2, 0, 1))?.shape(), [4, 2, 3]);
    assert_eq!(y.sum((0, -1))?.shape(), y.sum([0i64, 2])?.shape());
    assert_eq!(y.sum(..)?.item::<i64>()?, y.sum_all()?.item::<i64>()?);
    assert_eq!(y.sum_keepdim(..)?.shape(), [1, 1, 1]);
    refused(y.sum((0, -3)), "different dimensions");
    Ok(())
}

#[test]
fn options_in_any_order() -> keyway::Result<()> {
    let cpu = Device::CPU;
    let last = MemoryFormat::ChannelsLast;
    let images = [
        Tensor::ones_with((2, 3, 4, 4), (DType::F16, "cpu", last))?,
        Tensor::ones_with((2, 3, 4, 4), (last, &cpu, DType::F16))?,
        Tensor::ones_with((2, 3, 4, 4), ((last, DType::F16), cpu))?,
        Tensor::ones((2, 3, 4, 4))?.to((DType::F16, last))?,
        Tensor::ones((2, 3, 4, 4))?.to(last)?.to(DType::F16)?,
        Tensor::ones_with(
            (2, 3, 4, 4),
            TensorOptions { dtype: Some(DType::F16), device: None, format: Some(last) },
        )?,
    ];
    for image in &images {
        assert_eq!((image.dtype(), image.strides()), (DType::F16, &[48, 1, 12, 3][..]));
        assert_eq!(image.sum_all()?.to_dtype(DType::F32)?.item::<f32>()?, 96.0);
    }
    assert_eq!(images[0].zeros_like_with(DType::F64)?.strides(), images[0].strides());
    refused(Tensor::zeros_with(2, (DType::F16, DType::F32)), "one dtype");
    refused(Tensor::zeros_with(2, ("cpu", cpu)), "one device");
    refused(Tensor::zeros_with(2, MemoryFormat::Preserve), "no tensor whose format could be preserved");
    refused(Tensor::zeros_with(2, last), "3, 4 or 5 dimensions");
    refused(Tensor::zeros_with(2, "gpu:x"), "a name such as `cpu` or `cuda:1`");
    refused(images[0].to("nowhere:1"), "nowhere");
    refused(Tensor::empty_strided_with((2, 3), (1, 2), MemoryFormat::Contiguous), "no memory format");
    refused(Tensor::empty_strided((2, 3), 1), "2 strides");
    refused(Tensor::full_with(2, 300, DType::I8), "");
    Ok(())
}

#[test]
fn arrays_of_any_depth() -> keyway::Result<()> {
    let cube = [[[1.0f32, 2.0], [3.0, 4.0]], [[5.0, 6.0], [7.0, 8.0]], [[9.0, 10.0], [11.0, 12.0]]];
    let x = Tensor::new(cube)?;
    assert_eq!((x.dims3()?, x.dtype()), ((3, 2, 2), DType::F32));
    assert_eq!(x.to_vec::<f32>()?, (1..=12).map(|i| i as f32).collect::<Vec<_>>());
    assert_eq!(Tensor::new(&cube[1..])?.dims3()?, (2, 2, 2));
    assert_eq!(Tensor::new(vec![vec![true], vec![false]])?.dtype(), DType::BOOL);
    assert_eq!(Tensor::new(f16::ONE)?.rank(), 0);
    assert_eq!(Tensor::new::<[i32; 0]>([])?.shape(), [0]);
    assert_eq!(Tensor::new(Vec::<[f64; 3]>::new())?.shape(), [0]);
    refused(
        Tensor::new(vec![vec![1, 2], vec![3]]),
        "parts of one length, here 2 as that of the first, but got one of length 1",
    );
    refused(Tensor::new(vec![vec![vec![1]], vec![]]), "parts of one length, here 1");
    assert_eq!(Tensor::new_with([1, 2], DType::F64)?.to_vec::<f64>()?, [1.0, 2.0]);
    Ok(())
}

#[test]
fn operators() -> keyway::Result<()> {
    let (a, b) = (Tensor::new([6.0f32, 8.0])?, Tensor::new([4.0f32, 3.0])?);
    let values = |made: keyway::Result<Tensor>| made.unwrap().to_vec::<f32>().unwrap();
    assert_eq!(values(&a + &b), [10.0, 11.0]);
    assert_eq!(values(a.clone() - &b), [2.0, 5.0]);
    assert_eq!(values(&a * b.clone()), [24.0, 24.0]);
    assert_eq!(values(a.clone() / b.clone()), [1.5, 8.0 / 3.0]);
    assert_eq!(values(&a % &b), [2.0, 2.0]);
    assert_eq!(values(&a + (&a * &b)), [30.0, 32.0]);
    assert_eq!(values(a.clone() - a.mul(2.0)), [-6.0, -8.0]);
    assert_eq!(values(1.0 - &a), [-5.0, -7.0]);
    assert_eq!(values(12 / &a), [2.0, 1.5]);
    assert_eq!(values(2 * (&a + 1.0)?), [14.0, 18.0]);
    let negative = (-&a)?;
    assert_eq!(values(-negative), [6.0, 8.0]);
    refused(&a + Tensor::new([1.0f32; 3]), "broadcast");
    refused(&a + Tensor::zeros(-1), "sizes of 0 or more");
    Ok(())
}

#[test]
fn the_graph_can_be_walked() -> keyway::Result<()> {
    let w = Tensor::new([[1.0f64, 2.0], [3.0, 4.0]])?.requires_grad_(true)?;
    assert!(w.grad_fn().is_none() && w.is_leaf());
    let y = w.mm(&w)?.relu()?;
    let relu = y.grad_fn().unwrap();
    let (mm, _) = relu.next_functions().remove(0).unwrap();
    assert_eq!((relu.name(), mm.name(), mm.output_shapes()), ("relu", "mm", vec![vec![2, 2]]));
    assert!(relu.number() > mm.number() && relu.variable().is_none());
    let leaves = mm.next_functions();
    assert_eq!(leaves.len(), 2);
    for (leaf, _) in leaves.into_iter().flatten() {
        assert!(leaf.variable().unwrap().ptr_eq(&w) && leaf.next_functions().is_empty());
    }
    let saved = mm.saved_tensors();
    assert_eq!(
        saved.iter().map(|s| s.source).collect::<Vec<_>>(),
        [SavedSource::Input(0), SavedSource::Input(1)]
    );
    assert!(saved.iter().all(|s| s.version == w.version() && !s.tensor.requires_grad()));
    {
        let _off = set_grad_enabled(false);
        w.add_(1.0)?;
    }
    assert_eq!(saved[0].version + 1, w.version());
    drop(saved);
    let other = w.mm(&w)?;
    let mm = other.grad_fn().unwrap();
    other.sum(..)?.backward()?;
    assert!(mm.saved_tensors().is_empty());
    Ok(())
}

#[test]
fn gradients_of_results_are_kept_where_asked() -> keyway::Result<()> {
    let x = Tensor::new([1.0f64, 2.0])?.requires_grad_(true)?;
    x.retain_grad()?;
    let y = x.mul(3)?;
    y.retain_grad()?;
    let z = y.mul(&y)?;
    z.sum(..)?.backward()?;
    assert_eq!(y.grad().unwrap().to_vec::<f64>()?, [6.0, 12.0]);
    assert_eq!(x.grad().unwrap().to_vec::<f64>()?, [18.0, 36.0]);
    assert!(z.grad().is_none());
    refused(x.detach().retain_grad(), "requires");
    // The hook does not keep the tensor alive.
    let node = y.grad_fn().unwrap();
    let storage = y.storage()?.clone();
    drop((y, z));
    assert_eq!(storage.strong_count(), 1, "{node:?}");
    Ok(())
}

#[test]
fn the_graph_can_be_drawn() -> keyway::Result<()> {
    let w = Tensor::ones((3, 2))?.requires_grad_(true)?;
    let x = Tensor::ones((4, 3))?.mm(&w)?;
    let loss = (x.relu()? + x.exp())?.sum(..)?;
    let text = draw::dot(&[&loss])?;
    for name in ["mm", "relu", "exp", "add", "sum", "leaf\\nf32 [3, 2]"] {
        assert_eq!(text.matches(&format!("label=\"{name}")).count(), 1, "{name}: {text}");
    }
    assert_eq!(text.matches("->").count(), 6);
    let picture = draw::svg(&[&loss])?;
    assert_eq!((picture.matches("<text").count(), picture.matches("marker-end").count()), (12, 6));
    let mut long = w.clone();
    for _ in 0..10_100 {
        long = long.neg()?;
    }
    refused(draw::svg(&[&long]), "at most 10000 nodes");
    Ok(())
}

proptest! {
    #[test]
    fn any_list_of_integers_is_a_shape_or_an_error(sizes in proptest::collection::vec(-2i64..5, 0..6)) {
        let made = Tensor::zeros(&sizes);
        if sizes.iter().all(|&s| s >= 0) {
            let shape: Vec<i64> = made.unwrap().shape().iter().map(|&s| s as i64).collect();
            assert_eq!(shape, sizes);
        } else {
            refused(made, "sizes of 0 or more");
        }
    }

    #[test]
    fn arrays_give_back_what_they_were(rows in (0usize..5, 1usize..5).prop_flat_map(|(r, c)| {
        proptest::collection::vec(proptest::collection::vec(any::<i32>(), c), r)
    })) {
        let x = Tensor::new(&rows).unwrap();
        assert_eq!(x.shape()[0], rows.len());
        assert_eq!(x.to_vec::<i32>().unwrap(), rows.concat());
    }
}

#[test]
fn detach_takes_the_history_of_the_tensor_itself() -> keyway::Result<()> {
    let w = Tensor::new([2.0f64, 3.0])?.requires_grad_(true)?;
    let y = w.square()?;
    let z = y.square()?;
    assert!(y.detach_()?.ptr_eq(&y));
    assert!(!y.requires_grad() && y.is_leaf() && y.grad_fn().is_none() && !y.mul(&y)?.requires_grad());
    // Earlier results keep their history.
    z.sum_all()?.backward()?;
    assert_eq!(w.grad().unwrap().to_vec::<f64>()?, [32.0, 108.0]);
    // The tensor may become a leaf of another graph.
    y.requires_grad_(true)?;
    y.sum_all()?.backward()?;
    assert_eq!(y.grad().unwrap().to_vec::<f64>()?, [1.0, 1.0]);
    refused(w.narrow(0, 0, 1)?.detach_(), "is a view");
    let changed = w.square()?;
    changed.mul_(2.0)?;
    refused(changed.detach_(), "use `detach()`");
    Tensor::ones(2)?.detach_()?;
    Ok(())
}

/// As PyTorch: once however often it is asked for, after hooks, and of the tensor as it is after a change in place.
#[test]
fn retained_gradients() -> keyway::Result<()> {
    let x = Tensor::new([1.0f64, 2.0])?.requires_grad_(true)?;
    let y = x.square()?;
    for _ in 0..3 {
        y.retain_grad()?;
    }
    let _tenfold = y.register_hook(|grad| grad.mul(10.0).map(Some))?;
    y.sum_all()?.backward()?;
    assert_eq!(y.grad().unwrap().to_vec::<f64>()?, [10.0, 10.0]);
    assert_eq!(x.grad().unwrap().to_vec::<f64>()?, [20.0, 40.0]);
    let y = x.square()?;
    y.retain_grad()?;
    y.mul_(3.0)?;
    y.sum_all()?.backward()?;
    assert_eq!(y.grad().unwrap().to_vec::<f64>()?, [1.0, 1.0]);
    refused(Tensor::ones(2)?.retain_grad(), "retain_grad: the tensor requires no grad");
    Ok(())
}

#[test]
fn lists_of_tensors_owned_or_borrowed() -> keyway::Result<()> {
    let (a, b) = (Tensor::new([1.0f32, 2.0])?, Tensor::new([3.0f32, 4.0])?);
    let owned = vec![a.clone(), b.clone()];
    let shared: Vec<std::sync::Arc<Tensor>> = owned.iter().cloned().map(Into::into).collect();
    for made in [
        Tensor::cat(&owned, 0)?,
        Tensor::cat(&owned[..], 0)?,
        Tensor::cat(&[&a, &b], 0)?,
        Tensor::cat(&[a.clone(), b.clone()], 0)?,
        Tensor::cat(&shared, 0)?,
        Tensor::hstack(&owned)?,
        Tensor::stack(&owned, 0)?.flatten_all()?,
        Tensor::vstack(&owned)?.flatten_all()?,
        Tensor::dstack(&owned)?.squeeze(0)?.t()?.flatten_all()?,
        Tensor::block_diag(&owned)?.masked_select(&Tensor::block_diag(&[&a, &b])?.ne(0)?)?,
    ] {
        assert_eq!(made.to_vec::<f32>()?, [1.0, 2.0, 3.0, 4.0]);
    }
    assert_eq!(Tensor::einsum("i,i->", &owned)?.item::<f32>()?, 11.0);
    assert_eq!(Tensor::meshgrid(&owned)?[1].to_vec2::<f32>()?, [[3.0, 4.0], [3.0, 4.0]]);
    refused(Tensor::cat::<Tensor>(&[], 0), "one tensor at least");
    let w = a.requires_grad_(true)?;
    let y = w.square()?.sum_all()?;
    assert!(draw::dot(std::slice::from_ref(&y))?.contains("square"));
    let grads = keyway::autograd::grad(&[&y], &[&w], Default::default())?;
    assert_eq!(grads[0].as_ref().unwrap().to_vec::<f32>()?, [2.0, 4.0]);
    Ok(())
}

#[test]
fn short_forms_leave_the_default_out() -> keyway::Result<()> {
    use keyway::nn::{Conv2d, MaxPoolOptions, Prelu, functional as F, init};
    let x = Tensor::arange(0.0, 64.0)?.reshape((1, 1, 8, 8))?;
    let same = |a: Tensor, b: Tensor| assert_eq!(a.to_vec_f64().unwrap(), b.to_vec_f64().unwrap());
    same(x.max_pool2d(2)?, x.max_pool2d(MaxPoolOptions::new(2))?);
    same(x.max_pool2d((4, 2))?, x.max_pool2d(MaxPoolOptions::new([4, 2]))?);
    assert_eq!(F::avg_pool2d(&x, 2)?.shape(), [1, 1, 4, 4]);
    assert_eq!(x.adaptive_avg_pool2d((1, 1))?.item::<f32>()?, 31.5);
    let (values, places) = x.max_pool2d_with_indices(2)?;
    assert_eq!(values.max_unpool2d(&places, 2)?.shape(), [1, 1, 8, 8]);
    assert_eq!(x.conv2d(&Tensor::ones((1, 1, 3, 3))?, None)?.shape(), [1, 1, 6, 6]);
    assert_eq!(Conv2d::new(1, 2, (3, 1))?.weight().shape(), [2, 1, 3, 1]);
    assert_eq!(Prelu::new()?.forward(&Tensor::new([-4.0f32])?)?.item::<f32>()?, -1.0);
    let m = Tensor::arange(0.0, 9.0)?.reshape((3, 3))?;
    same(m.tril()?, m.tril_with(0)?);
    same(m.copy()?.triu_()?, m.triu_with(0)?);
    same(m.addcmul(&m, &m)?, m.addcmul_with(&m, &m, 1)?);
    same(m.norm_all()?, m.norm_with(2.0, .., false)?);
    same(m.norm_keepdim(1)?, m.norm_with(2.0, 1, true)?);
    same(m.cross(&m.t()?)?, m.cross_with(&m.t()?, 1)?);
    same(m.as_strided((3, 1), (3, 1))?, m.as_strided_with((3, 1), (3, 1), 0)?);
    let at = Tensor::new([2i64, 0])?;
    same(m.index_put(&[Some(&at)], 7)?, m.index_put_with(&[Some(&at)], 7, false)?);
    same(at.one_hot(-1)?, at.one_hot(3)?);
    refused(at.one_hot(-2), "0 or more");
    same(m.repeat_interleave(2, 0)?, m.index_select(0, &Tensor::new([0i64, 0, 1, 1, 2, 2])?)?);
    same(m.take_along_dim(&at.reshape((1, 2))?, 1)?, m.gather(1, &at.reshape((1, 2))?.expand((3, 2))?)?);
    same(F::embedding(&at, &m)?, m.embedding(&at)?);
    same(m.layer_norm(3, None, None)?, m.layer_norm_with(3, None, None, 1e-5)?);
    same(
        m.reshape((1, 3, 3))?.local_response_norm(2)?,
        m.reshape((1, 3, 3))?.local_response_norm_with(2, 1e-4, 0.75, 1.0)?,
    );
    same(m.scaled_dot_product_attention(&m, &m)?, F::scaled_dot_product_attention(&m, &m, &m)?);
    assert_eq!(m.multinomial(2)?.shape(), [3, 2]);
    assert!(init::kaiming_uniform((4, 6))?.abs()?.max_all()?.item::<f32>()? <= 1.0);
    Ok(())
}
