//! candle-nn, gradients, files.

use crate::table::section;
use keyway::autograd;
use keyway::io::safetensors;
use keyway::nn::functional as F;
use keyway::nn::{self, *};
use keyway::optim::{self, *};
use keyway::prelude::*;

section! {
    gradients "Gradients"
    "let dev = Device::Cpu; let w = Var::new(&[1f32, 2.], &dev)?; let y = w.sqr()?.sum_all()?" {
        let w = Tensor::new([1.0f32, 2.0])?.requires_grad_(true)?;
        let y = w.square()?.sum_all()?;
    }
    "Var::new(&[1f32, 2.], &dev)?" => { Tensor::new([1.0f32, 2.0])?.requires_grad_(true)? } "a tensor that requires grad; no type of its own";
    "Var::zeros(3, DType::F32, &dev)?" => { Tensor::zeros(3)?.requires_grad_(true)? };
    "Var::from_tensor(&y)?" => { y.detach().requires_grad_(true)? };
    "w.as_tensor()" => { &w };
    "y.track_op()" => { y.requires_grad() };
    "y.backward()?" => { y.backward()? } "gradients add up in the leaves";
    "y.backward()?.get(&w).cloned()" => { y.backward()?; w.grad() } "no `GradStore`";
    "y.backward()?.remove(&w)" => { w.zero_grad() } "before the next step: `optimizer.zero_grad()`";
    "w.set(&Tensor::zeros(2, DType::F32, &dev)?)?" => { { let _off = no_grad(); w.copy_(&Tensor::zeros(2)?)?; } };
    "w.detach()" => { w.detach() };
    "w.as_detached_tensor()" => { w.detach() };
    "w.apply_op1(Twice)?" => { autograd::apply(Twice, &[w])? } "`Twice` implements `autograd::Function`";
}

/// A function with a derivative of its own.
struct Twice;

impl autograd::Function for Twice {
    fn name(&self) -> &'static str {
        "twice"
    }
    fn forward(&self, _: &mut autograd::Context, inputs: &[Tensor]) -> keyway::Result<Vec<Tensor>> {
        Ok(vec![inputs[0].mul(2)?])
    }
    fn backward(&self, _: &autograd::Context, grads: &[Tensor]) -> keyway::Result<Vec<Option<Tensor>>> {
        Ok(vec![Some(grads[0].mul(2)?)])
    }
}

section! {
    modules "candle_nn: modules"
    "let dev = Device::Cpu; let x = Tensor::ones((2, 4), DType::F32, &dev)?; let mut varmap = VarMap::new(); let vb = VarBuilder::from_varmap(&varmap, DType::F32, &dev); let model = candle_nn::linear(4, 3, vb.pp(\"model\"))?" {
        let x = Tensor::ones((2, 4))?;
        let model = nn::Linear::new(4, 3)?;
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("model.safetensors");
    }
    "candle_nn::linear(4, 3, vb.pp(\"a\"))?" => { nn::Linear::new(4, 3)? } "no `VarBuilder`: a module makes its parameters, from the default generator";
    "candle_nn::linear_no_bias(4, 3, vb.pp(\"b\"))?" => { nn::Linear::without_bias(4, 3)? };
    "candle_nn::Linear::new(Tensor::ones((3, 4), DType::F32, &dev)?, None)" => { nn::Linear::from_tensors(Tensor::ones((3, 4))?, None)? };
    "model.forward(&x)?" => { model.forward(&x)? };
    "x.apply(&model)?" => { model.forward(&x)? };
    "candle_nn::seq().add(candle_nn::linear(4, 3, vb.pp(\"c\"))?).add(candle_nn::Activation::Relu)" => { nn::Sequential::new().add(nn::Linear::new(4, 3)?).add(nn::Relu) };
    "candle_nn::func(|x| x.sqr())" => { nn::Func::new(|x| x.square()) };
    "candle_nn::conv1d(4, 6, 3, Default::default(), vb.pp(\"d1\"))?" => { nn::Conv1d::new(4, 6, 3)? };
    "candle_nn::conv2d(4, 6, 3, Default::default(), vb.pp(\"d\"))?" => { nn::Conv2d::new(4, 6, 3)? };
    "candle_nn::conv2d_no_bias(4, 6, 3, Default::default(), vb.pp(\"e\"))?" => { nn::Conv2d::without_bias(4, 6, 3, ConvOptions::default())? };
    "candle_nn::batch_norm(4, 1e-5, vb.pp(\"f\"))?" => { nn::BatchNorm2d::new(4)? } "`BatchNorm1d` to `3d`; `.eps(1e-5)`";
    "candle_nn::layer_norm(4, 1e-5, vb.pp(\"g\"))?" => { nn::LayerNorm::new(4)? };
    "candle_nn::rms_norm(4, 1e-5, vb.pp(\"h\"))?" => { nn::RmsNorm::new(4)?.eps(1e-5) };
    "candle_nn::group_norm(2, 4, 1e-5, vb.pp(\"i\"))?" => { nn::GroupNorm::new(2, 4)? };
    "candle_nn::embedding(10, 4, vb.pp(\"j\"))?" => { nn::Embedding::new(10, 4)? };
    "candle_nn::prelu(None, vb.pp(\"k\"))?" => { nn::Prelu::new()? };
    "candle_nn::Dropout::new(0.5)" => { nn::Dropout::new(0.5)? } "`train()` and `eval()` switch it, not an argument of `forward`";
    "candle_nn::kv_cache::KvCache::new(2, 16)" => { nn::KvCache::new() } "grows";
    "candle_nn::kv_cache::KvCache::new(2, 16).append(&Tensor::ones((1, 2, 3, 4), DType::F32, &dev)?, &Tensor::ones((1, 2, 3, 4), DType::F32, &dev)?)?" => { nn::KvCache::new().append(&Tensor::ones((1, 2, 3, 4))?, &Tensor::ones((1, 2, 3, 4))?)? } "`MultiheadAttention::forward_cached` does it by itself";
    "candle_nn::Activation::Relu" => { nn::Relu };
    "candle_nn::Activation::Gelu" => { nn::Gelu::default() };
    "candle_nn::Activation::Silu" => { nn::Silu };
    "candle_nn::Activation::LeakyRelu(0.2)" => { nn::LeakyRelu::new(0.2) };
    "vb.get_with_hints((3, 4), \"w\", candle_nn::init::ZERO)?" => { nn::Parameter::new(Tensor::zeros((3, 4))?)? } "`Module::visit` names the slots";
    "varmap.all_vars()" => { model.parameters() };
    "varmap.data().lock().unwrap().clone()" => { model.state_dict() };
    "varmap.save(&path)?" => { model.save(&path)? };
    "varmap.load(&path)?" => { model.save(&path)?; model.load(&path)? } "the second statement";
    "candle_core::safetensors::load(&path, &dev)?" => { safetensors::save(&path, &model.state_dict())?; safetensors::load(&path)? } "the second statement";
    "x.save_safetensors(\"x\", &path)?" => { x.save(&path)? } "under the name `tensor`; `Tensor::load(&path)?` reads it";
}

