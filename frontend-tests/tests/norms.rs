//! Modules that normalise, embed and attend: PyTorch's values, names and running statistics; and the memory format that
//! they keep.

use keyway::MemoryFormat;
use keyway::nn::AttentionOptions;
use keyway::nn::{BagMode, BagOptions};
use keyway::nn::{
    BatchNorm1d, BatchNorm2d, Embedding, EmbeddingBag, GroupNorm, InstanceNorm2d, Module, MultiheadAttention,
};
use keyway::rng::{self};
use keyway::tensor::Ellipsis;
use keyway::{DType, Result, Tensor};

fn near(got: &Tensor, expected: &[f64]) {
    let got = got.to_vec_f64().unwrap();
    let close = got.len() == expected.len() && got.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-6);
    assert!(close, "{got:?} {expected:?}");
}

/// `(7 i mod 11) / 4 - 1` for element `i`.
fn images() -> Result<Tensor> {
    let values = (0..24).map(|i| f64::from(i * 7 % 11) / 4.0 - 1.0).collect();
    Tensor::from_vec(values, [2, 3, 2, 2])
}

fn fill(model: &dyn Module, name: &str, values: &[f64]) -> Result<()> {
    let target = &model.state_dict()[name];
    target.copy_(&Tensor::from_vec(values.to_vec(), target.shape())?)?;
    Ok(())
}

#[test]
fn batch_norm_moves_its_statistics_and_uses_them() -> Result<()> {
    let x = images()?;
    let norm = BatchNorm2d::new(3)?;
    norm.to_dtype(DType::F64)?;
    fill(&norm, "weight", &[0.5, 1.5, 2.0])?;
    fill(&norm, "bias", &[0.1, -0.2, 0.3])?;
    near(&norm.forward(&x)?.i((0, .., 0, 0))?, &[-0.7693119, 0.3836503, -1.5740705]);
    near(&norm.state_dict()["running_mean"], &[0.04375, 0.021875, 0.0]);
    near(&norm.state_dict()["running_var"], &[0.978125, 0.9597098, 0.9732143]);
    norm.forward(&x.mul(2)?)?;
    near(&norm.state_dict()["running_mean"], &[0.126875, 0.0634375, 0.0]);
    near(&norm.state_dict()["running_var"], &[1.1928125, 1.1025781, 1.16875]);
    assert_eq!(norm.state_dict()["num_batches_tracked"].item::<i64>()?, 2);
    norm.eval();
    near(&norm.forward(&x)?.i((1, .., 1, 1))?, &[0.2708191, -1.3620071, 1.6874859]);
    assert_eq!(norm.state_dict()["num_batches_tracked"].item::<i64>()?, 2);

    let norm = BatchNorm2d::new(3)?.momentum(None);
    norm.to_dtype(DType::F64)?;
    norm.forward(&x)?;
    norm.forward(&x.mul(2)?)?;
    near(&norm.state_dict()["running_mean"], &[0.65625, 0.328125, 0.0]);
    near(&norm.state_dict()["running_var"], &[1.953125, 1.4927455, 1.8303571]);
    Ok(())
}

#[test]
fn instance_norm_averages_its_statistics_over_the_batch() -> Result<()> {
    let x = images()?;
    let norm = InstanceNorm2d::new(3).with_running_stats()?;
    norm.to_dtype(DType::F64)?;
    near(&norm.forward(&x)?.i((0, .., 0, 0))?, &[-1.3130571, 0.1999974, -0.7228914]);
    near(&norm.state_dict()["running_mean"], &[0.04375, 0.021875, 0.0]);
    near(&norm.state_dict()["running_var"], &[0.9864583, 0.9664063, 0.9807292]);
    norm.eval();
    near(&norm.forward(&x)?.i((1, .., 1, 1))?, &[0.4593686, -0.7851721, 0.7573289]);
    let alone = norm.forward(&x.i(0)?)?;
    assert_eq!(alone.shape(), [3, 2, 2]);
    Ok(())
}

#[test]
fn the_parts_have_pytorchs_names() -> Result<()> {
    let names = |model: &dyn Module| model.state_dict().keys().cloned().collect::<Vec<_>>();
    let norm = BatchNorm1d::new(3)?;
    assert_eq!(names(&norm), ["bias", "num_batches_tracked", "running_mean", "running_var", "weight"]);
    assert!(names(&BatchNorm1d::new(3)?.without_affine().without_running_stats()).is_empty());
    let attention = MultiheadAttention::new(8, 2)?;
    assert_eq!(names(&attention), ["in_proj_bias", "in_proj_weight", "out_proj.bias", "out_proj.weight"]);
    let wrong = norm.forward(&Tensor::from_vec(vec![0.0f32; 8], [2, 4])?).unwrap_err().to_string();
    assert!(wrong.contains("of 3 channels, [batch, 3, ..], got shape [2, 4]"), "{wrong}");
    assert!(GroupNorm::new(3, 4).unwrap_err().to_string().contains("a divisor of the number of channels"));
    Ok(())
}

