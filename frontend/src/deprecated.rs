//! Names that users of PyTorch, candle and burn type by habit; each has a deprecation note with the name used here. The note is
//! more helpful than the compiler's error, which proposes the nearest name instead: `sqrt` for candle's `sqr`, `ge` for `get`.

use crate::DType;
use crate::error::{Result, called};
use crate::nn::Module;
use crate::tensor::{Int, IntoDims, IntoShape, Item, MemoryFormat, NdArray, Tensor};
use keyway_dispatcher::op::Arg;
use std::path::Path;

impl Tensor {
    /// candle's [`Tensor::square`].
    #[doc(hidden)]
    #[deprecated(note = "the square is `square`; `sqrt` is the root")]
    #[allow(clippy::missing_errors_doc)]
    pub fn sqr(&self) -> Result<Tensor> {
        self.square()
    }

    /// candle's element of the first dimension, [`Tensor::select`].
    #[doc(hidden)]
    #[deprecated(note = "an element of the first dimension is `select(0, i)` or `i(i)`; `ge` compares")]
    #[allow(clippy::missing_errors_doc)]
    pub fn get(&self, i: usize) -> Result<Tensor> {
        called("get", &["self", "i"], || self.select(0, i))
    }

    /// PyTorch's conversion to i64, [`Tensor::to_dtype`].
    #[doc(hidden)]
    #[deprecated(note = "the conversion is `to_dtype(DType::I64)`; `log` is the logarithm")]
    #[allow(clippy::missing_errors_doc)]
    pub fn long(&self) -> Result<Tensor> {
        self.to_dtype(DType::I64)
    }
}

