//! The host's services, safely.

use super::connection::{done, host_api, no_host};
use super::element::{Element, Plain};
use super::error::Error;
pub use super::names::{NameKind, intern, name};
use super::tensor::{Origin as TensorOrigin, OwnedTensor, Tensor};
use crate::abi::RawStr;
use crate::abi::codes::{level, matmul_precision, memory_format, setting, tag};
use crate::abi::host::TensorHandle;
use crate::abi::tensor::{RawArg, RawTensor};
use std::any::Any;
use std::ffi::c_void;
use std::ops::{Deref, DerefMut, Range};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr::NonNull;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// The severity of a log line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Something failed.
    Error,
    /// Something is doubtful.
    Warn,
    /// Something happened.
    Info,
    /// Detail for a developer.
    Debug,
}

/// Writes one line to the host's log; to standard error if there is no host.
pub fn log(at: Level, message: &str) {
    let code = match at {
        Level::Error => level::ERROR,
        Level::Warn => level::WARN,
        Level::Info => level::INFO,
        Level::Debug => level::DEBUG,
    };
    match host_api() {
        // SAFETY: the host copies the text before it returns.
        Some(host) => unsafe { (host.log)(code, RawStr::borrow(message)) },
        None => eprintln!("{at:?}: {message}"),
    }
}

/// The current number of threads of [`parallel_for`]; 1 without a host.
pub fn num_threads() -> usize {
    host_api().map_or(1, |host| (host.num_threads)() as usize).max(1)
}

/// The precision of f32 matrix products and convolutions that the program requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum MatmulPrecision {
    /// Computes in f32.
    Highest,
    /// The factors may be rounded to TF32 (10 fraction bits); accumulation is in f32. Alternatively another algorithm may
    /// be used, such as Winograd's with larger tiles, whose errors relative to the largest result are far smaller than
    /// those of such a rounding.
    High,
}

/// The current setting of the program, valid for one call. `Highest` if the host is older than this setting, or has a newer
/// value that is unknown here.
pub fn float32_matmul_precision() -> MatmulPrecision {
    // SAFETY: any number may be asked for.
    let set = host_api().map(|host| unsafe { (host.setting)(setting::FLOAT32_MATMUL_PRECISION) });
    match set {
        Some(matmul_precision::HIGH) => MatmulPrecision::High,
        _ => MatmulPrecision::Highest,
    }
}

/// The data of the trampoline: the body, and the first panic of any chunk.
struct Job<'a> {
    body: &'a (dyn Fn(Range<usize>) + Sync),
    stop: AtomicBool,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

unsafe extern "C" fn trampoline(context: *mut c_void, begin: u64, end: u64) {
    // SAFETY: `context` is the job of the `parallel_for` that waits for this chunk.
    let job = unsafe { &*context.cast::<Job<'_>>() };
    if job.stop.load(Ordering::Relaxed) {
        return;
    }
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| (job.body)(begin as usize..end as usize))) {
        job.stop.store(true, Ordering::Relaxed);
        let mut first = job.panic.lock().unwrap_or_else(|e| e.into_inner());
        first.get_or_insert(panic);
    }
}

/// Runs `body` over chunks of `0..n` on the host's thread pool, each of at least `grain` elements except the last; on this
/// thread if `n <= grain` or there is no host. Returns when all chunks have finished. The bounds of the chunks depend on
/// the number of threads. A panic in `body` resumes in the caller once the other chunks have finished.
#[inline]
pub fn parallel_for<F: Fn(Range<usize>) + Sync>(n: usize, grain: usize, body: F) -> Result<(), Error> {
    if n <= grain.max(1) {
        if n > 0 {
            body(0..n);
        }
        return Ok(());
    }
    in_parallel(n, grain.max(1), &body)
}

