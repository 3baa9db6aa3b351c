//! Modules, functions and losses.

use crate::table::section;
use keyway::nn::functional as F;
use keyway::nn::{self, *};
use keyway::prelude::*;

section! {
    layers "torch.nn: layers"
    "x = torch.randn(2, 4); img = torch.randn(1, 4, 8, 8)" {
        let x = Tensor::randn((2, 4))?;
        let img = Tensor::randn((1, 4, 8, 8))?;
    }
    "nn.Linear(4, 3)" => { nn::Linear::new(4, 3)? } "drawn from the default generator: `keyway::manual_seed(0)`";
    "nn.Linear(4, 3, bias=False)" => { nn::Linear::without_bias(4, 3)? };
    "nn.Linear(4, 3)(x)" => { nn::Linear::new(4, 3)?.forward(&x)? };
    "nn.Sequential(nn.Linear(4, 3), nn.ReLU())" => { nn::Sequential::from((nn::Linear::new(4, 3)?, nn::Relu)) } "or `Sequential::new().add(..)`, or from a vector";
    "nn.ModuleList([nn.ReLU()])" => { nn::ModuleList::from_iter([nn::Relu]) };
    "nn.ModuleDict({'act': nn.ReLU()})" => { let mut modules = nn::ModuleDict::new(); modules.insert("act", nn::Relu); };
    "nn.Parameter(torch.zeros(3))" => { nn::Parameter::new(Tensor::zeros(3)?)? } "a field of your module; `Module::visit` names it";
    "nn.Buffer(torch.zeros(3))" => { nn::Buffer::new(Tensor::zeros(3)?) };
    "nn.Conv1d(4, 6, 3)" => { nn::Conv1d::new(4, 6, 3)? };
    "nn.Conv2d(4, 6, 3, stride=2, padding=1)" => { nn::Conv2d::new_with(4, 6, 3, ConvOptions::default().stride(2).padding(1))? };
    "nn.Conv3d(4, 6, 3)" => { nn::Conv3d::new(4, 6, 3)? };
    "nn.ConvTranspose2d(4, 6, 3)" => { nn::ConvTranspose2d::new(4, 6, 3)? };
    "nn.MaxPool2d(2)" => { nn::MaxPool2d::new(2) };
    "nn.AvgPool2d(2)" => { nn::AvgPool2d::new(2) };
    "nn.AdaptiveAvgPool2d(1)" => { nn::AdaptiveAvgPool2d::new(1) };
    "nn.AdaptiveMaxPool2d(1)" => { nn::AdaptiveMaxPool2d::new(1) };
    "nn.MaxUnpool2d(2)" => { nn::MaxUnpool2d::new(2) };
    "nn.LPPool2d(2, 2)" => { nn::LpPool2d::new(2.0, 2) };
    "nn.BatchNorm2d(4)" => { nn::BatchNorm2d::new(4)? };
    "nn.InstanceNorm2d(4)" => { nn::InstanceNorm2d::new(4) };
    "nn.GroupNorm(2, 4)" => { nn::GroupNorm::new(2, 4)? };
    "nn.LayerNorm(4)" => { nn::LayerNorm::new(4)? };
    "nn.RMSNorm(4)" => { nn::RmsNorm::new(4)? };
    "nn.LocalResponseNorm(2)" => { nn::LocalResponseNorm::new(2) };
    "nn.Dropout(0.5)" => { nn::Dropout::new(0.5)? } "`.generator(generator)` for one of its own";
    "nn.Dropout2d(0.5)" => { nn::Dropout2d::new(0.5)? };
    "nn.AlphaDropout(0.5)" => { nn::AlphaDropout::new(0.5)? };
    "nn.Embedding(10, 4)" => { nn::Embedding::new(10, 4)? };
    "nn.Embedding(10, 4, padding_idx=0)" => { nn::Embedding::new(10, 4)?.padding_idx(0)? };
    "nn.Embedding(10, 4, sparse=True)" => { nn::Embedding::new(10, 4)?.sparse(true) };
    "nn.Embedding.from_pretrained(torch.zeros(10, 4))" => { nn::Embedding::from_tensor(Tensor::zeros((10, 4))?)? } "the table is learned further";
    "nn.EmbeddingBag(10, 4)" => { nn::EmbeddingBag::new(10, 4)? };
    "nn.MultiheadAttention(4, 2, batch_first=True)" => { nn::MultiheadAttention::new(4, 2)? } "`forward_qkv(q, k, v, options)`";
    "nn.Flatten()" => { nn::Flatten::default() };
    "nn.Upsample(scale_factor=2)" => { nn::Upsample::new(InterpolateOptions::scale(2.0)) };
    "nn.PixelShuffle(2)" => { nn::PixelShuffle::new(2) };
    "nn.PixelUnshuffle(2)" => { nn::PixelUnshuffle::new(2) };
    "nn.ChannelShuffle(2)" => { nn::ChannelShuffle::new(2) };
    "nn.Unfold(3)" => { nn::Unfold::new(UnfoldOptions::new(3)) };
    "nn.Fold((8, 8), 3)" => { nn::Fold::new(8, UnfoldOptions::new(3)) };
    "nn.ReLU()" => { nn::Relu };
    "nn.Identity()" => { nn::Identity };
    "nn.ReLU6()" => { nn::Relu6 };
    "nn.Hardtanh(0, 2)" => { nn::Hardtanh::new(0.0, 2.0) };
    "nn.Hardsigmoid()" => { nn::Hardsigmoid };
    "nn.LogSigmoid()" => { nn::LogSigmoid };
    "nn.Softsign()" => { nn::Softsign };
    "nn.Tanhshrink()" => { nn::Tanhshrink };
    "nn.Hardshrink()" => { nn::Hardshrink::default() };
    "nn.LeakyReLU(0.2)" => { nn::LeakyRelu::new(0.2) };
    "nn.PReLU()" => { nn::Prelu::new()? };
    "nn.ELU()" => { nn::Elu::default() };
    "nn.SELU()" => { nn::Selu };
    "nn.CELU()" => { nn::Celu::default() };
    "nn.GELU()" => { nn::Gelu::default() };
    "nn.SiLU()" => { nn::Silu };
    "nn.Hardswish()" => { nn::Hardswish };
    "nn.GLU()" => { nn::Glu::default() };
    "nn.Sigmoid()" => { nn::Sigmoid };
    "nn.Softmax(dim=-1)" => { nn::Softmax::default() } "the last dimension, if none is named";
    "nn.LogSoftmax(dim=1)" => { nn::LogSoftmax::new(1) };
}

