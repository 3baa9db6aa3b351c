//! The table of PyTorch's names.

mod composed;
mod create;
mod fft;
mod linalg;
mod math;
mod nn;
mod shape;
mod train;

use crate::page::Page;

pub fn page() -> Page {
    Page {
        library: "PyTorch",
        file: "from_pytorch",
        opening: OPENING,
        sections: vec![
            create::create(),
            create::kinds(),
            create::random(),
            shape::shape(),
            shape::index(),
            math::pointwise(),
            math::reduce(),
            math::linalg(),
            linalg::linalg(),
            fft::fourier(),
            composed::named(),
            composed::composed(),
            nn::layers(),
            nn::recurrent(),
            nn::modules(),
            nn::functions(),
            nn::losses(),
            train::optimizers(),
            train::gradients(),
            train::sparse(),
            train::around(),
            create::memory(),
        ],
        absent: ABSENT,
    }
}

const OPENING: &str = r#"
PyTorch's names on the left, ours on the right; every right side is compiled and run by a test. The third column says where the
two differ. What is true of all rows:

- Every call gives a `Result`, operators too: `(&a + &b)?`.
- A shape is one argument: a number, a tuple, an array or a slice. So is a list of dimensions; `..` is all of them.
- There are no keyword arguments. The short form leaves out what is nearly always the same; a second form has it: `sum(1)` and
  `sum_keepdim(1)`, `elu()` and `elu_with(0.5)`, `zeros(3)` and `zeros_with(3, DType::F16)`. Long lists are structs with
  defaults: `ConvOptions::default().padding(1)`, `SgdOptions::default().lr(0.1).momentum(0.9)`; the learning rate
  alone stands for an optimiser's options: `Sgd::new(parameters, 0.1)`.
- `Tensor::new` keeps Rust's types: `1.0f32` is f32, `1.0` f64, `1` i32. Other new tensors are f32, or what
  `keyway::set_default_dtype` says; `full`, `arange` and `randint` of integers are i64. dtypes promote as in PyTorch, products and
  layers too, which PyTorch refuses: f32 weights on an f64 input give f64. Integers divided give f32, whatever the default is.
- A name with `_` at its end works in place, one with `_out` writes to a tensor; `ops::by_name::call_out` does for ops that have no
  such method.
- `a * b + c` is `((a * b)? + c)?`: an operator takes tensors and numbers, and gives a `Result`.
- `x.clone()` is the same tensor; `x.copy()?` copies its values.

```rust
use keyway::nn::{self, Module};
use keyway::optim::{Optimizer, Sgd};
use keyway::prelude::*;

fn main() -> keyway::Result<()> {
    let model = nn::Sequential::new()
        .push(nn::Linear::new(4, 16)?)
        .push(nn::Relu)
        .push(nn::Linear::new(16, 3)?);
    let mut opt = Sgd::new(model.parameters(), 0.1)?;
    let (x, target) = (Tensor::randn((8, 4))?, Tensor::randint(0, 3, 8)?);
    for _ in 0..3 {
        opt.zero_grad();
        let loss = model.forward(&x)?.cross_entropy(&target)?;
        loss.backward()?;
        opt.step()?;
    }
    Ok(())
}
```

`class Net(nn.Module)` is a struct that implements `Module`; `visit` names its layers for `parameters()` and `state_dict()`:

```rust
use keyway::nn::{Linear, ModuleVisitor, Module};
use keyway::prelude::*;

struct Residual {
    inner: Linear,
}

impl Module for Residual {
    fn forward(&self, input: &Tensor) -> keyway::Result<Tensor> {
        self.inner.forward(input)?.add(input)
    }

    fn visit<'a>(&'a self, visitor: &mut ModuleVisitor<'a>) {
        visitor.child("inner", &self.inner);
    }
}

fn main() -> keyway::Result<()> {
    let model = Residual { inner: Linear::new(3, 3)? };
    assert!(model.state_dict().keys().eq(["inner.bias", "inner.weight"]));
    println!("{}", model.forward(&Tensor::randn((2, 3))?)?);
    Ok(())
}
```

