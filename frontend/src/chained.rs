//! Options whose fields are set one after another: `AdamOptions::default().lr(1e-3).weight_decay(0.1)`, as well as by a struct
//! literal.

use crate::Tensor;
use crate::nn::{GridMode, GridPadding, Reduction};
use crate::optim::lr_scheduler::{Anneal, PlateauMode, Threshold};

/// Declares methods of the fields' names that set them. A field that is an `Option` is set to `Some` of the argument. The example
/// of a method sets the field to the first text and compares it with the second.
macro_rules! setters {
    (@value $value:ident) => { $value };
    (@value $value:ident $some:ident) => { $some($value) };
    ($type:ty, $name:ident, $path:literal;
        $(#[$doc:meta] $field:ident: $of:ty $(=> $some:ident)? $(, $given:literal, $expected:literal)?;)*) => {
        impl $type {$(
            #[$doc]
            $(
                ///
                #[doc = concat!(
                    "```\nuse ", $path, "::*;\n",
                    "let options = ", stringify!($name), "::default().", stringify!($field), "(", $given, ");\n",
                    "assert_eq!(options.", stringify!($field), ", ", $expected, ");\n```",
                )]
            )?
            #[must_use]
            pub fn $field(mut self, $field: $of) -> Self {
                self.$field = setters!(@value $field $($some)?);
                self
            }
        )*}
    };
}