section! {
    recurrent "torch.nn: recurrent layers"
    "x = torch.ones(5, 2, 4); lines = [torch.ones(3, 4), torch.ones(5, 4)]" {
        let x = Tensor::ones((5, 2, 4))?;
        let lines = [Tensor::ones((3, 4))?, Tensor::ones((5, 4))?];
    }
    "nn.RNN(4, 3, nonlinearity='relu')" => { nn::Rnn::new(4, 3)?.relu() };
    "nn.GRU(4, 3)" => { nn::Gru::new(4, 3)? };
    "nn.LSTM(4, 3)" => { nn::Lstm::new(4, 3)? } "`forward` returns the outputs alone, so that a layer is a module as any other";
    "nn.LSTM(4, 3, num_layers=2, bidirectional=True)" => { nn::Lstm::with_options(4, 3, RecurrentOptions { num_layers: 2, bidirectional: true, ..Default::default() })? };
    "nn.LSTM(4, 3, proj_size=2)" => { nn::Lstm::with_projection(4, 3, 2, RecurrentOptions::default())? };
    "output, (h, c) = nn.LSTM(4, 3)(x)" => { let (output, LstmState { hidden, cell }) = nn::Lstm::new(4, 3)?.forward_with(&x, None)?; };
    "output, h = nn.GRU(4, 3)(x, torch.zeros(1, 2, 3))" => { let (output, h) = nn::Gru::new(4, 3)?.forward_with(&x, Some(&Tensor::zeros((1, 2, 3))?))?; };
    "nn.GRUCell(4, 3)(x[0])" => { nn::GruCell::new(4, 3)?.forward_with(&x.i(0)?, None)? };
    "nn.utils.rnn.pad_sequence(lines, batch_first=True)" => { nn::pad_sequence(&lines, true, 0.0)? };
    "packed = nn.utils.rnn.pack_sequence(lines, enforce_sorted=False)" => { let packed = PackedSequence::from_sequences(&lines)?; } "`PackedSequence::from_padded` for `pack_padded_sequence`; lengths are in any order";
    "nn.GRU(4, 3)(nn.utils.rnn.pack_sequence(lines, enforce_sorted=False))" => { nn::Gru::new(4, 3)?.forward_packed(&PackedSequence::from_sequences(&lines)?, None)? };
    "nn.utils.rnn.pad_packed_sequence(nn.utils.rnn.pack_sequence(lines, enforce_sorted=False))" => { PackedSequence::from_sequences(&lines)?.to_padded(false, 0.0)? };
}