// Not generic, so that thousands of kernels share the call to the host's pool.
fn in_parallel(n: usize, grain: usize, body: &(dyn Fn(Range<usize>) + Sync)) -> Result<(), Error> {
    let Some(host) = host_api() else {
        body(0..n);
        return Ok(());
    };
    let job = Job { body, stop: AtomicBool::new(false), panic: Mutex::new(None) };
    // SAFETY: the host calls the trampoline with this context only, and returns after the last piece, so
    // `job` outlives each use; the body is `Sync`, which allows the concurrent calls.
    let status = unsafe {
        (host.parallel_for)(
            n as u64,
            grain as u64,
            Some(trampoline),
            std::ptr::from_ref(&job).cast_mut().cast(),
        )
    };
    if let Some(panic) = job.panic.into_inner().unwrap_or_else(|e| e.into_inner()) {
        resume_unwind(panic);
    }
    done(status)
}

/// Calls `body` with the number and the elements of each chunk of `chunk` elements of `slice` (the last may be shorter), on
/// the host's thread pool. The chunks do not depend on the number of threads.
pub fn parallel_chunks_mut<T: Send, F>(slice: &mut [T], chunk: usize, body: F) -> Result<(), Error>
where
    F: Fn(usize, &mut [T]) + Sync,
{
    let (len, chunk) = (slice.len(), chunk.max(1));
    // SAFETY: the address is used within `slice`, which is borrowed for the whole call.
    let lanes = unsafe { super::view::Lanes::new(slice.as_mut_ptr()) };
    parallel_for(len.div_ceil(chunk), 1, |pieces| {
        for i in pieces {
            let begin = i * chunk;
            // SAFETY: the pieces are disjoint parts of `slice`, each given to one call of the body.
            body(i, unsafe { lanes.slice_mut(begin, chunk.min(len - begin)) });
        }
    })
}

/// Host memory for the time of a kernel, from the host's caching allocator; from Rust's without a host.
#[derive(Debug)]
pub struct Scratch<T> {
    data: NonNull<T>,
    len: usize,
    from: Origin,
}

/// The allocator of scratch memory.
#[derive(Clone, Copy, Debug)]
enum Origin {
    /// Rust's allocator, or no memory at all.
    Rust,
    /// The host, with the owner that it returned.
    Host(*const c_void),
}

// SAFETY: a Scratch owns its elements as a Box does.
unsafe impl<T: Send> Send for Scratch<T> {}
// SAFETY: as for Send.
unsafe impl<T: Sync> Sync for Scratch<T> {}

impl<T: Plain> Scratch<T> {
    const ALIGN: usize = 64;

    /// `len` elements of value 0.
    pub fn zeroed(len: usize) -> Result<Self, Error> {
        // SAFETY: the bytes are written below before anybody reads; all bits 0 is a value of a Plain type.
        let scratch = unsafe { Self::unwritten(len) }?;
        // SAFETY: `unwritten` allocated `len` elements, owned by this value.
        unsafe { scratch.data.write_bytes(0, len) };
        Ok(scratch)
    }

    /// Allocates `len` uninitialised elements.
    ///
    /// # Safety
    /// Each element must be written before it is read; the caller upholds this.
    pub unsafe fn unwritten(len: usize) -> Result<Self, Error> {
        let bytes = len.checked_mul(size_of::<T>()).filter(|b| *b <= isize::MAX as usize - Self::ALIGN);
        let bytes = bytes.ok_or(Error::OutOfMemory { requested: u64::MAX, available: 0 })?;
        if bytes == 0 {
            return Ok(Scratch { data: NonNull::dangling(), len, from: Origin::Rust });
        }
        let Some(host) = host_api() else {
            // SAFETY: the layout is not empty.
            let data = unsafe { std::alloc::alloc(Self::layout(bytes)) };
            let data = NonNull::new(data.cast())
                .ok_or(Error::OutOfMemory { requested: bytes as u64, available: 0 })?;
            return Ok(Scratch { data, len, from: Origin::Rust });
        };
        let (mut data, mut owner) = (std::ptr::null_mut(), std::ptr::null());
        // SAFETY: `data` and `owner` are valid for the writes; device 0 is the CPU.
        let code = unsafe { (host.allocate)(0, 0, bytes as u64, &mut data, &mut owner) };
        if code == crate::abi::codes::status::OUT_OF_MEMORY {
            // The host's message is stored for this thread, which may belong to the pool.
            return Err(Error::OutOfMemory { requested: bytes as u64, available: 0 });
        }
        done(code)?;
        let data = NonNull::new(data.cast()).ok_or_else(|| Error::Failed {
            detail: "the host allocated nothing and said that it did".into(),
        })?;
        Ok(Scratch { data, len, from: Origin::Host(owner) })
    }
}