/// Declares methods that call another one and are deprecated in its favour.
macro_rules! pointers {
    ($($(#[$library:meta])* $name:ident $(<$generic:ident: $bound:path>)? ($($arg:ident: $type:ty),*) -> $result:ty
        => $note:literal, |$x:ident| $call:expr;)*) => {
        impl Tensor {$(
            $(#[$library])*
            #[doc(hidden)]
            #[deprecated(note = $note)]
            #[allow(clippy::missing_errors_doc, clippy::wrong_self_convention)]
            pub fn $name $(<$generic: $bound>)? (&self $(, $arg: $type)*) -> $result {
                let $x = self;
                $call
            }
        )*}
    };
}

pointers! {
    /// PyTorch's number of elements.
    numel() -> usize => "the number of elements is `elem_count()`", |x| x.elem_count();
    /// PyTorch's number of elements.
    nelement() -> usize => "the number of elements is `elem_count()`", |x| x.elem_count();
    /// PyTorch's number of dimensions.
    ndim() -> usize => "the number of dimensions is `rank()`", |x| x.rank();
    /// PyTorch's shape.
    size() -> &[usize] => "the sizes are `shape()`, one of them is `dim(d)`", |x| x.shape();
    /// PyTorch's and candle's strides.
    stride() -> &[usize] => "the strides are `strides()`", |x| x.strides();
    /// PyTorch's size of an element in bytes.
    element_size() -> usize => "the bytes of an element are `dtype().size()`", |x| x.dtype().size();
    /// PyTorch's test of the dtype.
    is_floating_point() -> bool => "write `dtype().is_float()`", |x| x.dtype().is_float();
    /// PyTorch's detached tensor.
    data() -> Tensor => "the detached tensor is `detach()`", |x| x.detach();
    /// libtorch's and burn's switch of the gradient.
    set_requires_grad(on: bool) -> Result<Tensor> => "write `requires_grad_(on)`", |x| x.requires_grad_(on);
    /// burn's switch of the gradient.
    require_grad() -> Result<Tensor> => "write `requires_grad_(true)`", |x| x.requires_grad_(true);

    /// candle's element of a tensor that has one.
    to_scalar<T: Item>() -> Result<T> => "the one element is `item()`", |x| x.item();
    /// candle's element of a tensor without dimensions.
    to_vec0<T: Item>() -> Result<T> => "the one element is `item()`", |x| x.item();
    /// burn's element of a tensor that has one.
    into_scalar<T: Item>() -> Result<T> => "the one element is `item()`", |x| x.item();

    /// PyTorch's conversion to f32.
    float() -> Result<Tensor> => "the conversion is `to_dtype(DType::F32)`; `floor` rounds", |x| x.to_dtype(DType::F32);
    /// PyTorch's conversion to f64.
    double() -> Result<Tensor> => "the conversion is `to_dtype(DType::F64)`", |x| x.to_dtype(DType::F64);
    /// PyTorch's conversion to f16.
    half() -> Result<Tensor> => "the conversion is `to_dtype(DType::F16)`", |x| x.to_dtype(DType::F16);
    /// PyTorch's conversion to bf16.
    bfloat16() -> Result<Tensor> => "the conversion is `to_dtype(DType::BF16)`", |x| x.to_dtype(DType::BF16);
    /// PyTorch's conversion to i32.
    int() -> Result<Tensor> => "the conversion is `to_dtype(DType::I32)`", |x| x.to_dtype(DType::I32);
    /// PyTorch's conversion to truth values.
    bool() -> Result<Tensor> => "the conversion is `to_dtype(DType::BOOL)`", |x| x.to_dtype(DType::BOOL);
    /// PyTorch's conversion to the dtype of another tensor.
    type_as(other: &Tensor) -> Result<Tensor> => "write `to(other.dtype())`", |x| x.to(other.dtype());

    /// candle's power with a number.
    powf(exponent: f64) -> Result<Tensor> => "powers are `pow(exponent)`", |x| x.pow(exponent);
    /// burn's power with a number.
    powf_scalar(exponent: f64) -> Result<Tensor> => "powers are `pow(exponent)`", |x| x.pow(exponent);
    /// burn's power with an integer.
    powi_scalar(exponent: i64) -> Result<Tensor> => "powers are `pow(exponent)`", |x| x.pow(exponent);
    /// candle's and burn's reciprocal.
    recip() -> Result<Tensor> => "write `reciprocal()`", |x| x.reciprocal();
    /// candle's multiply and add with scalars.
    affine(factor: f64, addend: f64) -> Result<Tensor> => "write `mul(factor)?.add(addend)`", |x| x.mul(factor)?.add(addend);
    /// candle's exact gelu.
    gelu_erf() -> Result<Tensor> => "write `gelu()`", |x| x.gelu();
    /// candle's logsumexp.
    log_sum_exp(dims: impl IntoDims) -> Result<Tensor> => "write `logsumexp(dims)`", |x| x.logsumexp(dims);

    /// candle's sum that broadcasts.
    broadcast_add(other: &Tensor) -> Result<Tensor> => "`add` broadcasts", |x| x.add(other);
    /// candle's difference that broadcasts.
    broadcast_sub(other: &Tensor) -> Result<Tensor> => "`sub` broadcasts", |x| x.sub(other);
    /// candle's product that broadcasts.
    broadcast_mul(other: &Tensor) -> Result<Tensor> => "`mul` broadcasts", |x| x.mul(other);
    /// candle's quotient that broadcasts.
    broadcast_div(other: &Tensor) -> Result<Tensor> => "`div` broadcasts", |x| x.div(other);
    /// candle's power that broadcasts.
    broadcast_pow(other: &Tensor) -> Result<Tensor> => "`pow` broadcasts", |x| x.pow(other);
    /// candle's larger elements, broadcast.
    broadcast_maximum(other: &Tensor) -> Result<Tensor> => "`maximum` broadcasts", |x| x.maximum(other);
    /// candle's smaller elements, broadcast.
    broadcast_minimum(other: &Tensor) -> Result<Tensor> => "`minimum` broadcasts", |x| x.minimum(other);
    /// candle's comparison that broadcasts.
    broadcast_eq(other: &Tensor) -> Result<Tensor> => "`eq` broadcasts", |x| x.eq(other);
    /// candle's comparison that broadcasts.
    broadcast_ne(other: &Tensor) -> Result<Tensor> => "`ne` broadcasts", |x| x.ne(other);
    /// candle's comparison that broadcasts.
    broadcast_lt(other: &Tensor) -> Result<Tensor> => "`lt` broadcasts", |x| x.lt(other);
    /// candle's comparison that broadcasts.
    broadcast_le(other: &Tensor) -> Result<Tensor> => "`le` broadcasts", |x| x.le(other);
    /// candle's comparison that broadcasts.
    broadcast_gt(other: &Tensor) -> Result<Tensor> => "`gt` broadcasts", |x| x.gt(other);
    /// candle's comparison that broadcasts.
    broadcast_ge(other: &Tensor) -> Result<Tensor> => "`ge` broadcasts", |x| x.ge(other);
    /// candle's product of matrices that broadcasts.
    broadcast_matmul(other: &Tensor) -> Result<Tensor> => "`matmul` broadcasts", |x| x.matmul(other);
    /// candle's expansion.
    broadcast_as(shape: impl IntoShape) -> Result<Tensor> => "write `expand(shape)`", |x| x.expand(shape);

    /// burn's sum with a number.
    add_scalar(number: impl Into<Arg<'static>>) -> Result<Tensor> => "`add` takes numbers", |x| {
        let number: Arg<'_> = number.into();
        x.add(number)
    };
    /// burn's difference with a number.
    sub_scalar(number: impl Into<Arg<'static>>) -> Result<Tensor> => "`sub` takes numbers", |x| {
        let number: Arg<'_> = number.into();
        x.sub(number)
    };
    /// burn's product with a number.
    mul_scalar(number: impl Into<Arg<'static>>) -> Result<Tensor> => "`mul` takes numbers", |x| {
        let number: Arg<'_> = number.into();
        x.mul(number)
    };
    /// burn's quotient with a number.
    div_scalar(number: impl Into<Arg<'static>>) -> Result<Tensor> => "`div` takes numbers", |x| {
        let number: Arg<'_> = number.into();
        x.div(number)
    };
    /// burn's sum over one dimension, which is retained with size 1.
    sum_dim(dim: impl Int) -> Result<Tensor> => "write `sum_keepdim(dim)`, or `sum(dim)` without it", |x| x.sum_keepdim(dim);
    /// burn's mean over one dimension, which is retained with size 1.
    mean_dim(dim: impl Int) -> Result<Tensor> => "write `mean_keepdim(dim)`, or `mean(dim)` without it", |x| x.mean_keepdim(dim);
    /// burn's transposition.
    swap_dims(dim0: impl Int, dim1: impl Int) -> Result<Tensor> => "write `transpose(dim0, dim1)`", |x| x.transpose(dim0, dim1);
    /// candle's element of any dimension.
    get_on_dim(dim: impl Int, i: impl Int) -> Result<Tensor> => "write `select(dim, i)`", |x| x.select(dim, i);
    /// burn's elements set to a number where a mask is true.
    mask_fill(mask: &Tensor, value: f64) -> Result<Tensor> => "write `masked_fill(mask, value)`", |x| x.masked_fill(mask, value);
    /// burn's dimension of size 1.
    unsqueeze_dim(dim: impl Int) -> Result<Tensor> => "write `unsqueeze(dim)`", |x| x.unsqueeze(dim);
    /// A comparison's name in PyTorch or burn.
    greater(other: &Tensor) -> Result<Tensor> => "write `gt(other)`", |x| x.gt(other);
    /// A comparison's name in PyTorch or burn.
    greater_equal(other: &Tensor) -> Result<Tensor> => "write `ge(other)`", |x| x.ge(other);
    /// A comparison's name in PyTorch or burn.
    less(other: &Tensor) -> Result<Tensor> => "write `lt(other)`", |x| x.lt(other);
    /// A comparison's name in PyTorch or burn.
    less_equal(other: &Tensor) -> Result<Tensor> => "write `le(other)`", |x| x.le(other);
    /// A comparison's name in PyTorch or burn.
    lower(other: &Tensor) -> Result<Tensor> => "write `lt(other)`", |x| x.lt(other);
    /// A comparison's name in PyTorch or burn.
    lower_equal(other: &Tensor) -> Result<Tensor> => "write `le(other)`", |x| x.le(other);
    /// A comparison's name in PyTorch or burn.
    not_equal(other: &Tensor) -> Result<Tensor> => "write `ne(other)`", |x| x.ne(other);

    /// `contiguous` with a memory format, by the naming scheme `…_with`.
    contiguous_with(format: MemoryFormat) -> Result<Tensor> => "write `contiguous_in(format)`, or `to(format)`", |x| x.contiguous_in(format);
    /// `is_contiguous` with a memory format, by the naming scheme `…_with`.
    is_contiguous_with(format: MemoryFormat) -> bool => "write `is_contiguous_in(format)`", |x| x.is_contiguous_in(format);
    /// candle's call of a module.
    apply<M: Module>(module: &M) -> Result<Tensor> => "write `module.forward(x)`", |x| module.forward(x);
    /// candle's file of one tensor.
    save_safetensors(name: &str, path: impl AsRef<Path>) -> Result<()> => "write `safetensors::save` of a `StateDict`, or `save(path)`", |x| {
        crate::io::safetensors::save(path, &[(name.to_string(), x.clone())].into())
    };
    /// candle's file of NumPy.
    write_npy(path: impl AsRef<Path>) -> Result<()> => "write `io::npy::save(path, &x)`, or `save(path)`", |x| crate::io::npy::save(path, x);
}

/// Declares functions that call another one and are deprecated in its favour.
macro_rules! constructors {
    ($($(#[$library:meta])* $name:ident($($arg:ident: $type:ty),*) => $note:literal, $call:expr;)*) => {
        impl Tensor {$(
            $(#[$library])*
            #[doc(hidden)]
            #[deprecated(note = $note)]
            #[allow(clippy::missing_errors_doc, clippy::self_named_constructors)]
            pub fn $name($($arg: $type),*) -> Result<Tensor> {
                $call
            }
        )*}
    };
}

constructors! {
    /// PyTorch's sparse tensor of coordinates.
    sparse_coo_tensor(indices: &Tensor, values: &Tensor, shape: impl IntoShape) => "write `Tensor::sparse_coo`",
        Tensor::sparse_coo(indices, values, shape);
    /// PyTorch's sparse tensor of compressed rows.
    sparse_csr_tensor(crow_indices: &Tensor, col_indices: &Tensor, values: &Tensor, shape: impl IntoShape)
        => "write `Tensor::sparse_csr`", Tensor::sparse_csr(crow_indices, col_indices, values, shape);
    /// PyTorch's joined tensors.
    concat(tensors: &[&Tensor], dim: impl Int) => "write `Tensor::cat`", Tensor::cat(tensors, dim);
    /// PyTorch's tensor from values.
    tensor(array: impl NdArray) => "write `Tensor::new`", Tensor::new(array);
    /// burn's tensor from values.
    from_floats(array: impl NdArray) => "write `Tensor::new`", Tensor::new(array);
    /// candle's range with a step.
    arange_step(start: impl Into<Arg<'static>>, end: impl Into<Arg<'static>>, step: impl Into<Arg<'static>>)
        => "write `Tensor::arange_with(start, end, step, ())`", Tensor::arange_with(start, end, step, ());
    /// candle's file of NumPy.
    read_npy(path: impl AsRef<Path>) => "write `io::npy::load(path)`, or `Tensor::load(path)`", crate::io::npy::load(path);
}
