//! Functions of `nn`, initial values, layers and optimisers.

use super::{Call, FAR, Table, f, l, leaf};
use keyway::nn::functional as F;
use keyway::nn::init::{self, Fan};
use keyway::nn::{self, ConvOptions, Module};
use keyway::{Result, Tensor, optim};

pub fn functions() -> Table {
    macro_rules! init {
        ($($name:ident $call:ident ($($more:expr),*);)+) => { table! { $(
            $name: init::$call(-1 $(, $more)*), init::$call((FAR, 2) $(, $more)*), init::$call((1usize << 40, 1usize << 40) $(, $more)*),
                init::$call((1usize << 30, 1usize << 25) $(, $more)*), init::$call((1, 1, 1usize << 40, 1usize << 40) $(, $more)*);
        )+ } };
    }
    let mut all = init! {
        uniform uniform (1.0);
        normal normal (1.0);
        constant constant (1.0);
        kaiming_uniform kaiming_uniform ();
        kaiming_normal kaiming_normal ();
        xavier_uniform xavier_uniform ();
        kaiming_uniform_with kaiming_uniform_with (0.0, Fan::Out);
        kaiming_normal_with kaiming_normal_with (0.0, Fan::In);
        xavier_uniform_with xavier_uniform_with (1.0);
        trunc_normal trunc_normal (1.0);
    };
    all.extend(table! {
        trunc_normal_with: init::trunc_normal_with(2, f64::NAN, 1.0, (0.0, 1.0)), init::trunc_normal_with(2, 0.0, 0.0, (0.0, 1.0)),
            init::trunc_normal_with(2, 0.0, 1.0, (1.0, 1.0));
        orthogonal: init::orthogonal(2, 1.0), init::orthogonal((1usize << 40, 1usize << 40), 1.0);
        sparse: init::sparse(2, 0.5, 1.0), init::sparse((2, 2), 1.5, 1.0), init::sparse((2, 2), 0.5, -1.0);
        embedding: F::embedding(&f(&[1]), &f(&[2, 3]));
        linear: F::linear(&f(&[2, 3]), &f(&[2, 2]), None);
        max_pool2d: F::max_pool2d(&f(&[2]), 2), F::max_pool2d(&f(&[1, 1, 2, 2]), 9);
        avg_pool1d: F::avg_pool1d(&f(&[1, 1, 2]), 9);
        conv1d: F::conv1d(&f(&[2]), &f(&[2]), None);
        one_hot: F::one_hot(&f(&[2]), 2);
        mse_loss: F::mse_loss(&f(&[2]), &f(&[3]));
        huber_loss: F::huber_loss(&l(&[2]), &l(&[2]));
        cross_entropy: F::cross_entropy(&f(&[2, 3]), &l(&[3]));
        normalize: F::normalize(&f(&[2]), 1);
        glu: F::glu(&f(&[3]));
    });
    all
}

/// A layer is named as a type: what it is made of it names itself, and what its op refuses is named as the op that it is documented
/// as.
pub fn layers() -> Table {
    const HUGE: usize = 1 << 40;
    fn forward(module: &dyn Module, x: &Tensor) -> Result<Tensor> {
        module.forward(x)
    }
    table! {
        Linear: nn::Linear::new(HUGE, HUGE), nn::Linear::new(FAR, 1), nn::Linear::without_bias(1 << 30, 1 << 25),
            nn::Linear::from_tensors(l(&[2, 2]), None);
        MultiheadAttention: nn::MultiheadAttention::new(3, 2), nn::MultiheadAttention::new(HUGE, 1),
            nn::MultiheadAttention::new(FAR, 1), nn::MultiheadAttention::new(4, 2).unwrap().dropout(2.0).map(drop),
            forward(&nn::MultiheadAttention::new(4, 2).unwrap(), &f(&[4])),
            forward(&nn::MultiheadAttention::new(4, 2).unwrap(), &f(&[1, 2, 3]));
        Conv1d: nn::Conv1d::new(HUGE, HUGE, 1), nn::Conv1d::new(1, FAR, 1),
            nn::Conv1d::new_with(3, 2, 1, ConvOptions::default().groups(2)), nn::Conv1d::from_tensors(l(&[1, 1, 1]), None, ConvOptions::default());
        Conv2d: nn::Conv2d::new(1, 1, HUGE), nn::Conv2d::without_bias(1, 1, FAR, ConvOptions::default());
        Conv3d: nn::Conv3d::new(1, 1, HUGE);
        ConvTranspose2d: nn::ConvTranspose2d::new(HUGE, HUGE, 1);
        Embedding: nn::Embedding::new(HUGE, HUGE), nn::Embedding::new(2, 2).unwrap().padding_idx(2),
            nn::Embedding::new(2, 2).unwrap().padding_idx(FAR), nn::Embedding::from_tensor(l(&[2, 2]));
        EmbeddingBag: nn::EmbeddingBag::new(HUGE, HUGE), nn::EmbeddingBag::new(2, 2).unwrap().padding_idx(-3),
            nn::EmbeddingBag::from_tensor(l(&[2, 2]));
        BatchNorm1d: nn::BatchNorm1d::new(FAR), nn::BatchNorm1d::new(1 << 55), forward(&nn::BatchNorm1d::new(2).unwrap(), &f(&[2, 3]));
        BatchNorm2d: nn::BatchNorm2d::new(1 << 50), forward(&nn::BatchNorm2d::new(2).unwrap(), &f(&[2]));
        InstanceNorm2d: nn::InstanceNorm2d::new(1 << 50).with_affine().map(drop), forward(&nn::InstanceNorm2d::new(2), &f(&[2]));
        GroupNorm: nn::GroupNorm::new(2, 3), nn::GroupNorm::new(1, 1 << 50);
        LayerNorm: nn::LayerNorm::new(-1), nn::LayerNorm::new((HUGE, HUGE));
        RmsNorm: nn::RmsNorm::new(-1), nn::RmsNorm::new((HUGE, HUGE));
        Prelu: nn::Prelu::new_with(0, 0.1), nn::Prelu::new_with(1 << 50, 0.1);
        Dropout: nn::Dropout::new(2.0);
        Flatten: forward(&nn::Flatten { start: 5, end: -1 }, &f(&[2])), forward(&nn::Flatten { start: -1, end: 0 }, &f(&[2, 2]));
        linear: forward(&nn::Linear::new(2, 2).unwrap(), &f(&[3]));
        conv2d: forward(&nn::Conv2d::new(1, 1, 2).unwrap(), &f(&[3]));
        max_pool2d: forward(&nn::MaxPool2d::new(9), &f(&[1, 1, 2, 2]));
        adaptive_avg_pool2d: forward(&nn::AdaptiveAvgPool2d::new(3), &l(&[1, 1, 4, 4]));
        mse_loss: nn::MseLoss::default().forward(&f(&[2]), &f(&[3]));
        clip_grad_norm_: optim::clip_grad_norm_(&[leaf(&[2])], -1.0);
        clip_grad_value_: optim::clip_grad_value_(&[leaf(&[2])], f64::NAN);
        Sgd: optim::Sgd::new(vec![], optim::SgdOptions::default()).map(drop), optim::Sgd::new(vec![f(&[2])], optim::SgdOptions::default()).map(drop);
        Adam: optim::Adam::new(vec![f(&[2])], optim::AdamOptions::default()).map(drop);
    }
}
