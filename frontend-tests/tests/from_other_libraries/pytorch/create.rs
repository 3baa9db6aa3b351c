//! Making tensors, and what they are made of.

use crate::table::section;
use keyway::prelude::*;
use keyway::rng;

section! {
    create "Making tensors"
    "x = torch.arange(6.).reshape(2, 3)" { let x = Tensor::arange(0.0, 6.0)?.reshape((2, 3))?; }
    "torch.tensor([[1., 2.], [3., 4.]])" => { Tensor::new([[1.0f32, 2.0], [3.0, 4.0]])? } "Rust's `1.0` is f64: write `1.0f32`";
    "torch.tensor(7)" => { Tensor::new(7i64)? };
    "torch.as_tensor([1, 2])" => { Tensor::new([1i64, 2])? } "copies";
    "torch.scalar_tensor(2.)" => { Tensor::new(2.0f32)? };
    "torch.tensor([1., 2.], dtype=torch.float16)" => { Tensor::new_with([1.0, 2.0], DType::F16)? };
    "torch.from_numpy(numpy.zeros(3))" => { Tensor::from_vec(vec![0.0; 3], 3)? } "takes the vector, without a copy";
    "torch.frombuffer(bytearray(12), dtype=torch.float32)" => { Tensor::from_owner(vec![0.0f32; 3], 3)? } "read-only; an `Arc<[T]>` or a mapped file too";
    "torch.zeros(2, 3)" => { Tensor::zeros((2, 3))? } "a shape is one argument: a number, tuple, array or slice";
    "torch.zeros(2, 3, dtype=torch.float64, device='cpu')" => { Tensor::zeros_with((2, 3), (DType::F64, "cpu"))? } "dtype, device and memory format in any order";
    "torch.ones(2, 3)" => { Tensor::ones((2, 3))? };
    "torch.empty(2, 3)" => { Tensor::empty((2, 3))? };
    "torch.empty_strided((2, 3), (1, 2))" => { Tensor::empty_strided((2, 3), (1, 2))? };
    "torch.full((2, 3), 7.)" => { Tensor::full((2, 3), 7.0)? };
    "torch.eye(3)" => { Tensor::eye(3)? };
    "torch.arange(5)" => { Tensor::arange(0, 5)? };
    "torch.arange(0., 1., 0.25)" => { Tensor::arange_with(0.0, 1.0, 0.25, ())? };
    "torch.linspace(0, 1, 5)" => { Tensor::linspace(0.0, 1.0, 5)? };
    "torch.logspace(0, 2, 3)" => { Tensor::logspace(0.0, 2.0, 3)? };
    "torch.tril_indices(3, 3)" => { Tensor::tril_indices(3, 3)? };
    "torch.triu_indices(3, 3)" => { Tensor::triu_indices(3, 3)? };
    "torch.zeros_like(x)" => { x.zeros_like()? };
    "torch.ones_like(x, dtype=torch.int64)" => { x.ones_like_with(DType::I64)? };
    "torch.empty_like(x)" => { x.empty_like()? };
    "torch.full_like(x, 7)" => { x.full_like(7)? };
    "x.new_zeros(4)" => { x.new_zeros(4)? };
    "x.new_ones(4)" => { x.new_ones(4)? };
    "x.new_full((4,), 2.)" => { x.new_full(4, 2.0)? };
    "x.new_empty(4)" => { x.new_empty(4)? };
    "torch.tril(x)" => { x.tril()? };
    "torch.tril(x, diagonal=1)" => { x.tril_with(1)? };
    "torch.triu(x)" => { x.triu()? };
    "torch.block_diag(x, x)" => { Tensor::block_diag(&[&x, &x])? };
    "torch.meshgrid(x[0], x[1], indexing='ij')" => { Tensor::meshgrid(&[&x.i(0)?, &x.i(1)?])? };
}