setters! { crate::optim::SgdOptions, SgdOptions, "keyway::optim";
    /// With this learning rate.
    lr: f64, "0.5", "0.5";
    /// With this momentum.
    momentum: f64, "0.5", "0.5";
    /// With this dampening of the momentum.
    dampening: f64, "0.5", "0.5";
    /// With this weight decay.
    weight_decay: f64, "0.5", "0.5";
    /// With Nesterov momentum, or without.
    nesterov: bool, "true", "true";
}
setters! { crate::optim::AdamOptions, AdamOptions, "keyway::optim";
    /// With this learning rate.
    lr: f64, "0.5", "0.5";
    /// With this decay rate of the mean of the gradients.
    beta1: f64, "0.5", "0.5";
    /// With this decay rate of the mean of their squares.
    beta2: f64, "0.5", "0.5";
    /// With this number added to the denominator.
    eps: f64, "1e-6", "1e-6";
    /// With this weight decay.
    weight_decay: f64, "0.5", "0.5";
    /// With steps of only the rows of a sparse gradient, or of all rows.
    lazy: bool, "true", "true";
}
setters! { crate::optim::AdamWOptions, AdamWOptions, "keyway::optim";
    /// With this learning rate.
    lr: f64, "0.5", "0.5";
    /// With this decay rate of the mean of the gradients.
    beta1: f64, "0.5", "0.5";
    /// With this decay rate of the mean of their squares.
    beta2: f64, "0.5", "0.5";
    /// With this number added to the denominator.
    eps: f64, "1e-6", "1e-6";
    /// With this weight decay.
    weight_decay: f64, "0.5", "0.5";
    /// With steps of only the rows of a sparse gradient, or of all rows.
    lazy: bool, "true", "true";
}
setters! { crate::optim::SparseAdamOptions, SparseAdamOptions, "keyway::optim";
    /// With this learning rate.
    lr: f64, "0.5", "0.5";
    /// With this decay rate of the mean of the gradients.
    beta1: f64, "0.5", "0.5";
    /// With this decay rate of the mean of their squares.
    beta2: f64, "0.5", "0.5";
    /// With this number added to the denominator.
    eps: f64, "1e-6", "1e-6";
}
setters! { crate::optim::AdagradOptions, AdagradOptions, "keyway::optim";
    /// With this learning rate.
    lr: f64, "0.5", "0.5";
    /// With this decay of the learning rate.
    lr_decay: f64, "0.5", "0.5";
    /// With this weight decay.
    weight_decay: f64, "0.5", "0.5";
    /// With this initial value of the sums of squares.
    initial_accumulator_value: f64, "0.5", "0.5";
    /// With this number added to the denominator.
    eps: f64, "1e-6", "1e-6";
}
setters! { crate::optim::RmsPropOptions, RmsPropOptions, "keyway::optim";
    /// With this learning rate.
    lr: f64, "0.5", "0.5";
    /// With this decay rate of the running means.
    alpha: f64, "0.5", "0.5";
    /// With this number added to the denominator.
    eps: f64, "1e-6", "1e-6";
    /// With this weight decay.
    weight_decay: f64, "0.5", "0.5";
    /// With this momentum.
    momentum: f64, "0.5", "0.5";
    /// With gradients divided by their standard deviation, or by their root mean square.
    centered: bool, "true", "true";
}
setters! { crate::optim::GradScalerOptions, GradScalerOptions, "keyway::optim";
    /// With this initial scale.
    init_scale: f64, "8.0", "8.0";
    /// With this factor by which the scale grows.
    growth_factor: f64, "4.0", "4.0";
    /// With this factor by which the scale shrinks.
    backoff_factor: f64, "0.25", "0.25";
    /// With this number of finite steps before the scale grows.
    growth_interval: u64, "8", "8";
}
setters! { crate::optim::lr_scheduler::OneCycleLrOptions, OneCycleLrOptions, "keyway::optim::lr_scheduler";
    /// With this fraction of the steps in which the rate rises.
    pct_start: f64, "0.5", "0.5";
    /// With this interpolation within a phase.
    anneal: Anneal, "Anneal::Linear", "Anneal::Linear";
    /// With a first rate of `max_lr` divided by this.
    div_factor: f64, "4.0", "4.0";
    /// With a last rate of the first one divided by this.
    final_div_factor: f64, "4.0", "4.0";
    /// With three phases, or two.
    three_phase: bool, "true", "true";
}
setters! { crate::optim::lr_scheduler::ReduceLrOnPlateauOptions, ReduceLrOnPlateauOptions, "keyway::optim::lr_scheduler";
    /// With this direction that counts as better.
    mode: PlateauMode, "PlateauMode::Max", "PlateauMode::Max";
    /// With this factor of the rates.
    factor: f64, "0.5", "0.5";
    /// With this number of tolerated epochs without improvement.
    patience: u64, "3", "3";
    /// With this minimum change that counts as an improvement.
    threshold: Threshold, "Threshold::Absolute(0.5)", "Threshold::Absolute(0.5)";
    /// With this number of epochs after a reduction that are not counted.
    cooldown: u64, "3", "3";
    /// With this lower bound of the rates.
    min_lr: f64, "0.5", "0.5";
    /// With this minimum reduction of a rate.
    eps: f64, "0.5", "0.5";
}
setters! { crate::autograd::BackwardOptions, BackwardOptions, "keyway::autograd";
    /// With these initial gradients of the outputs.
    gradients: Vec<Tensor> => Some;
    /// With saved tensors that are retained for another pass, or freed.
    retain_graph: bool, "true", "true";
    /// With a graph of the pass itself, for derivatives of gradients.
    create_graph: bool, "true", "true";
    /// With `None` for an input that the outputs do not depend on, or an error.
    allow_unused: bool, "true", "true";
    /// With strided gradients also for sparse tensors.
    strided_gradients: bool, "true", "true";
}
setters! { crate::nn::GridOptions, GridOptions, "keyway::nn";
    /// With this interpolation.
    mode: GridMode, "GridMode::Nearest", "GridMode::Nearest";
    /// With this padding outside of the image.
    padding: GridPadding, "GridPadding::Border", "GridPadding::Border";
    /// With -1 and 1 at the centres of the outermost pixels, or at their outer edges.
    align_corners: bool, "true", "true";
}
setters! { crate::nn::MseLoss, MseLoss, "keyway::nn";
    /// With this reduction.
    reduction: Reduction, "Reduction::Sum", "Reduction::Sum";
}
setters! { crate::nn::L1Loss, L1Loss, "keyway::nn";
    /// With this reduction.
    reduction: Reduction, "Reduction::Sum", "Reduction::Sum";
}
setters! { crate::nn::SmoothL1Loss, SmoothL1Loss, "keyway::nn";
    /// With this threshold between the quadratic and the linear part.
    beta: f64, "0.5", "0.5";
    /// With this reduction.
    reduction: Reduction, "Reduction::Sum", "Reduction::Sum";
}
setters! { crate::nn::HuberLoss, HuberLoss, "keyway::nn";
    /// With this threshold between the quadratic and the linear part.
    delta: f64, "0.5", "0.5";
    /// With this reduction.
    reduction: Reduction, "Reduction::Sum", "Reduction::Sum";
}
setters! { crate::nn::BceLoss, BceLoss, "keyway::nn";
    /// With these weights of the elements.
    weight: Tensor => Some;
    /// With this reduction.
    reduction: Reduction, "Reduction::Sum", "Reduction::Sum";
}
setters! { crate::nn::BceWithLogitsLoss, BceWithLogitsLoss, "keyway::nn";
    /// With these weights of the elements.
    weight: Tensor => Some;
    /// With these weights of positive targets.
    pos_weight: Tensor => Some;
    /// With this reduction.
    reduction: Reduction, "Reduction::Sum", "Reduction::Sum";
}
setters! { crate::nn::NllLoss, NllLoss, "keyway::nn";
    /// With these weights of the classes.
    weight: Tensor => Some;
    /// With this class ignored.
    ignore_index: i64, "3", "3";
    /// With this reduction.
    reduction: Reduction, "Reduction::Sum", "Reduction::Sum";
}
setters! { crate::nn::CrossEntropyLoss, CrossEntropyLoss, "keyway::nn";
    /// With these weights of the classes.
    weight: Tensor => Some;
    /// With this class ignored.
    ignore_index: i64, "3", "3";
    /// With this fraction of the target distributed evenly over all classes.
    label_smoothing: f64, "0.5", "0.5";
    /// With this reduction.
    reduction: Reduction, "Reduction::Sum", "Reduction::Sum";
}
setters! { crate::nn::KlDivLoss, KlDivLoss, "keyway::nn";
    /// With targets that are logarithms, or probabilities.
    log_target: bool, "true", "true";
    /// With this reduction.
    reduction: Reduction, "Reduction::Sum", "Reduction::Sum";
}
setters! { crate::nn::HingeEmbeddingLoss, HingeEmbeddingLoss, "keyway::nn";
    /// With this margin.
    margin: f64, "0.5", "0.5";
    /// With this reduction.
    reduction: Reduction, "Reduction::Sum", "Reduction::Sum";
}
setters! { crate::nn::SoftMarginLoss, SoftMarginLoss, "keyway::nn";
    /// With this reduction.
    reduction: Reduction, "Reduction::Sum", "Reduction::Sum";
}
setters! { crate::nn::MultiMarginLoss, MultiMarginLoss, "keyway::nn";
    /// With this power of the hinge, 1 or 2.
    p: i64, "2", "2";
    /// With this margin.
    margin: f64, "0.5", "0.5";
    /// With these weights of the classes.
    weight: Tensor => Some;
    /// With this reduction.
    reduction: Reduction, "Reduction::Sum", "Reduction::Sum";
}
setters! { crate::nn::PoissonNllLoss, PoissonNllLoss, "keyway::nn";
    /// With inputs that are logarithms, or expected values.
    log_input: bool, "false", "false";
    /// With the constant of the targets, or without.
    full: bool, "true", "true";
    /// With this number added before the logarithm.
    eps: f64, "1e-3", "1e-3";
    /// With this reduction.
    reduction: Reduction, "Reduction::Sum", "Reduction::Sum";
}
setters! { crate::nn::TripletMarginOptions, TripletMarginOptions, "keyway::nn";
    /// With this margin.
    margin: f64, "0.5", "0.5";
    /// With the norm of this `p`.
    p: f64, "1.0", "1.0";
    /// With this number added to each difference.
    eps: f64, "1e-3", "1e-3";
    /// With the smaller of the negative's distances from anchor and positive, or with that from the anchor.
    swap: bool, "true", "true";
    /// With this reduction.
    reduction: Reduction, "Reduction::Sum", "Reduction::Sum";
}
setters! { crate::nn::TripletMarginLoss, TripletMarginLoss, "keyway::nn";
    /// With this margin.
    margin: f64, "0.5", "0.5";
    /// With the norm of this `p`.
    p: f64, "1.0", "1.0";
    /// With this number added to each difference.
    eps: f64, "1e-3", "1e-3";
    /// With the smaller of the negative's distances from anchor and positive, or with that from the anchor.
    swap: bool, "true", "true";
    /// With this reduction.
    reduction: Reduction, "Reduction::Sum", "Reduction::Sum";
}
setters! { crate::nn::CosineEmbeddingLoss, CosineEmbeddingLoss, "keyway::nn";
    /// With this margin.
    margin: f64, "0.5", "0.5";
    /// With this reduction.
    reduction: Reduction, "Reduction::Sum", "Reduction::Sum";
}
setters! { crate::nn::MarginRankingLoss, MarginRankingLoss, "keyway::nn";
    /// With this margin.
    margin: f64, "0.5", "0.5";
    /// With this reduction.
    reduction: Reduction, "Reduction::Sum", "Reduction::Sum";
}
setters! { crate::nn::GaussianNllLoss, GaussianNllLoss, "keyway::nn";
    /// With the constant, or without.
    full: bool, "true", "true";
    /// With this smallest variance.
    eps: f64, "1e-3", "1e-3";
    /// With this reduction.
    reduction: Reduction, "Reduction::Sum", "Reduction::Sum";
}