impl<T> Scratch<T> {
    fn layout(bytes: usize) -> std::alloc::Layout {
        // SAFETY: 64 is a power of two, and `unwritten` checked that `bytes` rounded up fits.
        unsafe { std::alloc::Layout::from_size_align_unchecked(bytes, 64) }
    }
}

impl<T> Deref for Scratch<T> {
    type Target = [T];
    #[inline]
    fn deref(&self) -> &[T] {
        // SAFETY: `data` holds `len` elements, written as `zeroed` or the caller of `unwritten` did.
        unsafe { std::slice::from_raw_parts(self.data.as_ptr(), self.len) }
    }
}

impl<T> DerefMut for Scratch<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `deref`; `&mut self` is exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.data.as_ptr(), self.len) }
    }
}

impl<T> Drop for Scratch<T> {
    fn drop(&mut self) {
        let bytes = self.len * size_of::<T>();
        if bytes == 0 {
            return;
        }
        match (self.from, host_api()) {
            // SAFETY: the host allocated this memory with the same owner and number of bytes.
            (Origin::Host(owner), Some(host)) => unsafe {
                (host.free)(owner, 0, 0, self.data.as_ptr().cast(), bytes as u64)
            },
            // A host is never unregistered.
            (Origin::Host(_), None) => {}
            // SAFETY: this memory is from Rust's allocator with the same layout.
            (Origin::Rust, _) => unsafe {
                std::alloc::dealloc(self.data.as_ptr().cast(), Self::layout(bytes))
            },
        }
    }
}

