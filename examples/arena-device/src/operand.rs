//! Tensor arguments of kernels, and the loops over them.

use crate::arena::{self, Arena, Cell};
use keyway_sdk::author::strided::{Reduction, Strided};
use keyway_sdk::author::{Call, Error, Tensor, dtype_name};
use std::marker::PhantomData;

/// Location of an operand's elements.
enum Place<T> {
    /// In the arena, at this offset.
    Arena(usize),
    /// By value: a scalar argument for a tensor parameter, or a 0-d tensor in host memory.
    Value(T),
}

/// A tensor of a call; its memory is known to be allocated.
pub struct Operand<'a, T> {
    place: Place<T>,
    /// The sizes.
    pub sizes: &'a [i64],
    /// The strides, in elements.
    pub strides: &'a [i64],
    of: PhantomData<T>,
}

impl<'a, T: Cell> Operand<'a, T> {
    /// Checks a tensor of this dtype.
    pub fn new(memory: &Arena, tensor: &Tensor<'a>) -> Result<Self, Error> {
        let (sizes, strides) = (tensor.sizes(), tensor.strides());
        if tensor.is_host_scalar() {
            let value = tensor.view::<T>()?.get(&vec![0; tensor.ndim()]);
            return Ok(Operand {
                place: Place::Value(value.unwrap_or_default()),
                sizes,
                strides,
                of: PhantomData,
            });
        }
        if tensor.dtype() != T::dtype() {
            return Err(Error::Unsupported {
                what: format!("a tensor of {} among those of {}", dtype_name(tensor.dtype()), T::NAME),
            });
        }
        let elements = match Strided::new(sizes, [strides])?.numel() {
            0 => 0,
            _ => {
                sizes.iter().zip(strides).map(|(size, stride)| (size - 1) * stride).sum::<i64>() as usize + 1
            }
        };
        let at = memory.locate(tensor.data_ptr().addr(), elements * size_of::<T>())?;
        Ok(Operand { place: Place::Arena(at), sizes, strides, of: PhantomData })
    }

    /// Tensor argument `index` of a call.
    pub fn argument(memory: &Arena, call: &Call<'a>, index: usize) -> Result<Self, Error> {
        Operand::new(memory, &call.tensor(index)?)
    }

    /// The output of a call.
    pub fn output(memory: &Arena, call: &Call<'a>) -> Result<Self, Error> {
        Operand::new(memory, &call.output(0)?)
    }

    /// The element at an offset within the sizes and strides.
    #[inline]
    pub fn get(&self, memory: &Arena, offset: usize) -> T {
        match self.place {
            Place::Arena(at) => memory.read(at + offset * size_of::<T>()),
            Place::Value(value) => value,
        }
    }

    /// Overwrites the element at an offset within the sizes and strides.
    #[inline]
    pub fn set(&self, memory: &mut Arena, offset: usize, value: T) {
        if let Place::Arena(at) = self.place {
            memory.write(at + offset * size_of::<T>(), value);
        }
    }
}

/// Computes each element of the output from that of argument `index`.
pub fn map1<A: Cell, T: Cell>(call: &Call<'_>, index: usize, f: impl Fn(A) -> T) -> Result<(), Error> {
    let mut memory = arena::lock();
    let (out, a) = (Operand::output(&memory, call)?, Operand::argument(&memory, call, index)?);
    for [o, i] in Strided::new(out.sizes, [out.strides, a.strides])?.offsets() {
        let value = f(a.get(&memory, i));
        out.set(&mut memory, o, value);
    }
    Ok(())
}

/// Computes each element of the output from those of arguments 0 and 1, which the host has broadcast to its shape.
pub fn map2<A: Cell, T: Cell>(call: &Call<'_>, f: impl Fn(A, A) -> T) -> Result<(), Error> {
    let mut memory = arena::lock();
    let out = Operand::output(&memory, call)?;
    let (a, b) = (Operand::argument(&memory, call, 0)?, Operand::argument(&memory, call, 1)?);
    for [o, i, j] in Strided::new(out.sizes, [out.strides, a.strides, b.strides])?.offsets() {
        let value = f(a.get(&memory, i), b.get(&memory, j));
        out.set(&mut memory, o, value);
    }
    Ok(())
}

/// Computes each element of the output from those of arguments 0 to 2.
pub fn map3<A: Cell, B: Cell>(call: &Call<'_>, f: impl Fn(A, B, B) -> B) -> Result<(), Error> {
    let mut memory = arena::lock();
    let (out, a) = (Operand::output(&memory, call)?, Operand::<A>::argument(&memory, call, 0)?);
    let (b, c) = (Operand::<B>::argument(&memory, call, 1)?, Operand::<B>::argument(&memory, call, 2)?);
    for [o, i, j, k] in Strided::new(out.sizes, [out.strides, a.strides, b.strides, c.strides])?.offsets() {
        let value = f(a.get(&memory, i), b.get(&memory, j), c.get(&memory, k));
        out.set(&mut memory, o, value);
    }
    Ok(())
}

/// Reduces argument 0 over `dims`; `f` receives the elements with their indices.
pub fn reduce<A: Cell, T: Cell>(
    call: &Call<'_>,
    dims: Option<&[i64]>,
    f: impl Fn(&mut dyn Iterator<Item = (usize, A)>) -> T,
) -> Result<(), Error> {
    let mut memory = arena::lock();
    let (out, a) = (Operand::output(&memory, call)?, Operand::<A>::argument(&memory, call, 0)?);
    let over = Reduction::new(a.sizes, a.strides, dims, call.bool(2)?, out.strides)?;
    for [o, start] in over.outputs.offsets() {
        let terms = over.terms.offsets().map(|[number, term]| (number, a.get(&memory, start + term)));
        let value = f(&mut { terms });
        out.set(&mut memory, o, value);
    }
    Ok(())
}
