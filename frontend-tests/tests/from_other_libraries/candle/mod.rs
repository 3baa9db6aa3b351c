//! The table of candle's names.

mod core;
mod nn;

use crate::page::Page;

pub fn page() -> Page {
    Page {
        library: "candle",
        file: "from_candle",
        opening: OPENING,
        sections: vec![
            core::create(),
            core::kinds(),
            core::shape(),
            core::math(),
            core::images(),
            nn::gradients(),
            nn::modules(),
            nn::functions(),
        ],
        absent: ABSENT,
    }
}

const OPENING: &str = r#"
candle's names on the left, ours on the right; every right side is compiled and run by a test. The third column says where the
two differ. What is true of all rows:

- No device and dtype in each call: new tensors are f32 on the CPU, or what `keyway::set_default_dtype` and `set_default_device`
  say; the form `_with` names them, in any order.
- Element-wise ops broadcast, the losses of `nn::functional` do not, and dtypes promote as in PyTorch; `broadcast_add` and other names of candle's compile, and name ours in a
  warning.
- Dimensions are signed numbers, `-1` is the last, for `D::Minus1`, which compiles too. Sizes in a `reshape` too: `-1` for `()`.
- Comparisons give bool, indices are i64.
- Any tensor can require grad; there is no `Var`. `backward` leaves gradients in the leaves, where they add up until
  `zero_grad`; there is no `GradStore`.
- A module makes its own parameters, from the default generator, which `manual_seed` seeds; there is no `VarBuilder`. They are
  saved and loaded by `state_dict`, under PyTorch's names.
- A name with `_` at its end works in place.

```rust
use keyway::nn::{self, Module};
use keyway::optim::{AdamW, Optimizer};
use keyway::prelude::*;

fn main() -> keyway::Result<()> {
    let model = nn::Sequential::new()
        .add(nn::Linear::new(4, 16)?)
        .add(nn::Relu)
        .add(nn::Linear::new(16, 3)?);
    let mut opt = AdamW::new(model.parameters(), 1e-3)?;
    let (x, target) = (Tensor::randn((8, 4))?, Tensor::randint(0, 3, 8)?);
    for _ in 0..3 {
        opt.backward_step(&model.forward(&x)?.cross_entropy(&target)?)?;
    }
    Ok(())
}
```

The rows write `nn`, `optim`, `autograd`, `safetensors` for the modules of this crate, `F` for `keyway::nn::functional`, and leave
out the paths of options.
"#;

const ABSENT: &[(&str, &str)] = &[
    ("Device::new_metal, WebAssembly", "nothing yet; a backend is a library, which anybody can write"),
    ("candle_core::quantized, GGUF, GGML", "nothing"),
    ("candle-onnx", "nothing"),
    ("candle-transformers", "`nn::models::ResNet`; the layers of `nn` for the rest"),
    (
        "candle_nn::rnn: LSTM, GRU",
        "`nn::Lstm`, `nn::Gru`, with sequences in the first dimension unless `batch_first` is set",
    ),
    ("candle_nn::rotary_emb", "`narrow`, `mul`, `cat`: a line of other ops"),
    ("VarBuilder::from_mmaped_safetensors", "make the module, then `model.load(path)?`"),
    ("VarBuilder::pp", "`ModuleVisitor::child` names a module inside another"),
    ("pickle", "`safetensors`, `io::npy`, `io::npz`"),
    ("CustomOp1::cuda_fwd, metal_fwd", "a plugin with a kernel; `autograd::Function` for ops made of others"),
    ("Tensor::slice_set", "`copy_` to a view: `x.i(..)?.copy_(&y)?`"),
];
