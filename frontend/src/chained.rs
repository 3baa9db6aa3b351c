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
    /// Sets the learning rate.
    lr: f64, "0.5", "0.5";
    /// Sets the momentum.
    momentum: f64, "0.5", "0.5";
    /// Sets the dampening of the momentum.
    dampening: f64, "0.5", "0.5";
    /// Sets the weight decay.
    weight_decay: f64, "0.5", "0.5";
    /// Enables or disables Nesterov momentum.
    nesterov: bool, "true", "true";
}
setters! { crate::optim::AdamOptions, AdamOptions, "keyway::optim";
    /// Sets the learning rate.
    lr: f64, "0.5", "0.5";
    /// Sets the decay rate of the mean of the gradients.
    beta1: f64, "0.5", "0.5";
    /// Sets the decay rate of the mean of their squares.
    beta2: f64, "0.5", "0.5";
    /// Sets the addend of the denominator.
    eps: f64, "1e-6", "1e-6";
    /// Sets the weight decay.
    weight_decay: f64, "0.5", "0.5";
    /// Sets whether a sparse gradient updates only its rows.
    lazy: bool, "true", "true";
}
setters! { crate::optim::AdamWOptions, AdamWOptions, "keyway::optim";
    /// Sets the learning rate.
    lr: f64, "0.5", "0.5";
    /// Sets the decay rate of the mean of the gradients.
    beta1: f64, "0.5", "0.5";
    /// Sets the decay rate of the mean of their squares.
    beta2: f64, "0.5", "0.5";
    /// Sets the addend of the denominator.
    eps: f64, "1e-6", "1e-6";
    /// Sets the weight decay.
    weight_decay: f64, "0.5", "0.5";
    /// Sets whether a sparse gradient updates only its rows.
    lazy: bool, "true", "true";
}
setters! { crate::optim::SparseAdamOptions, SparseAdamOptions, "keyway::optim";
    /// Sets the learning rate.
    lr: f64, "0.5", "0.5";
    /// Sets the decay rate of the mean of the gradients.
    beta1: f64, "0.5", "0.5";
    /// Sets the decay rate of the mean of their squares.
    beta2: f64, "0.5", "0.5";
    /// Sets the addend of the denominator.
    eps: f64, "1e-6", "1e-6";
}
setters! { crate::optim::AdagradOptions, AdagradOptions, "keyway::optim";
    /// Sets the learning rate.
    lr: f64, "0.5", "0.5";
    /// Sets the decay of the learning rate.
    lr_decay: f64, "0.5", "0.5";
    /// Sets the weight decay.
    weight_decay: f64, "0.5", "0.5";
    /// Sets the initial value of the sums of squares.
    initial_accumulator_value: f64, "0.5", "0.5";
    /// Sets the addend of the denominator.
    eps: f64, "1e-6", "1e-6";
}
setters! { crate::optim::RmsPropOptions, RmsPropOptions, "keyway::optim";
    /// Sets the learning rate.
    lr: f64, "0.5", "0.5";
    /// Sets the decay rate of the running means.
    alpha: f64, "0.5", "0.5";
    /// Sets the addend of the denominator.
    eps: f64, "1e-6", "1e-6";
    /// Sets the weight decay.
    weight_decay: f64, "0.5", "0.5";
    /// Sets the momentum.
    momentum: f64, "0.5", "0.5";
    /// Sets whether gradients are divided by their standard deviation instead of their root mean square.
    centered: bool, "true", "true";
}
setters! { crate::optim::GradScalerOptions, GradScalerOptions, "keyway::optim";
    /// Sets the initial scale.
    init_scale: f64, "8.0", "8.0";
    /// Sets the factor by which the scale grows.
    growth_factor: f64, "4.0", "4.0";
    /// Sets the factor by which the scale shrinks.
    backoff_factor: f64, "0.25", "0.25";
    /// Sets the number of finite steps before the scale grows.
    growth_interval: u64, "8", "8";
}
setters! { crate::optim::lr_scheduler::OneCycleLrOptions, OneCycleLrOptions, "keyway::optim::lr_scheduler";
    /// Sets the fraction of the steps in which the rate rises.
    pct_start: f64, "0.5", "0.5";
    /// Sets the interpolation within a phase.
    anneal: Anneal, "Anneal::Linear", "Anneal::Linear";
    /// Sets the divisor of `max_lr` for the initial rate.
    div_factor: f64, "4.0", "4.0";
    /// Sets the divisor of the initial rate for the final one.
    final_div_factor: f64, "4.0", "4.0";
    /// Sets whether there are three phases instead of two.
    three_phase: bool, "true", "true";
}
setters! { crate::optim::lr_scheduler::ReduceLrOnPlateauOptions, ReduceLrOnPlateauOptions, "keyway::optim::lr_scheduler";
    /// Sets the direction of improvement.
    mode: PlateauMode, "PlateauMode::Max", "PlateauMode::Max";
    /// Sets the factor of the rates.
    factor: f64, "0.5", "0.5";
    /// Sets the number of tolerated epochs without improvement.
    patience: u64, "3", "3";
    /// Sets the minimum change that counts as an improvement.
    threshold: Threshold, "Threshold::Absolute(0.5)", "Threshold::Absolute(0.5)";
    /// Sets the number of epochs after a reduction that are not counted.
    cooldown: u64, "3", "3";
    /// Sets the lower bound of the rates.
    min_lr: f64, "0.5", "0.5";
    /// Sets the minimum reduction of a rate.
    eps: f64, "0.5", "0.5";
}
setters! { crate::autograd::BackwardOptions, BackwardOptions, "keyway::autograd";
    /// Sets the initial gradients of the outputs.
    gradients: Vec<Tensor> => Some;
    /// Sets whether saved tensors are retained for another pass.
    retain_graph: bool, "true", "true";
    /// Sets whether the pass itself is recorded, for derivatives of gradients.
    create_graph: bool, "true", "true";
    /// Sets whether an input that the outputs do not depend on is `None` instead of an error.
    allow_unused: bool, "true", "true";
    /// Sets whether gradients of sparse tensors are strided.
    strided_gradients: bool, "true", "true";
}
setters! { crate::nn::GridOptions, GridOptions, "keyway::nn";
    /// Sets the interpolation.
    mode: GridMode, "GridMode::Nearest", "GridMode::Nearest";
    /// Sets the padding outside of the image.
    padding: GridPadding, "GridPadding::Border", "GridPadding::Border";
    /// Sets whether -1 and 1 are the centres of the outermost pixels instead of their outer edges.
    align_corners: bool, "true", "true";
}
setters! { crate::nn::MseLoss, MseLoss, "keyway::nn";
    /// Sets the reduction.
    reduction: Reduction, "Reduction::Sum", "Reduction::Sum";
}
setters! { crate::nn::L1Loss, L1Loss, "keyway::nn";
    /// Sets the reduction.
    reduction: Reduction, "Reduction::Sum", "Reduction::Sum";
}
setters! { crate::nn::SmoothL1Loss, SmoothL1Loss, "keyway::nn";
    /// Sets the threshold between the quadratic and the linear part.
    beta: f64, "0.5", "0.5";
    /// Sets the reduction.
    reduction: Reduction, "Reduction::Sum", "Reduction::Sum";
}
setters! { crate::nn::HuberLoss, HuberLoss, "keyway::nn";
    /// Sets the threshold between the quadratic and the linear part.
    delta: f64, "0.5", "0.5";
    /// Sets the reduction.
    reduction: Reduction, "Reduction::Sum", "Reduction::Sum";
}
setters! { crate::nn::BceLoss, BceLoss, "keyway::nn";
    /// Sets the weights of the elements.
    weight: Tensor => Some;
    /// Sets the reduction.
    reduction: Reduction, "Reduction::Sum", "Reduction::Sum";
}
setters! { crate::nn::BceWithLogitsLoss, BceWithLogitsLoss, "keyway::nn";
    /// Sets the weights of the elements.
    weight: Tensor => Some;
    /// Sets the weights of positive targets.
    pos_weight: Tensor => Some;
    /// Sets the reduction.
    reduction: Reduction, "Reduction::Sum", "Reduction::Sum";
}
setters! { crate::nn::NllLoss, NllLoss, "keyway::nn";
    /// Sets the weights of the classes.
    weight: Tensor => Some;
    /// Sets the ignored class.
    ignore_index: i64, "3", "3";
    /// Sets the reduction.
    reduction: Reduction, "Reduction::Sum", "Reduction::Sum";
}
setters! { crate::nn::CrossEntropyLoss, CrossEntropyLoss, "keyway::nn";
    /// Sets the weights of the classes.
    weight: Tensor => Some;
    /// Sets the ignored class.
    ignore_index: i64, "3", "3";
    /// Sets the fraction of the target that is distributed evenly over all classes.
    label_smoothing: f64, "0.5", "0.5";
    /// Sets the reduction.
    reduction: Reduction, "Reduction::Sum", "Reduction::Sum";
}
setters! { crate::nn::KlDivLoss, KlDivLoss, "keyway::nn";
    /// Sets whether targets are logarithms instead of probabilities.
    log_target: bool, "true", "true";
    /// Sets the reduction.
    reduction: Reduction, "Reduction::Sum", "Reduction::Sum";
}
setters! { crate::nn::HingeEmbeddingLoss, HingeEmbeddingLoss, "keyway::nn";
    /// Sets the margin.
    margin: f64, "0.5", "0.5";
    /// Sets the reduction.
    reduction: Reduction, "Reduction::Sum", "Reduction::Sum";
}
setters! { crate::nn::SoftMarginLoss, SoftMarginLoss, "keyway::nn";
    /// Sets the reduction.
    reduction: Reduction, "Reduction::Sum", "Reduction::Sum";
}
setters! { crate::nn::MultiMarginLoss, MultiMarginLoss, "keyway::nn";
    /// Sets the power of the hinge, 1 or 2.
    p: i64, "2", "2";
    /// Sets the margin.
    margin: f64, "0.5", "0.5";
    /// Sets the weights of the classes.
    weight: Tensor => Some;
    /// Sets the reduction.
    reduction: Reduction, "Reduction::Sum", "Reduction::Sum";
}
setters! { crate::nn::PoissonNllLoss, PoissonNllLoss, "keyway::nn";
    /// Sets whether inputs are logarithms instead of expected values.
    log_input: bool, "false", "false";
    /// Sets whether the constant of the targets is included.
    full: bool, "true", "true";
    /// Sets the addend before the logarithm.
    eps: f64, "1e-3", "1e-3";
    /// Sets the reduction.
    reduction: Reduction, "Reduction::Sum", "Reduction::Sum";
}
setters! { crate::nn::CtcLossOptions, CtcLossOptions, "keyway::nn";
    /// Sets the class that separates labels.
    blank: usize, "2", "2";
    /// Sets whether a target that no alignment reaches has loss and gradient 0.
    zero_infinity: bool, "true", "true";
    /// Sets the reduction.
    reduction: Reduction, "Reduction::Sum", "Reduction::Sum";
}
setters! { crate::nn::CtcLoss, CtcLoss, "keyway::nn";
    /// Sets the class that separates labels.
    blank: usize, "2", "2";
    /// Sets whether a target that no alignment reaches has loss and gradient 0.
    zero_infinity: bool, "true", "true";
    /// Sets the reduction.
    reduction: Reduction, "Reduction::Sum", "Reduction::Sum";
}
setters! { crate::nn::TripletMarginOptions, TripletMarginOptions, "keyway::nn";
    /// Sets the margin.
    margin: f64, "0.5", "0.5";
    /// Sets the `p` of the norm.
    p: f64, "1.0", "1.0";
    /// Sets the addend of each difference.
    eps: f64, "1e-3", "1e-3";
    /// Sets whether the negative's distance is the smaller of those from anchor and positive.
    swap: bool, "true", "true";
    /// Sets the reduction.
    reduction: Reduction, "Reduction::Sum", "Reduction::Sum";
}
setters! { crate::nn::TripletMarginLoss, TripletMarginLoss, "keyway::nn";
    /// Sets the margin.
    margin: f64, "0.5", "0.5";
    /// Sets the `p` of the norm.
    p: f64, "1.0", "1.0";
    /// Sets the addend of each difference.
    eps: f64, "1e-3", "1e-3";
    /// Sets whether the negative's distance is the smaller of those from anchor and positive.
    swap: bool, "true", "true";
    /// Sets the reduction.
    reduction: Reduction, "Reduction::Sum", "Reduction::Sum";
}
setters! { crate::nn::CosineEmbeddingLoss, CosineEmbeddingLoss, "keyway::nn";
    /// Sets the margin.
    margin: f64, "0.5", "0.5";
    /// Sets the reduction.
    reduction: Reduction, "Reduction::Sum", "Reduction::Sum";
}
setters! { crate::nn::MarginRankingLoss, MarginRankingLoss, "keyway::nn";
    /// Sets the margin.
    margin: f64, "0.5", "0.5";
    /// Sets the reduction.
    reduction: Reduction, "Reduction::Sum", "Reduction::Sum";
}
setters! { crate::nn::GaussianNllLoss, GaussianNllLoss, "keyway::nn";
    /// Sets whether the constant is included.
    full: bool, "true", "true";
    /// Sets the minimum variance.
    eps: f64, "1e-3", "1e-3";
    /// Sets the reduction.
    reduction: Reduction, "Reduction::Sum", "Reduction::Sum";
}

