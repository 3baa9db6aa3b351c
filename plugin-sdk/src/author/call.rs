//! One call of a kernel: typed, checked access to arguments and outputs.

use super::connection::{host_api, no_host};
use super::element::{Element, ElementType, Plain};
use super::error::Error;
use super::extent::entries;
use super::host::Format;
use super::tensor::{Origin, OwnedTensor, Tensor};
use super::view::{Reads, View, ViewMut, Writes};
use crate::abi::codes::tag;
use crate::abi::tensor::{RawArg, RawCall, RawTensor};
use std::cell::Cell;
use std::ffi::c_void;

/// A function of a plugin that processes a call.
pub type CallFn = fn(&Call<'_>) -> Result<(), Error>;

/// One call of a kernel. Every accessor checks the index, the tag and the dtype and returns [`Error::InvalidArgument`] if
/// they are wrong; none allocates unless it fails.
///
/// While a kernel runs, ops on other threads do not write the integers and bools among its arguments, so values that it has
/// checked stay valid until it returns. Floats may change concurrently, if a program has data races: a kernel that reads
/// them twice must stay in bounds for any values. Element-wise kernels have no such protection.
#[derive(Debug)]
pub struct Call<'a> {
    raw: &'a RawCall,
    args: &'a [RawArg],
    outputs: &'a [*const RawTensor],
    /// Bit `i` is set once output `i` was returned for writing.
    taken: Cell<u64>,
}

/// The name of a tag for messages.
fn tag_name(code: u32) -> &'static str {
    const NAMES: [&str; 10] = [
        "nothing",
        "a tensor",
        "a tensor list",
        "an int",
        "a float",
        "a bool",
        "an int list",
        "a float list",
        "a string",
        "a dtype",
    ];
    NAMES.get(code as usize).copied().unwrap_or("an argument of a newer ABI")
}

const ARGUMENT: [&str; 16] =
    ["#0", "#1", "#2", "#3", "#4", "#5", "#6", "#7", "#8", "#9", "#10", "#11", "#12", "#13", "#14", "#15"];

#[cold]
#[inline(never)]
fn wrong(index: usize, expected: &str, got: Option<&RawArg>, n_args: usize) -> Error {
    Error::InvalidArgument {
        argument: ARGUMENT.get(index).copied().unwrap_or("#16 or later"),
        expected: expected.into(),
        got: match got {
            Some(arg) => tag_name(arg.tag).into(),
            None => format!("a call of {n_args} arguments"),
        },
    }
}

#[cold]
#[inline(never)]
fn wrong_output(index: usize, expected: &str, got: &str) -> Error {
    Error::InvalidArgument {
        argument: "output",
        expected: format!("output {index} to be {expected}"),
        got: got.into(),
    }
}

impl<'a> Call<'a> {
    /// Wraps a raw call.
    ///
    /// # Safety
    /// `raw` and everything it points to must satisfy the contract of [`RawCall`] for `'a`, arguments unchanged except
    /// through this call's outputs, outputs disjoint from each other. There must be one `Call` for a raw call at a
    /// time. The host upholds the first, [`run_kernel`](crate::__private::run_kernel) the second.
    #[inline]
    pub unsafe fn new(raw: &'a RawCall) -> Self {
        Call {
            raw,
            // SAFETY: `args` has `n_args` entries, per the caller.
            args: unsafe { entries(raw.args, raw.n_args as usize) },
            // SAFETY: `outputs` has `n_outputs` entries, per the caller.
            outputs: unsafe { entries(raw.outputs, raw.n_outputs as usize) },
            taken: Cell::new(0),
        }
    }

    /// The same call without writable outputs.
    pub(crate) fn sealed(self) -> Self {
        self.taken.set(u64::MAX);
        self
    }

