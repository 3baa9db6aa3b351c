//! Modules: layers with parameters, and operations on all parameters of a model.
//!
//! ```
//! # fn main() -> keyway::Result<()> {
//! use keyway::nn::{Linear, Module, Relu, Sequential};
//! use keyway::Tensor;
//! let model = Sequential::new()
//!     .push(Linear::new(64, 128)?)
//!     .push(Relu)
//!     .push(Linear::new(128, 10)?);
//! let images = Tensor::from_vec(vec![0.5f32; 2 * 64], (2, 64))?;
//! assert_eq!(model.forward(&images)?.shape(), [2, 10]);
//! assert_eq!(model.num_parameters(), 64 * 128 + 128 + 128 * 10 + 10);
//! # Ok(()) }
//! ```
//!
//! Decisions:
//! - a module registers its parts once, in [`Module::visit`]; names, state dicts, moves and modes are derived from it;
//! - parts are behind shared references ([`Parameter`], [`Buffer`], [`TrainingMode`]), so a model that several threads or modules
//!   share can be loaded, moved and switched;
//! - initial values come from the default generator and are drawn on the host, so they are the same on every device;
//!   constructors take no generator, since [`rng::with_generator`](crate::rng::with_generator) substitutes one for everything
//!   that is constructed inside it.

mod activation;
mod adaptive_pool;
mod attention;
mod batch_norm;
mod channel_norm;
mod constructors;
mod containers;
mod conv;
mod conv_act;
mod ctc_loss;
mod dropout;
mod dyn_module;
mod embedding;
mod flatten;
mod func;
pub mod functional;
mod group_norm;
pub mod init;
mod instance_norm;
mod kv_cache;
mod layer_norm;
mod linear;
mod local_response_norm;
mod loss;
mod loss_of_three;
pub mod models;
mod module;
mod parameter;
mod parts;
mod pool;
mod prelu;
mod rearrange;
mod recurrent;
mod resample;
mod rms_norm;
mod sequential;
mod state;
mod visitor;

pub use crate::error::module::{Mismatch, ModuleError};
pub use crate::io::state_dict::StateDict;
pub use crate::ops::attention::scaled_dot_product_attention::AttentionOptions;
pub use crate::ops::conv::{Activation, ConvOptions, ConvTransposeOptions, Padding, PerDim};
pub use crate::ops::image::{
    GridMode, GridOptions, GridPadding, InterpolateMode, InterpolateOptions, Resize, UnfoldOptions,
};
pub use crate::ops::index::embedding_bag::{BagMode, BagOptions};
pub use crate::ops::index::pad::PadMode;
pub use crate::ops::loss::{CtcLossOptions, Reduction, TripletMarginOptions};
pub use crate::ops::pointwise::gelu::Approximate;
pub use crate::ops::pool::{AvgPoolOptions, LpPoolOptions, MaxPoolOptions, MaxUnpoolOptions, OutputSize};
pub use activation::{
    Celu, Elu, Gelu, Glu, Hardshrink, Hardsigmoid, Hardswish, Hardtanh, Identity, LeakyRelu, LogSigmoid,
    LogSoftmax, Mish, Relu, Relu6, Selu, Sigmoid, Silu, Softmax, Softplus, Softshrink, Softsign, Tanh,
    Tanhshrink, Threshold,
};
pub use adaptive_pool::{
    AdaptiveAvgPool1d, AdaptiveAvgPool2d, AdaptiveAvgPool3d, AdaptiveMaxPool1d, AdaptiveMaxPool2d,
    AdaptiveMaxPool3d, MaxUnpool1d, MaxUnpool2d, MaxUnpool3d,
};
pub use attention::MultiheadAttention;
pub use batch_norm::{BatchNorm1d, BatchNorm2d, BatchNorm3d};
pub use containers::{ModuleDict, ModuleList};
pub use conv::{Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d};
pub use conv_act::{ConvAct1d, ConvAct2d, ConvAct3d};
pub use ctc_loss::CtcLoss;
pub use dropout::{AlphaDropout, Dropout, Dropout1d, Dropout2d, Dropout3d, FeatureAlphaDropout};
pub use embedding::{Embedding, EmbeddingBag};
pub use flatten::Flatten;
pub use func::Func;
pub use group_norm::GroupNorm;
pub use instance_norm::{InstanceNorm1d, InstanceNorm2d, InstanceNorm3d};
pub use kv_cache::KvCache;
pub use layer_norm::LayerNorm;
pub use linear::Linear;
pub use local_response_norm::LocalResponseNorm;
pub use loss::{
    BceLoss, BceWithLogitsLoss, CrossEntropyLoss, HingeEmbeddingLoss, HuberLoss, KlDivLoss, L1Loss, MseLoss,
    MultiMarginLoss, NllLoss, PoissonNllLoss, SmoothL1Loss, SoftMarginLoss,
};
pub use loss_of_three::{CosineEmbeddingLoss, GaussianNllLoss, MarginRankingLoss, TripletMarginLoss};
pub use module::Module;
pub(crate) use module::convert_named;
pub use parameter::{Buffer, Parameter, TrainingMode};
pub use pool::{
    AvgPool1d, AvgPool2d, AvgPool3d, LpPool1d, LpPool2d, LpPool3d, MaxPool1d, MaxPool2d, MaxPool3d,
};
pub use prelu::Prelu;
pub use rearrange::{ChannelShuffle, PixelShuffle, PixelUnshuffle};
pub use recurrent::{
    Gru, GruCell, Lstm, LstmCell, LstmState, PackedSequence, RecurrentOptions, Rnn, RnnCell, pad_sequence,
};
pub use resample::{Fold, Unfold, Upsample};
pub use rms_norm::RmsNorm;
pub use sequential::Sequential;
#[doc(hidden)]
#[allow(deprecated)]
pub use sequential::seq;
pub use state::LoadReport;
pub use visitor::ModuleVisitor;

/// PyTorch's spellings of these names.
#[doc(hidden)]
pub use {
    BceLoss as BCELoss, BceWithLogitsLoss as BCEWithLogitsLoss, Celu as CELU, Elu as ELU, Gelu as GELU,
    Glu as GLU, Gru as GRU, GruCell as GRUCell, KlDivLoss as KLDivLoss, LeakyRelu as LeakyReLU, Lstm as LSTM,
    LstmCell as LSTMCell, MseLoss as MSELoss, NllLoss as NLLLoss, Prelu as PReLU, Relu as ReLU,
    Relu6 as ReLU6, RmsNorm as RMSNorm, Rnn as RNN, RnnCell as RNNCell, Selu as SELU, Silu as SiLU,
};