section! {
    functions "candle_nn: ops, losses, optimizers"
    "let dev = Device::Cpu; let x = Tensor::new(&[[0.5f32, 0.25], [0.1, 0.9]], &dev)?; let y = Tensor::new(&[[1f32, 0.], [0., 1.]], &dev)?; let at = Tensor::new(&[1u32, 0], &dev)?; let w = Var::from_tensor(&x)?; let mut opt = candle_nn::SGD::new(vec![w.clone()], 0.1)?" {
        let x = Tensor::new([[0.5f32, 0.25], [0.1, 0.9]])?;
        let y = Tensor::new([[1.0f32, 0.0], [0.0, 1.0]])?;
        let at = Tensor::new([1i64, 0])?;
        let w = x.copy()?.requires_grad_(true)?;
        let mut opt = optim::Sgd::new(vec![w.clone()], 0.1)?;
    }
    "candle_nn::ops::softmax(&x, D::Minus1)?" => { x.softmax(-1)? };
    "candle_nn::ops::softmax_last_dim(&x)?" => { x.softmax(-1)? };
    "candle_nn::ops::log_softmax(&x, 1)?" => { x.log_softmax(1)? };
    "candle_nn::ops::sigmoid(&x)?" => { x.sigmoid()? };
    "candle_nn::ops::silu(&x)?" => { x.silu()? };
    "candle_nn::ops::leaky_relu(&x, 0.2)?" => { x.leaky_relu_with(0.2)? };
    "candle_nn::ops::dropout(&x, 0.5)?" => { x.dropout(0.5, true)? };
    "candle_nn::ops::layer_norm(&x, &x.get(0)?, &x.get(1)?, 1e-5)?" => { x.layer_norm(2, Some(&x.i(0)?), Some(&x.i(1)?))? };
    "candle_nn::ops::rms_norm(&x, &x.get(0)?, 1e-5)?" => { x.rms_norm_with(2, Some(&x.i(0)?), 1e-5)? };
    "candle_nn::ops::pixel_shuffle(&Tensor::ones((1, 4, 2, 2), DType::F32, &dev)?, 2)?" => { Tensor::ones((1, 4, 2, 2))?.pixel_shuffle(2)? };
    "candle_nn::encoding::one_hot(at.clone(), 2, 1f32, 0f32)?" => { at.one_hot(2)? } "i64";
    "candle_nn::loss::cross_entropy(&x, &at)?" => { x.cross_entropy(&at)? };
    "candle_nn::loss::nll(&x, &at)?" => { x.nll_loss(&at)? };
    "candle_nn::loss::mse(&x, &y)?" => { F::mse_loss(&x, &y)? };
    "candle_nn::loss::huber(&x, &y, 0.5)?" => { x.huber_loss_with(&y, 0.5, nn::Reduction::Mean)? };
    "candle_nn::loss::binary_cross_entropy_with_logit(&x, &y)?" => { F::binary_cross_entropy_with_logits(&x, &y)? };
    "candle_nn::SGD::new(vec![w.clone()], 0.1)?" => { optim::Sgd::new(vec![w], 0.1)? } "`model.parameters()` is such a vector";
    "candle_nn::AdamW::new(vec![w.clone()], Default::default())?" => { optim::AdamW::new(vec![w], AdamWOptions::default())? };
    "candle_nn::AdamW::new_lr(vec![w.clone()], 1e-3)?" => { optim::AdamW::new(vec![w], 1e-3)? };
    "opt.backward_step(&w.sqr()?.sum_all()?)?" => { opt.backward_step(&w.square()?.sum_all()?)? };
    "opt.step(&w.sqr()?.sum_all()?.backward()?)?" => { opt.step()? } "reads the gradients of its parameters";
    "opt.learning_rate()" => { opt.learning_rate() } "of the first group; `learning_rates` of each";
    "opt.set_learning_rate(0.01)" => { opt.set_learning_rate(0.01)? } "of every group";
}