/// An argument for [`call_op`].
#[derive(Clone, Copy, Debug)]
pub enum Arg<'a> {
    /// An absent optional argument.
    None,
    /// An argument of this call, or a component of one; it must have a handle.
    Tensor(Tensor<'a>),
    /// A tensor that this kernel owns; from then on it is read-only, as the op may retain it.
    Owned(&'a OwnedTensor),
    /// A list of arguments of this call.
    Tensors(&'a [Tensor<'a>]),
    /// An integer.
    Int(i64),
    /// A float.
    Float(f64),
    /// A flag.
    Bool(bool),
    /// A list of integers.
    Ints(&'a [i64]),
    /// A list of floats.
    Floats(&'a [f64]),
    /// A string.
    Str(&'a str),
    /// A dtype code.
    Dtype(u16),
}

impl Tensor<'_> {
    /// An owned tensor that is the same as this one: for [`Call::set_output`](super::Call::set_output), or to retain beyond
    /// the call. An error for an output and for a temporary, which has no handle.
    pub fn retain(&self) -> Result<OwnedTensor, Error> {
        let raw = lendable(self)?;
        let host = host_api().ok_or_else(no_host)?;
        // SAFETY: the tensor is one of the current call, or of a handle that is held.
        let handle = unsafe { (host.tensor_retain)(raw) };
        if handle.is_null() {
            return Err(Error::Failed { detail: "the host gave no handle of a tensor that has one".into() });
        }
        // SAFETY: `tensor_retain` returned an owned handle.
        unsafe { OwnedTensor::from_handle(handle, true) }
    }
}

/// An op's output must not be passed as an argument: the result of the other op could then share its memory.
pub(super) fn lendable(tensor: &Tensor<'_>) -> Result<*const RawTensor, Error> {
    let got = match tensor.origin {
        TensorOrigin::Output => "an output of this call",
        _ if tensor.handle().is_null() => "a temporary without a handle",
        _ => return Ok(std::ptr::from_ref(tensor.raw)),
    };
    Err(Error::InvalidArgument {
        argument: "tensor",
        expected: "an argument of this call".into(),
        got: got.into(),
    })
}

/// An argument as it crosses the boundary, with the list that it points to.
pub(super) struct Lent {
    raw: RawArg,
    _list: Vec<*const RawTensor>,
}

impl Lent {
    pub(super) fn of(arg: &Arg<'_>) -> Result<Lent, Error> {
        let mut pointers = Vec::new();
        let (tag, len, value) = match *arg {
            Arg::None => (tag::NONE, 0, 0),
            Arg::Tensor(t) => (tag::TENSOR, 0, lendable(&t)? as u64),
            Arg::Owned(t) => {
                t.lend();
                (tag::TENSOR, 0, std::ptr::from_ref(t.tensor().raw) as u64)
            }
            Arg::Tensors(list) => {
                pointers = list.iter().map(lendable).collect::<Result<Vec<_>, _>>()?;
                (tag::TENSORS, pointers.len(), pointers.as_ptr() as u64)
            }
            Arg::Int(v) => (tag::INT, 0, v as u64),
            Arg::Float(v) => (tag::FLOAT, 0, v.to_bits()),
            Arg::Bool(v) => (tag::BOOL, 0, v as u64),
            Arg::Ints(v) => (tag::INTS, v.len(), v.as_ptr() as u64),
            Arg::Floats(v) => (tag::FLOATS, v.len(), v.as_ptr() as u64),
            Arg::Str(v) => (tag::STR, v.len(), v.as_ptr() as u64),
            Arg::Dtype(v) => (tag::DTYPE, 0, v as u64),
        };
        Ok(Lent { raw: RawArg { tag, len: len as u32, value }, _list: pointers })
    }

    pub(super) fn raw(&self) -> *const RawArg {
        &self.raw
    }

    /// The raw argument, which is valid as long as `self`.
    pub(super) fn copied(&self) -> RawArg {
        self.raw
    }
}

const MOST_OUTPUTS: usize = 32;

/// Calls the functional form of another op through the whole dispatcher.
pub fn call_op(name: &str, args: &[Arg<'_>]) -> Result<Vec<OwnedTensor>, Error> {
    let host = host_api().ok_or_else(no_host)?;
    let lent = args.iter().map(Lent::of).collect::<Result<Vec<_>, _>>()?;
    let raw: Vec<RawArg> = lent.iter().map(|lent| lent.raw).collect();
    let mut outputs: [TensorHandle; MOST_OUTPUTS] = [std::ptr::null(); MOST_OUTPUTS];
    let mut n = 0u32;
    // SAFETY: the arguments and the lists that they point to live until the call returns, `outputs` has
    // the stated capacity.
    done(unsafe {
        (host.call_op)(
            RawStr::borrow(name),
            raw.len() as u32,
            raw.as_ptr(),
            MOST_OUTPUTS as u32,
            outputs.as_mut_ptr(),
            &mut n,
        )
    })?;
    drop(lent);
    let given = (n as usize).min(MOST_OUTPUTS);
    // SAFETY: the host filled in `n` owned handles. Each is wrapped before the first error is looked at.
    let owned: Vec<_> =
        outputs[..given].iter().map(|&h| unsafe { OwnedTensor::from_handle(h, true) }).collect();
    if n as usize > MOST_OUTPUTS {
        return Err(Error::Unsupported {
            what: format!("{name} with {n} outputs, more than {MOST_OUTPUTS}"),
        });
    }
    owned.into_iter().collect()
}

/// The memory format of a new strided tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format<'a> {
    /// Row-major without gaps.
    Contiguous,
    /// Dimension 1 innermost, the other dimensions in order; for 3, 4 or 5 dimensions.
    ChannelsLast,
    /// These strides, in elements: one for each size, without overlapping elements.
    Strides(&'a [i64]),
}

/// Creates a contiguous strided tensor with unspecified elements.
pub fn new_tensor(dtype: u16, device: u16, index: u16, sizes: &[i64]) -> Result<OwnedTensor, Error> {
    new_tensor_in(dtype, device, index, sizes, Format::Contiguous)
}

/// Creates a strided tensor with unspecified elements.
pub fn new_tensor_in(
    dtype: u16,
    device: u16,
    index: u16,
    sizes: &[i64],
    format: Format<'_>,
) -> Result<OwnedTensor, Error> {
    let host = host_api().ok_or_else(no_host)?;
    let (code, strides) = match format {
        Format::Contiguous => (memory_format::CONTIGUOUS, std::ptr::null()),
        Format::ChannelsLast => (memory_format::CHANNELS_LAST, std::ptr::null()),
        Format::Strides(strides) if strides.len() == sizes.len() => {
            (memory_format::STRIDES, strides.as_ptr())
        }
        Format::Strides(strides) => {
            return Err(Error::InvalidArgument {
                argument: "strides",
                expected: format!("{} strides, one for each size", sizes.len()),
                got: format!("{strides:?}"),
            });
        }
    };
    let mut out = std::ptr::null();
    // SAFETY: `sizes`, `strides` where they are read, and `out` are valid for the call.
    done(unsafe {
        (host.tensor_new)(dtype, device, index, sizes.len() as u32, sizes.as_ptr(), code, strides, &mut out)
    })?;
    // SAFETY: the host returned an owned handle.
    unsafe { OwnedTensor::from_handle(out, false) }
}

/// Creates a contiguous strided tensor of `T` in host memory with unspecified elements.
pub fn new_host_tensor<T: Element>(sizes: &[i64]) -> Result<OwnedTensor, Error> {
    new_tensor(T::dtype(), 0, 0, sizes)
}

/// Creates a tensor of a composite layout from [`Arg::Owned`] and [`Arg::Tensor`]; it shares their memory. For attributes
/// of other types than `int` use [`new_composite_of`](super::new_composite_of).
pub fn new_composite(
    layout: u16,
    dtype: u16,
    sizes: &[i64],
    components: &[Arg<'_>],
    attrs: &[i64],
) -> Result<OwnedTensor, Error> {
    let host = host_api().ok_or_else(no_host)?;
    let (components, _retained) = lent_components(components)?;
    let mut out = std::ptr::null();
    // SAFETY: all arrays have the stated lengths and live until the call returns.
    done(unsafe {
        (host.tensor_composite)(
            layout,
            dtype,
            sizes.len() as u32,
            sizes.as_ptr(),
            components.len() as u32,
            components.as_ptr(),
            attrs.len() as u32,
            attrs.as_ptr(),
            &mut out,
        )
    })?;
    // SAFETY: the host returned an owned handle.
    unsafe { OwnedTensor::from_handle(out, true) }
}

/// The handles of components, with the owned ones that must live until the host has retained the components.
pub(super) fn lent_components(
    components: &[Arg<'_>],
) -> Result<(Vec<TensorHandle>, Vec<OwnedTensor>), Error> {
    let mut retained = Vec::new();
    let component = |c: &Arg<'_>| match c {
        Arg::Owned(t) => Ok(t.lend()),
        Arg::Tensor(t) => {
            let owned = t.retain()?;
            let handle = owned.lend();
            retained.push(owned);
            Ok(handle)
        }
        other => Err(Error::InvalidArgument {
            argument: "components",
            expected: "tensors".into(),
            got: format!("{other:?}"),
        }),
    };
    let handles = components.iter().map(component).collect::<Result<_, _>>()?;
    Ok((handles, retained))
}