section! {
    modules "torch.nn.Module"
    "model = nn.Sequential(nn.Linear(4, 3), nn.Dropout(0.5)); x = torch.randn(2, 4)" {
        let model = nn::Sequential::new().push(nn::Linear::new(4, 3)?).push(nn::Dropout::new(0.5)?);
        let x = Tensor::randn((2, 4))?;
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("model.safetensors");
    }
    "model(x)" => { model.forward(&x)? };
    "torchvision.models.resnet18(num_classes=10)" => { nn::models::ResNet::resnet18(10)? };
    "for p in model.parameters(): p.requires_grad_(False)" => { model.requires_grad_(false)? };
    "model.train()" => { model.train() };
    "model.eval()" => { model.eval() };
    "model.parameters()" => { model.parameters() };
    "model.named_parameters()" => { model.named_parameters() };
    "model.named_buffers()" => { model.named_buffers() };
    "sum(p.numel() for p in model.parameters())" => { model.num_parameters() };
    "model.zero_grad()" => { model.zero_grad() };
    "model.to(torch.float64)" => { model.to(DType::F64)? } "parameters are new tensors afterwards: make the optimizer after this";
    "model.to('cpu')" => { model.to("cpu")? } "or `model.cpu()?`, `model.cuda()?`";
    "model.half()" => { model.to_dtype(DType::F16)? };
    "model.to(memory_format=torch.channels_last)" => { model.to_memory_format(MemoryFormat::ChannelsLast)? } "make the optimizer after this, as after `to_dtype`";
    "model.state_dict()" => { model.state_dict() };
    "model.load_state_dict(model.state_dict())" => { model.load_state_dict(&model.state_dict())? };
    "model.load_state_dict(model.state_dict(), strict=False)" => { model.load_matching(&model.state_dict())? };
    "torch.save(model.state_dict(), path)" => { model.save(&path)? } "safetensors, which Python reads too; `x.save(path)?` of a tensor";
    "model.load_state_dict(torch.load(path))" => { model.save(&path)?; model.load(&path)? } "the second call";
    "torch.load(path)" => { keyway::io::safetensors::save(&path, &model.state_dict())?; keyway::io::safetensors::load(&path)? } "the second call; pickles are not read";
    "print(model)" => { format!("{:#?}", model.named_parameters()) };
    "model[0].weight" => { model.get_parameter("0.weight")? } "`layer.weight()` of a layer in a field of its own";
    "nn.init.uniform_(model[0].weight, -0.1, 0.1)" => { nn::init::uniform(&[3, 4], 0.1)? } "gives a new tensor";
    "nn.init.normal_(model[0].weight, 0., 0.1)" => { nn::init::normal(&[3, 4], 0.1)? };
    "nn.init.trunc_normal_(model[0].weight, std=0.5)" => { nn::init::trunc_normal(&[3, 4], 0.5)? };
    "nn.init.orthogonal_(model[0].weight)" => { nn::init::orthogonal(&[3, 4], 1.0)? } "needs `keyway-linalg`";
    "nn.init.sparse_(model[0].weight, 0.5)" => { nn::init::sparse(&[3, 4], 0.5, 0.01)? };
    "nn.init.kaiming_uniform_(model[0].weight)" => { nn::init::kaiming_uniform(&[3, 4])? };
    "nn.init.kaiming_normal_(model[0].weight)" => { nn::init::kaiming_normal(&[3, 4])? };
    "nn.init.xavier_uniform_(model[0].weight)" => { nn::init::xavier_uniform(&[3, 4])? };
    "nn.init.zeros_(model[0].weight)" => { { let _off = no_grad(); model.parameters()[0].zero_()?; } };
}