    /// The raw form.
    #[inline]
    pub fn raw(&self) -> &'a RawCall {
        self.raw
    }

    /// The number of arguments.
    #[inline]
    pub fn n_args(&self) -> usize {
        self.args.len()
    }

    /// The number of outputs.
    #[inline]
    pub fn n_outputs(&self) -> usize {
        self.outputs.len()
    }

    /// The stream of the call, as returned by the device's `stream_create`; null is the default.
    #[inline]
    pub fn stream(&self) -> *mut c_void {
        self.raw.stream
    }

    #[inline(always)]
    fn tagged(&self, index: usize, tag: u32, expected: &'static str) -> Result<&'a RawArg, Error> {
        match self.args.get(index) {
            Some(arg) if arg.tag == tag => Ok(arg),
            other => Err(wrong(index, expected, other, self.args.len())),
        }
    }

    /// # Safety
    /// `raw` must be a valid tensor of this call; the host upholds this.
    #[inline(always)]
    unsafe fn argument(&self, raw: *const RawTensor) -> Tensor<'a> {
        // SAFETY: the caller guarantees a valid tensor.
        Tensor { raw: unsafe { &*raw }, origin: Origin::Argument(self.outputs) }
    }

    /// Argument `index`, a tensor.
    #[inline(always)]
    pub fn tensor(&self, index: usize) -> Result<Tensor<'a>, Error> {
        let arg = self.tagged(index, tag::TENSOR, "a tensor")?;
        // SAFETY: the value of a TENSOR argument is a valid tensor; the host upholds this.
        Ok(unsafe { self.argument(arg.value as *const RawTensor) })
    }

    /// Argument `index`, an optional tensor.
    #[inline]
    pub fn optional_tensor(&self, index: usize) -> Result<Option<Tensor<'a>>, Error> {
        if self.is_none(index)? { Ok(None) } else { self.tensor(index).map(Some) }
    }

    /// Argument `index`, a list of tensors.
    #[inline]
    pub fn tensors(&self, index: usize) -> Result<Tensors<'a>, Error> {
        let arg = self.tagged(index, tag::TENSORS, "a tensor list")?;
        // SAFETY: the value of a TENSORS argument is `len` tensors; the host upholds this.
        let all = unsafe { entries(arg.value as *const *const RawTensor, arg.len as usize) };
        Ok(Tensors { all, outputs: self.outputs })
    }

    /// Argument `index`, an integer.
    #[inline]
    pub fn int(&self, index: usize) -> Result<i64, Error> {
        Ok(self.tagged(index, tag::INT, "an int")?.value as i64)
    }

    /// Argument `index`, a float.
    #[inline]
    pub fn float(&self, index: usize) -> Result<f64, Error> {
        Ok(f64::from_bits(self.tagged(index, tag::FLOAT, "a float")?.value))
    }

    /// Argument `index`, a flag.
    #[inline]
    pub fn bool(&self, index: usize) -> Result<bool, Error> {
        Ok(self.tagged(index, tag::BOOL, "a bool")?.value != 0)
    }

    /// Argument `index`, a list of integers.
    #[inline]
    pub fn ints(&self, index: usize) -> Result<&'a [i64], Error> {
        let arg = self.tagged(index, tag::INTS, "an int list")?;
        // SAFETY: the value of an INTS argument is `len` integers; the host upholds this.
        Ok(unsafe { entries(arg.value as *const i64, arg.len as usize) })
    }

    /// Argument `index`, a list of floats.
    #[inline]
    pub fn floats(&self, index: usize) -> Result<&'a [f64], Error> {
        let arg = self.tagged(index, tag::FLOATS, "a float list")?;
        // SAFETY: the value of a FLOATS argument is `len` floats; the host upholds this.
        Ok(unsafe { entries(arg.value as *const f64, arg.len as usize) })
    }

    /// Argument `index`, a string.
    #[inline]
    pub fn str(&self, index: usize) -> Result<&'a str, Error> {
        let arg = self.tagged(index, tag::STR, "a string")?;
        // SAFETY: the value of a STR argument is `len` bytes; the host upholds this.
        let bytes: &'a [u8] = unsafe { entries(arg.value as *const u8, arg.len as usize) };
        std::str::from_utf8(bytes).map_err(|_| wrong(index, "a UTF-8 string", Some(arg), self.args.len()))
    }

    /// Argument `index`, a dtype code.
    #[inline]
    pub fn dtype(&self, index: usize) -> Result<u16, Error> {
        Ok(self.tagged(index, tag::DTYPE, "a dtype")?.value as u16)
    }

    /// The tag of argument `index`, see [`codes::tag`](crate::abi::codes::tag).
    pub(crate) fn tag(&self, index: usize) -> Result<u32, Error> {
        match self.args.get(index) {
            Some(arg) => Ok(arg.tag),
            None => Err(wrong(index, "any argument", None, self.args.len())),
        }
    }

    /// Whether argument `index` is absent.
    #[inline]
    pub fn is_none(&self, index: usize) -> Result<bool, Error> {
        match self.args.get(index) {
            Some(arg) => Ok(arg.tag == tag::NONE),
            None => Err(wrong(index, "any argument", None, self.args.len())),
        }
    }

    /// Argument `index`, an int, float or bool, converted to `T`.
    #[inline]
    pub fn scalar<T: Element>(&self, index: usize) -> Result<T, Error> {
        match self.args.get(index) {
            Some(&RawArg { tag: tag::INT, value, .. }) => Ok(T::from_i64(value as i64)),
            Some(&RawArg { tag: tag::FLOAT, value, .. }) => Ok(T::from_f64(f64::from_bits(value))),
            Some(&RawArg { tag: tag::BOOL, value, .. }) => Ok(T::from_i64((value != 0) as i64)),
            other => Err(wrong(index, "a number", other, self.args.len())),
        }
    }

    /// Argument `index`, a tensor of `T`, as a read-only view.
    #[inline(always)]
    pub fn view<T: Element>(&self, index: usize) -> Result<View<'a, T>, Error> {
        let tensor = self.argument_of(index, ElementType::of::<T>())?;
        Ok(View::new(tensor, Reads::UnlessWritten(self.outputs)))
    }

    // Not inlined, since nearly every kernel calls it.
    #[inline(never)]
    fn argument_of(&self, index: usize, element: ElementType) -> Result<Tensor<'a>, Error> {
        self.tensor_as(index, element)
    }

    /// Argument `index`, a strided tensor of elements of this type in memory that the host can read: the checks of
    /// [`Call::view`], for code that has the type as a value.
    #[inline(always)]
    pub fn tensor_as(&self, index: usize, element: ElementType) -> Result<Tensor<'a>, Error> {
        let tensor = self.tensor(index)?;
        tensor.check(element)?;
        Ok(tensor)
    }

    /// A view of a tensor that another op returned during this call, whose slices are checked against this call's outputs.
    pub fn view_of<'b, T: Element>(&'b self, tensor: &'b OwnedTensor) -> Result<View<'b, T>, Error> {
        let tensor = tensor.tensor();
        tensor.check(ElementType::of::<T>())?;
        Ok(View::new(tensor, Reads::UnlessWritten(self.outputs)))
    }

    /// Output `index`: its metadata and address. Elements are reached through [`Call::out`].
    #[inline(always)]
    pub fn output(&self, index: usize) -> Result<Tensor<'a>, Error> {
        match self.outputs.get(index) {
            // SAFETY: a non-null output is a valid tensor; the host upholds this.
            Some(&raw) if !raw.is_null() => Ok(Tensor { raw: unsafe { &*raw }, origin: Origin::Output }),
            Some(_) => Err(wrong_output(index, "allocated by the host", "none; this kernel allocates")),
            None => Err(wrong_output(index, "there", "a call with fewer outputs")),
        }
    }

    /// Output `index`, a tensor of `T`, for writing. Each output is returned once; see [`ViewMut::reborrow`]. Outputs
    /// beyond the 64th are an error.
    #[inline(always)]
    pub fn out<T: Element>(&self, index: usize) -> Result<ViewMut<'a, T>, Error> {
        Ok(ViewMut::new(self.output_of(index, ElementType::of::<T>())?, Writes::UnlessRead(self.args)))
    }

    /// As [`Call::out`], for the bits of elements whose dtype may differ from `T` if it has the same size: see
    /// [`Tensor::view_bits`].
    pub fn out_bits<T: Plain>(&self, index: usize) -> Result<ViewMut<'a, T>, Error> {
        let element = ElementType::bits_of::<T>(self.output(index)?.dtype());
        Ok(ViewMut::new(self.output_of(index, element)?, Writes::UnlessRead(self.args)))
    }

    // Not inlined, since nearly every kernel calls it.
    #[inline(never)]
    fn output_of(&self, index: usize, element: ElementType) -> Result<Tensor<'a>, Error> {
        self.output_as(index, element)
    }

    /// Output `index`, a strided tensor with elements of this type in memory that the host can write; each output is
    /// returned once. Has the checks of [`Call::out`], for code with the type as a value.
    #[inline(always)]
    pub fn output_as(&self, index: usize, element: ElementType) -> Result<Tensor<'a>, Error> {
        let tensor = self.output(index)?;
        tensor.check(element)?;
        let bit = 1u64.checked_shl(index as u32).unwrap_or(0);
        if bit == 0 || self.taken.get() & bit != 0 {
            return Err(wrong_output(index, "taken once, and below 64", "a second request for it"));
        }
        self.taken.set(self.taken.get() | bit);
        Ok(tensor)
    }

    /// Sets `tensor` as output `index`; for a kernel that allocates its outputs.
    pub fn set_output(&self, index: usize, tensor: OwnedTensor) -> Result<(), Error> {
        let host = host_api().ok_or_else(no_host)?;
        // SAFETY: `context` is this call's; the handle is owned and given up here.
        match unsafe { (host.set_output)(self.raw.context, index as u32, tensor.into_handle()) } {
            0 => Ok(()),
            status => Err(Error::Host { status }),
        }
    }

    /// The device of the first tensor argument or output, as (number, index); the CPU if there is none.
    pub fn device(&self) -> (u16, u16) {
        let first = self.args.iter().enumerate().find_map(|(i, arg)| match arg.tag {
            tag::TENSOR => self.tensor(i).ok().filter(|t| !t.is_host_scalar()),
            tag::TENSORS => self.tensors(i).ok().and_then(|l| l.get(0)),
            _ => None,
        });
        let any = first.or_else(|| self.output(0).ok());
        any.map_or((0, 0), |t| (t.device(), t.device_index()))
    }

    /// Creates a contiguous tensor of `T` on this call's device with unspecified elements.
    pub fn new_tensor<T: Element>(&self, sizes: &[i64]) -> Result<OwnedTensor, Error> {
        self.new_tensor_in::<T>(sizes, Format::Contiguous)
    }

    /// Creates a tensor of `T` on this call's device with unspecified elements.
    pub fn new_tensor_in<T: Element>(&self, sizes: &[i64], format: Format<'_>) -> Result<OwnedTensor, Error> {
        let (device, index) = self.device();
        super::host::new_tensor_in(T::dtype(), device, index, sizes, format)
    }
}

/// A list of tensors.
#[derive(Clone, Copy, Debug)]
pub struct Tensors<'a> {
    all: &'a [*const RawTensor],
    outputs: &'a [*const RawTensor],
}

impl<'a> Tensors<'a> {
    /// The number of tensors.
    #[inline]
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether the list is empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Tensor `index` of the list.
    #[inline]
    pub fn get(&self, index: usize) -> Option<Tensor<'a>> {
        let origin = Origin::Argument(self.outputs);
        // SAFETY: each entry is a valid tensor of the call; the host upholds this.
        self.all.get(index).map(|&raw| Tensor { raw: unsafe { &*raw }, origin })
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Tensor<'a>> + use<'a> {
        let origin = Origin::Argument(self.outputs);
        // SAFETY: as in `get`.
        self.all.iter().map(move |&raw| Tensor { raw: unsafe { &*raw }, origin })
    }
}
