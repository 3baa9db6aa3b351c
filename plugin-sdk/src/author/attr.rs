//! Attributes of composite tensors of any type.

use super::connection::{done, host_api, no_host};
use super::error::Error;
use super::extent::entries;
use super::host::{Arg, Lent, lent_components};
use super::tensor::{OwnedTensor, Tensor};
use crate::abi::codes::tag;
use crate::abi::tensor::RawArg;

/// As [`new_composite`](super::new_composite), with attributes of any type that the layout declares: [`Arg::Int`],
/// [`Arg::Float`], [`Arg::Bool`], [`Arg::Str`], [`Arg::Ints`], [`Arg::Floats`]. Fails with `UNSUPPORTED` if the host is
/// older than these types.
///
/// ```no_run
/// use keyway_sdk::Error;
/// use keyway_sdk::author::{Arg, OwnedTensor, new_composite_of};
///
/// fn quantized(layout: u16, dtype: u16, values: &OwnedTensor) -> Result<OwnedTensor, Error> {
///     let attrs = [Arg::Float(0.1), Arg::Ints(&[16, 16])];
///     new_composite_of(layout, dtype, &[64, 64], &[Arg::Owned(values)], &attrs)
/// }
/// ```
pub fn new_composite_of(
    layout: u16,
    dtype: u16,
    sizes: &[i64],
    components: &[Arg<'_>],
    attrs: &[Arg<'_>],
) -> Result<OwnedTensor, Error> {
    let host = host_api().ok_or_else(no_host)?;
    let (components, _retained) = lent_components(components)?;
    let attrs = attrs.iter().map(Lent::of).collect::<Result<Vec<_>, _>>()?;
    let raw: Vec<RawArg> = attrs.iter().map(Lent::copied).collect();
    let mut out = std::ptr::null();
    // SAFETY: all arrays have the stated lengths and live until the call returns, as do the lists that attributes point to.
    done(unsafe {
        (host.tensor_composite_of)(
            layout,
            dtype,
            sizes.len() as u32,
            sizes.as_ptr(),
            components.len() as u32,
            components.as_ptr(),
            raw.len() as u32,
            raw.as_ptr(),
            &mut out,
        )
    })?;
    // SAFETY: the host returned an owned handle.
    unsafe { OwnedTensor::from_handle(out, true) }
}

fn wrong(index: usize, expected: &str, got: &Arg<'_>) -> Error {
    Error::InvalidArgument {
        argument: "attribute",
        expected: format!("attribute {index} to be {expected}"),
        got: format!("{got:?}"),
    }
}

impl<'a> Tensor<'a> {
    /// Attribute `index` of a composite tensor in its declared type. For layouts with int attributes only, see
    /// [`Tensor::attrs`].
    pub fn attr(&self, index: usize) -> Result<Arg<'a>, Error> {
        let host = host_api().ok_or_else(no_host)?;
        let mut raw = RawArg { tag: tag::NONE, len: 0, value: 0 };
        // SAFETY: the tensor is one of the current call, or of a handle that is held; `raw` is valid for the write.
        done(unsafe { (host.tensor_attr)(self.raw, index as u32, &mut raw) })?;
        let len = raw.len as usize;
        Ok(match raw.tag {
            tag::INT => Arg::Int(raw.value as i64),
            tag::FLOAT => Arg::Float(f64::from_bits(raw.value)),
            tag::BOOL => Arg::Bool(raw.value != 0),
            // SAFETY: the host passes `len` integers, valid as long as the tensor is.
            tag::INTS => Arg::Ints(unsafe { entries(raw.value as *const i64, len) }),
            // SAFETY: the host passes `len` floats, valid as long as the tensor is.
            tag::FLOATS => Arg::Floats(unsafe { entries(raw.value as *const f64, len) }),
            tag::STR => {
                // SAFETY: the host passes `len` bytes, valid as long as the tensor is.
                let bytes: &'a [u8] = unsafe { entries(raw.value as *const u8, len) };
                Arg::Str(std::str::from_utf8(bytes).unwrap_or_default())
            }
            _ => Arg::None,
        })
    }

    /// Attribute `index`, an integer.
    pub fn attr_int(&self, index: usize) -> Result<i64, Error> {
        match self.attr(index)? {
            Arg::Int(value) => Ok(value),
            other => Err(wrong(index, "an int", &other)),
        }
    }

    /// Attribute `index`, a float.
    pub fn attr_float(&self, index: usize) -> Result<f64, Error> {
        match self.attr(index)? {
            Arg::Float(value) => Ok(value),
            other => Err(wrong(index, "a float", &other)),
        }
    }

    /// Attribute `index`, a flag.
    pub fn attr_bool(&self, index: usize) -> Result<bool, Error> {
        match self.attr(index)? {
            Arg::Bool(value) => Ok(value),
            other => Err(wrong(index, "a bool", &other)),
        }
    }

    /// Attribute `index`, a list of integers.
    pub fn attr_ints(&self, index: usize) -> Result<&'a [i64], Error> {
        match self.attr(index)? {
            Arg::Ints(values) => Ok(values),
            other => Err(wrong(index, "an int list", &other)),
        }
    }

    /// Attribute `index`, a list of floats.
    pub fn attr_floats(&self, index: usize) -> Result<&'a [f64], Error> {
        match self.attr(index)? {
            Arg::Floats(values) => Ok(values),
            other => Err(wrong(index, "a float list", &other)),
        }
    }

    /// Attribute `index`, a text.
    pub fn attr_str(&self, index: usize) -> Result<&'a str, Error> {
        match self.attr(index)? {
            Arg::Str(text) => Ok(text),
            other => Err(wrong(index, "a string", &other)),
        }
    }
}