section! {
    functions "torch.nn.functional"
    "x = torch.arange(8.).reshape(2, 4); img = torch.arange(16.).reshape(1, 1, 4, 4); w = torch.ones(1, 1, 3, 3); q = torch.ones(1, 1, 2, 4); at = torch.tensor([1, 0])" {
        let x = Tensor::arange(0.0, 8.0)?.reshape((2, 4))?;
        let img = Tensor::arange(0.0, 16.0)?.reshape((1, 1, 4, 4))?;
        let w = Tensor::ones((1, 1, 3, 3))?;
        let q = Tensor::ones((1, 1, 2, 4))?;
        let at = Tensor::new([1i64, 0])?;
    }
    "F.relu(x)" => { x.relu()? } "or `F::relu(&x)?`, with `use keyway::nn::functional as F;`";
    "torch.relu_(x)" => { x.relu_()? };
    "F.leaky_relu(x, 0.2)" => { x.leaky_relu_with(0.2)? };
    "F.gelu(x)" => { x.gelu()? };
    "F.gelu(x, approximate='tanh')" => { x.gelu_with(Approximate::Tanh)? };
    "F.silu(x)" => { x.silu()? };
    "F.elu(x)" => { x.elu()? };
    "F.softplus(x)" => { x.softplus()? };
    "F.hardswish(x)" => { x.hardswish()? };
    "F.mish(x)" => { x.mish()? };
    "F.glu(x)" => { x.glu()? };
    "F.local_response_norm(img, 2)" => { img.local_response_norm(2)? };
    "F.softshrink(x)" => { x.softshrink()? };
    "torch.sigmoid(x)" => { x.sigmoid()? };
    "F.softmax(x, dim=-1)" => { x.softmax(-1)? };
    "F.log_softmax(x, dim=-1)" => { x.log_softmax(-1)? };
    "F.linear(x, x)" => { x.linear(&x, None)? };
    "F.dropout(x, 0.5, training=False)" => { x.dropout(0.5, false)? };
    "F.embedding(at, x)" => { x.embedding(&at)? } "the table comes first, but in `F::embedding(&at, &x)`";
    "F.embedding_bag(at, x, torch.tensor([0]))" => { x.embedding_bag_with(&at, BagOptions { offsets: Some(&Tensor::new([0i64])?), ..Default::default() })? };
    "F.one_hot(at)" => { at.one_hot(-1)? };
    "F.normalize(x)" => { x.normalize(1)? };
    "F.cosine_similarity(x, x)" => { x.cosine_similarity(&x, 1)? };
    "F.layer_norm(x, (4,))" => { x.layer_norm(4, None, None)? };
    "F.rms_norm(x, (4,))" => { x.rms_norm(4, None)? };
    "F.group_norm(img, 1)" => { img.group_norm(1, None, None)? };
    "F.batch_norm(img, None, None, training=True)" => { img.batch_norm(None, None, None, true, 0.1, 1e-5)? };
    "F.conv2d(img, w, padding=1)" => { img.conv2d_with(&w, None, ConvOptions::default().padding(1))? };
    "F.conv2d(img, w, padding='same')" => { img.conv2d_with(&w, None, ConvOptions::default().padding(Padding::Same))? };
    "F.conv_transpose2d(img, w)" => { img.conv_transpose2d(&w, None)? };
    "F.max_pool2d(img, 2)" => { img.max_pool2d(2)? };
    "F.max_pool2d(img, 2, return_indices=True)" => { img.max_pool2d_with_indices(2)? };
    "F.avg_pool2d(img, 3, stride=1)" => { img.avg_pool2d(AvgPoolOptions::new(3).stride(1))? };
    "F.adaptive_avg_pool2d(img, 2)" => { img.adaptive_avg_pool2d(2)? };
    "F.interpolate(img, scale_factor=2, mode='bilinear')" => { img.interpolate(&InterpolateOptions::scale(2.0).mode(InterpolateMode::Bilinear))? };
    "F.interpolate(img, size=(4, 6))" => { img.interpolate(&InterpolateOptions::sizes(&[4, 6]))? };
    "F.unfold(img, 3)" => { img.im2col(UnfoldOptions::new(3))? } "`unfold` is `torch.Tensor.unfold`";
    "F.fold(F.unfold(img, 3), (4, 4), 3)" => { img.im2col(UnfoldOptions::new(3))?.col2im(4, UnfoldOptions::new(3))? };
    "F.grid_sample(img, torch.zeros(1, 2, 2, 2), align_corners=False)" => { img.grid_sample(&Tensor::zeros((1, 2, 2, 2))?)? };
    "F.affine_grid(torch.tensor([[[1., 0., 0.], [0., 1., 0.]]]), (1, 2, 4, 4), align_corners=False)" => { Tensor::new([[[1.0f32, 0.0, 0.0], [0.0, 1.0, 0.0]]])?.affine_grid((1, 2, 4, 4))? };
    "F.pixel_shuffle(torch.ones(1, 4, 2, 2), 2)" => { Tensor::ones((1, 4, 2, 2))?.pixel_shuffle(2)? };
    "F.scaled_dot_product_attention(q, q, q, is_causal=True)" => { q.scaled_dot_product_attention_with(&q, &q, AttentionOptions::default().is_causal(true))? };
}