/// PyTorch's pair of decay rates.
macro_rules! betas {
    ($($name:ident)*) => {$(
        impl crate::optim::$name {
            /// Sets the decay rates of the mean of the gradients and of the mean of their squares.
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
    /// Sets the mask: the keys visible to a query (bool), or an addend of its scores.
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
    /// Sets the probability of dropping a weight.
    dropout_p: f64, "0.5", "0.5";
    /// Enables or disables causal masking, which limits query `i` to the keys `0..=i`.
    is_causal: bool, "true", "true";
    /// Sets the factor of the scores.
    scale: f64 => Some, "0.5", "Some(0.5)";
    /// Enables or disables grouped-query attention, with fewer heads of key and value than of the query.
    enable_gqa: bool, "true", "true";
}

impl<'a> crate::nn::BagOptions<'a> {
    /// Sets the offsets of the first index of each bag.
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

    /// Sets the factors of the indices.
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
    /// Sets the reduction of the rows of a bag.
    mode: crate::nn::BagMode, "BagMode::Sum", "BagMode::Sum";
    /// Sets whether the last offset is the end of the last bag.
    include_last_offset: bool, "true", "true";
    /// Sets the ignored index.
    padding_idx: i64 => Some, "3", "Some(3)";
    /// Sets whether the gradient is sparse.
    sparse: bool, "true", "true";
}
