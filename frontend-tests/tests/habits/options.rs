//! Optimisers, schedules and options that are set one after another.

use keyway::autograd::{self, BackwardOptions};
use keyway::nn::{AttentionOptions, BagMode, BagOptions, ConvOptions, GridOptions, GridPadding, Linear};
use keyway::optim::lr_scheduler::{
    OneCycleLr, OneCycleLrOptions, ReduceLrOnPlateau, ReduceLrOnPlateauOptions,
};
use keyway::optim::*;
use keyway::prelude::*;

fn w() -> Tensor {
    Tensor::new([1.0f32]).unwrap().requires_grad_(true).unwrap()
}

#[test]
fn a_learning_rate_stands_for_options() -> keyway::Result<()> {
    let model = Linear::new(3, 2)?;
    let rates = [
        Sgd::new(model.parameters(), 0.1)?.learning_rates(),
        optim::SGD::new(model.parameters(), 0.1)?.learning_rates(),
        Adam::new(model.parameters(), 0.1)?.learning_rates(),
        AdamW::new(model.parameters(), 0.1)?.learning_rates(),
        AdamW::new_lr(model.parameters(), 0.1)?.learning_rates(),
        Adagrad::new(model.parameters(), 0.1)?.learning_rates(),
        RmsProp::new(model.parameters(), 0.1)?.learning_rates(),
        optim::RMSprop::new(model.parameters(), 0.1)?.learning_rates(),
    ];
    assert!(rates.iter().all(|rates| rates == &[0.1]));
    assert_eq!(Sgd::new(vec![w()], 0.1)?.groups()[0].options, SgdOptions { lr: 0.1, ..Default::default() });
    assert!(Sgd::new(vec![w()], -0.1).is_err());
    Ok(())
}

#[test]
fn options_chain() -> keyway::Result<()> {
    let chained =
        AdamOptions::default().lr(1e-2).beta1(0.8).beta2(0.9).eps(1e-6).weight_decay(0.1).lazy(true);
    let literal = AdamOptions { lr: 1e-2, beta1: 0.8, beta2: 0.9, eps: 1e-6, weight_decay: 0.1, lazy: true };
    assert_eq!(chained, literal);
    assert_eq!(Adam::new(vec![w()], chained)?.learning_rate(), 1e-2);
    AdamW::new(vec![w()], AdamWOptions::default().lr(1e-3).weight_decay(0.1))?;
    assert_eq!(AdamOptions::default().betas((0.8, 0.9)).beta2, 0.9);
    Sgd::new(vec![w()], SgdOptions::default().lr(0.1).momentum(0.9).weight_decay(1e-4).nesterov(true))?;
    RmsProp::new(vec![w()], RmsPropOptions::default().alpha(0.9).momentum(0.5).centered(true))?;
    Adagrad::new(vec![w()], AdagradOptions::default().lr_decay(0.1).initial_accumulator_value(0.1))?;
    assert_eq!(SparseAdamOptions::default().lr(0.1).lr, 0.1);
    GradScaler::new(GradScalerOptions::default().init_scale(8.0).growth_interval(100))?;
    assert_eq!(GradScaler::default().state(), GradScaler::new(GradScalerOptions::default())?.state());
    let mut sgd = Sgd::new(vec![w()], 0.1)?;
    OneCycleLr::new(&mut sgd, 0.1, 10, OneCycleLrOptions::default().pct_start(0.2).three_phase(true))?;
    ReduceLrOnPlateau::new(ReduceLrOnPlateauOptions::default().patience(3).factor(0.5).min_lr(1e-4))?;
    Ok(())
}

#[test]
fn options_of_ops_chain() -> keyway::Result<()> {
    let x = Tensor::ones((1, 2, 4))?;
    let mask = Tensor::new([[true, false], [true, true]])?;
    let masked =
        x.scaled_dot_product_attention_with(&x, &x, AttentionOptions::default().attn_mask(&mask).scale(0.5))?;
    assert_eq!(masked.shape(), x.shape());
    assert!(AttentionOptions::default().is_causal(true).dropout_p(0.1).enable_gqa(true).is_causal);
    let offsets = Tensor::new([0i64, 1])?;
    let options = BagOptions::default().offsets(&offsets).mode(BagMode::Sum).padding_idx(1);
    let bags = Tensor::new([[1.0f32], [4.0]])?.embedding_bag_with(&Tensor::new([0i64, 0, 0])?, options)?;
    assert_eq!(bags.to_vec::<f32>()?, [1.0, 2.0]);
    assert!(GridOptions::default().padding(GridPadding::Border).align_corners(true).align_corners);
    assert_eq!(ConvOptions::<2>::default().stride(2).padding(1).groups(4).groups, 4);
    Ok(())
}

#[test]
fn gradients() -> keyway::Result<()> {
    let w = w();
    let y = w.square()?;
    y.backward_with(BackwardOptions::default().gradients(vec![Tensor::new([3.0f32])?]).retain_graph(true))?;
    y.backward()?;
    assert_eq!(w.grad().unwrap().to_vec::<f32>()?, [8.0]);
    let first = autograd::grad(&[w.square()?], &[w], BackwardOptions::default().create_graph(true))?;
    assert!(first[0].as_ref().unwrap().requires_grad());
    Ok(())
}

#[test]
fn steps() -> keyway::Result<()> {
    let w = w();
    let mut optimizer = Sgd::new(vec![w.clone()], 0.5)?;
    optimizer.backward_step(&w.mul(3.0)?.sum_all()?)?;
    assert_eq!(w.to_vec::<f32>()?, [-0.5]);
    optimizer.backward_step(&w.mul(1.0)?.sum_all()?)?;
    assert_eq!(w.to_vec::<f32>()?, [-1.0], "by the gradient of the second loss alone");
    optimizer.set_learning_rate(0.25)?;
    assert_eq!((optimizer.learning_rate(), optimizer.learning_rates()), (0.25, vec![0.25]));
    assert!(optimizer.set_learning_rate(f64::NAN).is_err() && optimizer.learning_rate() == 0.25);
    Ok(())
}