section! {
    losses "Losses"
    "x = torch.tensor([[0.5, 0.25], [0.1, 0.9]]); y = torch.tensor([[1., 0.], [0., 1.]]); at = torch.tensor([1, 0])" {
        let x = Tensor::new([[0.5f32, 0.25], [0.1, 0.9]])?;
        let y = Tensor::new([[1.0f32, 0.0], [0.0, 1.0]])?;
        let at = Tensor::new([1i64, 0])?;
    }
    "F.cross_entropy(x, at)" => { x.cross_entropy(&at)? };
    "F.cross_entropy(x, at, label_smoothing=0.1)" => { x.cross_entropy_with(&at, None, -100, 0.1, Reduction::Mean)? };
    "F.cross_entropy(x, at, ignore_index=0)" => { x.cross_entropy_with(&at, None, 0, 0.0, Reduction::Mean)? };
    "F.ctc_loss(x.log_softmax(1), at[:1], (2,), (1,))" => { x.log_softmax(1)?.ctc_loss(&at.narrow(0, 0, 1)?, &[2], &[1])? };
    "F.nll_loss(x, at)" => { x.nll_loss(&at)? };
    "F.mse_loss(x, y)" => { F::mse_loss(&x, &y)? } "another shape is an error; the method `x.mse_loss(&y)` broadcasts";
    "F.mse_loss(x, y, reduction='sum')" => { x.mse_loss_with(&y, Reduction::Sum)? };
    "F.l1_loss(x, y)" => { F::l1_loss(&x, &y)? };
    "F.smooth_l1_loss(x, y)" => { F::smooth_l1_loss(&x, &y)? };
    "F.binary_cross_entropy(x, y)" => { F::binary_cross_entropy(&x, &y)? };
    "F.binary_cross_entropy_with_logits(x, y)" => { F::binary_cross_entropy_with_logits(&x, &y)? };
    "F.kl_div(x, y, reduction='batchmean')" => { x.kl_div_with(&y, false, Reduction::BatchMean)? };
    "F.pairwise_distance(x, y)" => { F::pairwise_distance(&x, &y)? };
    "F.pairwise_distance(x, y, p=1, keepdim=True)" => { x.pairwise_distance_with(&y, 1.0, 1e-6, true)? };
    "F.triplet_margin_loss(x, y, -y)" => { F::triplet_margin_loss(&x, &y, &y.neg()?)? };
    "F.triplet_margin_loss(x, y, -y, margin=2., swap=True)" => { x.triplet_margin_loss_with(&y, &y.neg()?, TripletMarginOptions::default().margin(2.0).swap(true))? };
    "F.cosine_embedding_loss(x, y, 2 * at - 1)" => { F::cosine_embedding_loss(&x, &y, &at.mul(2)?.sub(1)?)? };
    "F.margin_ranking_loss(x, y, 2 * y - 1)" => { F::margin_ranking_loss(&x, &y, &y.mul(2)?.sub(1)?)? };
    "F.hinge_embedding_loss(x, 2 * y - 1)" => { F::hinge_embedding_loss(&x, &y.mul(2)?.sub(1)?)? };
    "F.hinge_embedding_loss(x, 2 * y - 1, margin=0.5)" => { x.hinge_embedding_loss_with(&y.mul(2)?.sub(1)?, 0.5, Reduction::Mean)? };
    "F.soft_margin_loss(x, 2 * y - 1)" => { F::soft_margin_loss(&x, &y.mul(2)?.sub(1)?)? };
    "F.multi_margin_loss(x, at)" => { F::multi_margin_loss(&x, &at)? };
    "F.multi_margin_loss(x, at, p=2)" => { x.multi_margin_loss_with(&at, 2, 1.0, None, Reduction::Mean)? };
    "F.poisson_nll_loss(x, y)" => { F::poisson_nll_loss(&x, &y)? };
    "F.poisson_nll_loss(x, y, log_input=False)" => { x.poisson_nll_loss_with(&y, false, false, 1e-8, Reduction::Mean)? };
    "F.gaussian_nll_loss(x, y, x)" => { F::gaussian_nll_loss(&x, &y, &x)? };
    "F.gaussian_nll_loss(x, y, x, full=True)" => { x.gaussian_nll_loss_with(&y, &x, true, 1e-6, Reduction::Mean)? };
    "nn.CrossEntropyLoss()" => { nn::CrossEntropyLoss::default() };
    "nn.CrossEntropyLoss(label_smoothing=0.1)(x, at)" => { nn::CrossEntropyLoss::new().label_smoothing(0.1).forward(&x, &at)? };
    "nn.CTCLoss(zero_infinity=True)" => { nn::CtcLoss::default().zero_infinity(true) };
    "nn.MSELoss()" => { nn::MseLoss::default() };
    "nn.L1Loss()" => { nn::L1Loss::default() };
    "nn.SmoothL1Loss()" => { nn::SmoothL1Loss::default() };
    "nn.HuberLoss()" => { nn::HuberLoss::default() };
    "nn.NLLLoss()" => { nn::NllLoss::default() };
    "nn.BCELoss()" => { nn::BceLoss::default() };
    "nn.BCEWithLogitsLoss()" => { nn::BceWithLogitsLoss::default() };
    "nn.TripletMarginLoss(swap=True)" => { nn::TripletMarginLoss::new().swap(true) };
    "nn.CosineEmbeddingLoss()" => { nn::CosineEmbeddingLoss::new() };
    "nn.MarginRankingLoss()" => { nn::MarginRankingLoss::new() };
    "nn.HingeEmbeddingLoss()" => { nn::HingeEmbeddingLoss::new() };
    "nn.SoftMarginLoss()" => { nn::SoftMarginLoss::new() };
    "nn.MultiMarginLoss(p=2)" => { nn::MultiMarginLoss::new().p(2) };
    "nn.PoissonNLLLoss()" => { nn::PoissonNllLoss::new() };
    "nn.GaussianNLLLoss()" => { nn::GaussianNllLoss::new() };
    "nn.KLDivLoss(reduction='batchmean')" => { nn::KlDivLoss::new().reduction(Reduction::BatchMean) };
}