section! {
    random "Random numbers"
    "x = torch.full((2, 3), 0.5)" { let x = Tensor::full((2, 3), 0.5)?; }
    "torch.manual_seed(0)" => { keyway::manual_seed(0) } "the numbers are the same on every device, and not PyTorch's";
    "torch.initial_seed()" => { rng::initial_seed() };
    "torch.Generator()" => { rng::Generator::new(0) } "`rng::with_generator(&generator, || ..)` draws from it";
    "torch.get_rng_state()" => { rng::default_generator(Device::CPU).state() };
    "torch.default_generator" => { rng::default_generator(Device::CPU) };
    "torch.rand(2, 3)" => { Tensor::rand((2, 3))? } "from 0 up to 1";
    "torch.randn(2, 3)" => { Tensor::randn((2, 3))? };
    "torch.randint(0, 10, (2, 3))" => { Tensor::randint(0, 10, (2, 3))? };
    "torch.randperm(5)" => { Tensor::randperm(5)? };
    "torch.rand_like(x)" => { x.rand_like()? };
    "torch.randn_like(x)" => { x.randn_like()? };
    "torch.randint_like(x, 0, 10)" => { x.randint_like(0, 10)? };
    "torch.bernoulli(x)" => { x.bernoulli()? };
    "x.bernoulli_(0.3)" => { x.bernoulli_(0.3)? };
    "torch.poisson(x)" => { x.poisson()? };
    "x.exponential_(2.)" => { x.exponential_(2.0)? };
    "F.gumbel_softmax(x, hard=True)" => { x.gumbel_softmax(1.0, true, -1)? };
    "x.normal_(0., 1.)" => { x.normal_(0.0, 1.0)? };
    "x.uniform_(0., 1.)" => { x.uniform_(0.0, 1.0)? };
    "x.random_(0, 10)" => { x.random_(0, 10)? };
}

section! {
    kinds "dtype, device, memory"
    "x = torch.arange(24.).reshape(1, 2, 3, 4)" { let x = Tensor::arange(0.0, 24.0)?.reshape((1, 2, 3, 4))?; }
    "x.dtype" => { x.dtype() };
    "x.device" => { x.device() };
    "x.layout" => { x.layout() };
    "torch.float32" => { DType::F32 };
    "torch.float64" => { DType::F64 };
    "torch.float16" => { DType::F16 };
    "torch.bfloat16" => { DType::BF16 };
    "torch.int64" => { DType::I64 };
    "torch.int32" => { DType::I32 };
    "torch.uint8" => { DType::U8 };
    "torch.bool" => { DType::BOOL };
    "torch.complex64" => { DType::C64 };
    "torch.complex128" => { DType::C128 };
    "x.is_complex()" => { x.is_complex() };
    "torch.float32.is_floating_point" => { DType::F32.is_float() };
    "x.is_floating_point()" => { x.dtype().is_float() };
    "x.element_size()" => { x.dtype().size() };
    "torch.can_cast(torch.int32, torch.float16)" => { DType::I32.can_cast(DType::F16) };
    "torch.promote_types(torch.int32, torch.float16)" => { DType::I32.promote(DType::F16) };
    "x.to(torch.float64)" => { x.to(DType::F64)? };
    "x.type(torch.float64)" => { x.to_dtype(DType::F64)? };
    "x.float()" => { x.to_dtype(DType::F32)? };
    "x.double()" => { x.to_dtype(DType::F64)? };
    "x.half()" => { x.to_dtype(DType::F16)? };
    "x.bfloat16()" => { x.to_dtype(DType::BF16)? };
    "x.long()" => { x.to_dtype(DType::I64)? };
    "x.int()" => { x.to_dtype(DType::I32)? };
    "x.bool()" => { x.to_dtype(DType::BOOL)? };
    "x.type_as(x)" => { x.to(x.dtype())? };
    "torch.set_default_dtype(torch.float32)" => { keyway::set_default_dtype(DType::F32)? };
    "torch.set_num_threads(1)" => { keyway::set_num_threads(1) } "0: as many as there are cores; results have the same bits at any number";
    "torch.get_num_threads()" => { keyway::num_threads() };
    "torch.get_default_dtype()" => { keyway::default_dtype() };
    "torch.set_default_device('cpu')" => { keyway::set_default_device("cpu")? };
    "torch.get_default_device()" => { keyway::default_device() };
    "torch.set_float32_matmul_precision('high')" => { keyway::set_float32_matmul_precision(keyway::MatmulPrecision::High) } "for products and convolutions";
    "torch.get_float32_matmul_precision()" => { keyway::float32_matmul_precision() };
    "torch.device('cuda', 0)" => { Device::new("cuda", 0)? } "a name; `Device::cuda(0)?` also checks that the device is there, `Device::cuda_if_available(0)` gives the CPU where it is not";
    "torch.device('cuda:0')" => { Device::parse("cuda:0")? };
    "x.to('cpu')" => { x.to("cpu")? };
    "x.cpu()" => { x.cpu()? };
    "x.cuda()" => { x.cuda() } "an error where there is no such device";
    "torch.cuda.is_available()" => { keyway::device::is_available("cuda") };
    "x.to('cpu', non_blocking=True)" => { x.to_device_non_blocking(Device::CPU)? };
    "torch.cuda.device_count()" => { keyway::device::count("cuda") };
    "torch.cpu.synchronize()" => { keyway::device::synchronize(Device::CPU)? } "any device; so `torch.cuda.synchronize()`";
    "x.is_pinned()" => { x.is_pinned() };
    "x.clone()" => { x.copy()? } "`clone` shares the tensor, as Rust's `Arc` does";
    "x.clone(memory_format=torch.channels_last)" => { x.copy_with(MemoryFormat::ChannelsLast)? };
    "x.contiguous()" => { x.contiguous()? };
    "x.contiguous(memory_format=torch.channels_last)" => { x.contiguous_in(MemoryFormat::ChannelsLast)? };
    "x.to(memory_format=torch.channels_last)" => { x.to(MemoryFormat::ChannelsLast)? };
    "x.is_contiguous()" => { x.is_contiguous() };
    "x.is_contiguous(memory_format=torch.channels_last)" => { x.is_contiguous_in(MemoryFormat::ChannelsLast) };
    "torch.preserve_format" => { MemoryFormat::Preserve };
    "x.stride()" => { x.strides() };
    "x.storage_offset()" => { x.storage_offset() };
    "x.data_ptr()" => { x.data_ptr() };
    "x.untyped_storage().nbytes()" => { x.storage()?.bytes() };
    "x._version" => { x.version() };
    "x.is_set_to(x)" => { x.ptr_eq(&x) } "the same tensor; `shares_storage` for views";
    "x[0, 0, 0, 0].item()" => { x.i((0, 0, 0, 0))?.item::<f32>()? } "the type is checked against the dtype";
    "x[0, 0].tolist()" => { x.i((0, 0))?.to_vec2::<f32>()? } "`to_vec` is flat; `to_vec1` to `to_vec3` keep dimensions";
    "x.flatten().tolist()" => { x.to_vec::<f32>()? };
    "x.numpy().tobytes()" => { x.to_bytes()? };
    "print(x)" => { println!("{x}") };
    "repr(x)" => { format!("{x:?}") } "the values, as `{x}`; `{x:#?}` is one line: dtype, shape, device";
}