/// PyTorch's pair of decay rates.
macro_rules! betas {
    ($($name:ident)*) => {$(
        impl crate::optim::$name {
            /// With these decay rates of the mean of the gradients and of the mean of their squares.
            ///
            #[doc = concat!(
                "```\nuse keyway::optim::", stringify!($name), ";\n",
                "let options = ", stringify!($name), "::default().betas((0.8, 0.9));\n",
                "assert_eq!((options.beta1, options.beta2), (0.8, 0.9));\n```",
            )]
            #[must_use]
            pub fn betas(mut self, (beta1, beta2): (f64, f64)) -> Self {
                (self.beta1, self.beta2) = (beta1, beta2);
                self
            }
        }
    )*};
}
betas! { AdamOptions AdamWOptions SparseAdamOptions }

impl<'a> crate::nn::AttentionOptions<'a> {
    /// With this mask: the keys visible to a query (bool), or an addend of its scores.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::AttentionOptions};
    /// let mask = Tensor::new([[true, false]])?;
    /// assert!(AttentionOptions::default().attn_mask(&mask).attn_mask.is_some());
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn attn_mask(self, mask: &'a Tensor) -> Self {
        Self { attn_mask: Some(mask), ..self }
    }
}

setters! { crate::nn::AttentionOptions<'_>, AttentionOptions, "keyway::nn";
    /// With this probability of dropping a weight.
    dropout_p: f64, "0.5", "0.5";
    /// With causal masking, each query `i` limited to the keys `0..=i`, or without.
    is_causal: bool, "true", "true";
    /// With this factor of the scores.
    scale: f64 => Some, "0.5", "Some(0.5)";
    /// With grouped-query attention, fewer heads of key and value than of the query, or without.
    enable_gqa: bool, "true", "true";
}

impl<'a> crate::nn::BagOptions<'a> {
    /// With these offsets of the first index of each bag.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::BagOptions};
    /// let offsets = Tensor::new([0i64, 2])?;
    /// assert!(BagOptions::default().offsets(&offsets).offsets.is_some());
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn offsets(self, offsets: &'a Tensor) -> Self {
        Self { offsets: Some(offsets), ..self }
    }

    /// With these factors of the indices.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::BagOptions};
    /// let factors = Tensor::new([0.5f32, 2.0])?;
    /// assert!(BagOptions::default().per_sample_weights(&factors).per_sample_weights.is_some());
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn per_sample_weights(self, factors: &'a Tensor) -> Self {
        Self { per_sample_weights: Some(factors), ..self }
    }
}

setters! { crate::nn::BagOptions<'_>, BagOptions, "keyway::nn";
    /// With this reduction of the rows of a bag.
    mode: crate::nn::BagMode, "BagMode::Sum", "BagMode::Sum";
    /// With the last offset at the end of the last bag, or not.
    include_last_offset: bool, "true", "true";
    /// With this index ignored.
    padding_idx: i64 => Some, "3", "Some(3)";
    /// With a sparse gradient, or a strided one.
    sparse: bool, "true", "true";
}