Errors of a program's own are made by `keyway::Error::other("no such column")`; those of files become one by `?`. Optimisers take what
is trained: `model.parameters().into_iter().filter(|p| p.requires_grad()).collect()` where a part is frozen. Options stand beside
what takes them: `Reduction`, `ConvOptions`, `InterpolateOptions` in `nn`, `BackwardOptions` in `autograd`, `Reduce` in `tensor`; files
of NumPy are read and written by `io::npy` and `io::npz`; schedules step by the
trait `optim::lr_scheduler::LrScheduler`. Many other names of PyTorch's compile too, `x.numel()`, `x.float()`, and name ours in a warning.

The rows write `nn`, `optim`, `autograd`, `data`, `profiler`, `rng` for the modules of this crate, `F` for
`keyway::nn::functional`, and leave out the paths of options.
"#;

const ABSENT: &[(&str, &str)] = &[
    (
        "torch.compile",
        "nothing is compiled; `keyway::graph::capture` replays a step, `conv2d_act` and `ResNet::fuse` join ops",
    ),
    ("torch.jit, torch.export, torch.onnx", "nothing"),
    (
        "torch.linalg.ldl_factor, tensorsolve",
        "a crate for it, such as `faer`, on `x.to_vec()?`, and `Tensor::from_vec`; no gradients",
    ),
    ("torch.cov(fweights, aweights)", "`cov` of rows repeated by `repeat_interleave`; the formula"),
    ("complex numbers in modules and sparse tensors", "two tensors, real and imaginary part"),
    (
        "nn.Transformer, nn.TransformerEncoderLayer",
        "a module of your own of `nn::MultiheadAttention`, `nn::LayerNorm`, `nn::Linear`",
    ),
    ("nn.Bilinear", "`Tensor::einsum`"),
    ("nn.utils.weight_norm, spectral_norm", "the formula in your module's `forward`"),
    ("module.register_forward_hook", "a module that holds the other; `profiler::trace()` to look"),
    ("copy.deepcopy(model)", "make it again, then `load_state_dict(&model.state_dict())`"),
    (
        "torch.optim.LBFGS, NAdam, RAdam, Adadelta, Adamax, Rprop, ASGD; amsgrad",
        "`optim::Optimizer` is a trait: write it with tensor ops under `no_grad`",
    ),
    (
        "lr_scheduler.CyclicLR, ConstantLR, MultiplicativeLR",
        "`lr_scheduler::LambdaLr`: any formula of the epoch",
    ),
    (
        "torch.func: vmap, jacrev, jvp; forward mode",
        "a batch dimension; `autograd::grad` for each output; second derivatives by `create_graph`",
    ),
    ("torch.distributed, nn.DataParallel", "nothing; one process, one device at a time"),
    ("torch.quantization", "`examples/interposers` simulates it; no integer kernels"),
    (
        "torch.load of a .pt file",
        "in Python `safetensors.torch.save_file(model.state_dict(), path)`, then `safetensors::load`",
    ),
    (
        "DataLoader(num_workers, collate_fn), WeightedRandomSampler",
        "`Dataset::batch` makes a whole batch of the samples, on the caller's thread; a thread of yours can be ahead of it",
    ),
    (
        "torch.utils.dlpack",
        "`Tensor::from_blob` with the other's deleter; `storage` and `strides` to hand out",
    ),
    ("torch.utils.tensorboard, torchvision.transforms", "a crate for it"),
    (
        "Conv2d(padding_mode=\"reflect\"), nn.ReflectionPad2d",
        "`x.pad_with` with a `PadMode` in your module's `forward`, before a layer without padding",
    ),
    ("F.interpolate(antialias=True)", "`InterpolateMode::Area`, to make images smaller"),
    ("F.interpolate, F.max_pool2d, F.conv2d of integers", "`x.to_dtype(DType::F32)?` first"),
    ("torch.set_printoptions", "`to_vec` and `format!`"),
    ("x[::-1]", "`x.flip(0)?`; a step is 1 or more"),
];