#[test]
fn normalisations_of_channels_keep_the_memory_format() -> Result<()> {
    let plain = images()?;
    let last = plain.to(MemoryFormat::ChannelsLast)?;
    let (weight, bias) = (Tensor::new([0.5f64, 1.5, 2.0])?, Tensor::new([0.1f64, -0.2, 0.3])?);
    let (w, b) = (Some(&weight), Some(&bias));
    type Norm<'a> = &'a dyn Fn(&Tensor) -> Result<Tensor>;
    let norms: [Norm<'_>; 4] = [
        &|x| x.batch_norm(None, w, b, true, 0.1, 1e-5),
        &|x| x.batch_norm(Some((&bias, &weight)), None, None, false, 0.1, 1e-5),
        &|x| x.instance_norm(w, b),
        &|x| x.group_norm(3, w, b),
    ];
    for (k, norm) in norms.iter().enumerate() {
        let made = norm(&last)?;
        assert_eq!(made.strides(), last.strides(), "norm {k}");
        near(&made, &norm(&plain)?.to_vec_f64()?);
    }
    Ok(())
}

#[test]
fn attention_of_several_heads() -> Result<()> {
    let attention = MultiheadAttention::new(4, 2)?;
    attention.to_dtype(DType::F64)?;
    for (name, tensor) in attention.state_dict() {
        let values: Vec<f64> = (0..tensor.elem_count()).map(|i| (i * 5 % 13) as f64 / 10.0 - 0.6).collect();
        fill(&attention, &name, &values)?;
    }
    let z = Tensor::from_vec((0..24).map(|i| f64::from(i * 3 % 7) / 4.0 - 0.7).collect(), [2, 3, 4])?;
    let all = attention.forward(&z)?;
    near(&all.i((0, 0))?, &[0.0815048, -0.3150513, 1.045238, -0.7307795]);
    near(&all.i((1, 2))?, &[-0.0434261, -0.2792759, 0.9245798, -0.6366303]);
    let causal = AttentionOptions { is_causal: true, ..Default::default() };
    near(
        &attention.forward_qkv(&z, &z, &z, causal)?.i((1, 1))?,
        &[0.0076915, -0.2958147, 1.006927, -0.7235829],
    );
    Ok(())
}

#[test]
fn attention_that_looks_at_nothing_has_neither_value_nor_gradient() -> Result<()> {
    let x = Tensor::from_vec((0..6).map(f64::from).collect(), [2, 3])?.requires_grad_(true)?;
    let mask = Tensor::from_vec(vec![true, false, false, false], [2, 2])?;
    let options = AttentionOptions { attn_mask: Some(&mask), ..Default::default() };
    let y = x.scaled_dot_product_attention_with(&x, &x, options)?;
    near(&y, &[0.0, 1.0, 2.0, 0.0, 0.0, 0.0]);
    y.sum_all()?.backward()?;
    near(&x.grad().unwrap(), &[1.0, 1.0, 1.0, 0.0, 0.0, 0.0]);
    Ok(())
}

#[test]
fn dropped_weights_of_attention_keep_the_others_scaled() -> Result<()> {
    let zeros = Tensor::zeros([1, 4])?;
    let keys = Tensor::zeros([1000, 4])?;
    let ones = Tensor::ones([1000, 1])?;
    let options = AttentionOptions { dropout_p: 0.5, ..Default::default() };
    let draw = || zeros.scaled_dot_product_attention_with(&keys, &ones, options)?.item::<f32>();
    let kept = rng::with_generator(&rng::Generator::new(3), draw)?;
    assert!((kept - 1.0).abs() < 0.2 && kept != 1.0, "{kept}");
    Ok(())
}

#[test]
fn embeddings_leave_their_padding_alone() -> Result<()> {
    let words = Embedding::new(5, 2)?.padding_idx(-1)?;
    let at = Tensor::from_vec(vec![4i64, 0, 0, 2], [2, 2])?;
    let y = words.forward(&at)?;
    near(&y.i((0, 0))?, &[0.0, 0.0]);
    y.sum_all()?.backward()?;
    near(&words.parameters()[0].grad().unwrap().i((Ellipsis, 0))?, &[2.0, 0.0, 1.0, 0.0, 0.0]);

    let bags = EmbeddingBag::new(5, 2)?.mode(BagMode::Sum).padding_idx(4)?;
    bags.forward(&at)?.sum_all()?.backward()?;
    near(&bags.parameters()[0].grad().unwrap().i((Ellipsis, 1))?, &[2.0, 0.0, 1.0, 0.0, 0.0]);
    Ok(())
}

#[test]
fn indices_behind_the_last_bag_count_nothing() -> Result<()> {
    let weight = Tensor::from_vec((0..5).map(f64::from).collect(), [5, 1])?;
    let (at, ends) = (Tensor::new([1i64, 2, 3, 4, 0, 1, 2])?, Tensor::new([0i64, 2, 5])?);
    for (mode, expected) in
        [(BagMode::Sum, [3.0, 7.0]), (BagMode::Max, [2.0, 4.0]), (BagMode::Mean, [1.5, 7.0 / 3.0])]
    {
        let options =
            BagOptions { offsets: Some(&ends), mode, include_last_offset: true, ..Default::default() };
        near(&weight.embedding_bag_with(&at, options)?, &expected);
    }
    Ok(())
}