section! {
    memory "libtorch: memory by hand"
    "x = torch.zeros(2, 3)" { let mut x = Tensor::zeros((2, 3))?; }
    "x.accessor<float, 2>()[0][1]" => { x.accessor::<f32, 2>()?.get([0, 1]) } "copies elements; `accessor_ref` lends them";
    "x.accessor<float, 2>()[0][1] = 5" => { let mut a = x.accessor_mut::<f32, 2>()?; a[[0, 1]] = 5.0; } "for a tensor that nobody else holds";
    "x.data_ptr<float>()" => { x.as_slice_mut::<f32>()? } "a slice";
    "x.const_data_ptr<float>()" => { x.as_slice::<f32>()? };
    "torch::from_blob(data, {2, 3})" => { Tensor::from_blob(keyway::storage::Blob::from_owner_mut(vec![0.0f32; 6]), (2, 3), DType::F32)? } "the `Blob` owns the memory; `Blob::from_raw_parts` takes an address and a deleter";
    "torch::from_blob(data, {2, 3}, {1, 2})" => { Tensor::from_blob_strided(keyway::storage::Blob::from_owner_mut(vec![0.0f32; 6]), (2, 3), (1, 2), DType::F32)? };
    "x.sizes()" => { x.shape() };
    "x.storage().use_count()" => { x.storage()?.strong_count() } "tensors; a view is not counted beside its base";
    "x.resize_(5)" => { x.resize_(5)? } "this handle over the same storage if that is large enough; other handles keep their shapes";
    "x.set_(x)" => { let source = x.clone(); x.set_(&source)? } "this handle alone";
    "x.is_alias_of(x)" => { x.shares_storage(&x) };
}
