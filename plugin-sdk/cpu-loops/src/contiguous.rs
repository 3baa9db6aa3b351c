//! Tensors as slices in row-major order: borrowed if possible, otherwise copied.

use crate::cost::Cost;
use crate::fast_path::apply;
use crate::inner_loop::InnerLoop;
use crate::operand::Operand;
use keyway_sdk::abi::codes::tensor_flag;
use keyway_sdk::abi::tensor::RawTensor;
use keyway_sdk::author::{Error, Plain, Scratch, View, ViewMut};
use std::ops::{Deref, DerefMut};

/// Elements in row-major order: borrowed from the tensor, or a copy.
#[derive(Debug)]
pub struct Contiguous<'a, T: Plain>(InKind<'a, T>);

#[derive(Debug)]
enum InKind<'a, T: Plain> {
    Borrowed(&'a [T]),
    Copied(Scratch<T>),
}

impl<T: Plain> Contiguous<'_, T> {
    /// Whether the elements had to be copied.
    pub fn is_copy(&self) -> bool {
        matches!(self.0, InKind::Copied(_))
    }
}

impl<T: Plain> Deref for Contiguous<'_, T> {
    type Target = [T];
    #[inline]
    fn deref(&self) -> &[T] {
        match &self.0 {
            InKind::Borrowed(slice) => slice,
            InKind::Copied(scratch) => scratch,
        }
    }
}

/// Extension methods of a view.
pub trait ViewExt<'a, T: Plain> {
    /// The elements as a slice in row-major order: borrowed if [`View::as_slice`] returns them, otherwise copied.
    fn contiguous(&self) -> Result<Contiguous<'a, T>, Error>;
}

impl<'a, T: Plain> ViewExt<'a, T> for View<'a, T> {
    fn contiguous(&self) -> Result<Contiguous<'a, T>, Error> {
        if let Some(slice) = self.as_slice() {
            return Ok(Contiguous(InKind::Borrowed(slice)));
        }
        // SAFETY: `gather` writes each element and reads none; if it fails, the copy is dropped unread.
        let mut copy = unsafe { Scratch::unwritten(self.numel()) }?;
        gather(*self, &mut copy)?;
        Ok(Contiguous(InKind::Copied(copy)))
    }
}

/// An output's elements in row-major order: the memory itself, or a buffer written back on drop.
#[derive(Debug)]
pub struct ContiguousOut<'a, T: Plain>(OutKind<'a, T>);

#[derive(Debug)]
enum OutKind<'a, T: Plain> {
    Direct(&'a mut [T]),
    Staged { buffer: Scratch<T>, view: ViewMut<'a, T> },
}

/// See [`CallExt::contiguous_out`](crate::CallExt::contiguous_out).
pub(crate) fn contiguous_out<T: Plain>(out: ViewMut<'_, T>) -> Result<ContiguousOut<'_, T>, Error> {
    match out.into_mut_slice() {
        Ok(slice) => Ok(ContiguousOut(OutKind::Direct(slice))),
        Err(view) => {
            let buffer = Scratch::zeroed(view.numel())?;
            Ok(ContiguousOut(OutKind::Staged { buffer, view }))
        }
    }
}

impl<T: Plain> Deref for ContiguousOut<'_, T> {
    type Target = [T];
    #[inline]
    fn deref(&self) -> &[T] {
        match &self.0 {
            OutKind::Direct(slice) => slice,
            OutKind::Staged { buffer, .. } => buffer,
        }
    }
}

impl<T: Plain> DerefMut for ContiguousOut<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        match &mut self.0 {
            OutKind::Direct(slice) => slice,
            OutKind::Staged { buffer, .. } => buffer,
        }
    }
}

impl<T: Plain> Drop for ContiguousOut<'_, T> {
    fn drop(&mut self) {
        if let OutKind::Staged { buffer, view } = &mut self.0 {
            // The only error is a different shape, and the buffer was allocated for this view.
            let _ = scatter(buffer, view.reborrow());
        }
    }
}

/// Calls `then` with a row-major tensor at `data`, with the sizes of `like`.
fn with_dense<T: Plain, R>(
    like: &RawTensor,
    sizes: &[i64],
    data: *mut T,
    then: impl FnOnce(Operand<'_>) -> R,
) -> R {
    let mut strides = vec![1; sizes.len()];
    for d in (1..sizes.len()).rev() {
        strides[d - 1] = strides[d] * sizes[d].max(1);
    }
    let flags = like.flags | tensor_flag::CONTIGUOUS;
    let tensor = RawTensor { data: data.cast(), strides: strides.as_ptr(), flags, ..*like };
    then(Operand { tensor: &tensor, bytes: size_of::<T>() })
}

/// Copies a view to a slice of equal length, in row-major order.
fn gather<T: Plain>(from: View<'_, T>, to: &mut [T]) -> Result<(), Error> {
    debug_assert_eq!(from.numel(), to.len());
    let view = Operand::of_input(&from);
    with_dense(view.tensor, from.sizes(), to.as_mut_ptr(), |out| {
        apply(Cost::Cheap, &[out, view], InnerLoop::of_elements::<(*const T,), *mut T, _>(&|(a,)| a))
    })
}

/// Copies a slice in row-major order to a view with equal element count.
fn scatter<T: Plain>(from: &[T], to: ViewMut<'_, T>) -> Result<(), Error> {
    debug_assert_eq!(from.len(), to.numel());
    let view = Operand::of_output(&to);
    with_dense(view.tensor, to.sizes(), from.as_ptr().cast_mut(), |input| {
        apply(Cost::Cheap, &[view, input], InnerLoop::of_elements::<(*const T,), *mut T, _>(&|(a,)| a))
    })
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{arg, tensor, with_call};

    #[test]
    fn contiguous_copies_what_is_strided_or_written() {
        let mut a: Vec<f64> = (0..6).map(f64::from).collect();
        let p = a.as_mut_ptr();
        let (transposed, whole) = (tensor(p, &[3, 2], &[1, 3]), tensor(p, &[6], &[1]));
        let mut o = [0.0f64; 6];
        let to = tensor(o.as_mut_ptr(), &[6], &[1]);
        with_call(&[arg(&transposed), arg(&whole)], &[&to], |call| {
            let x = call.contiguous::<f64>(0).unwrap();
            assert!(x.is_copy());
            assert_eq!(&x[..], [0.0, 3.0, 1.0, 4.0, 2.0, 5.0]);
            assert_eq!(call.view::<f64>(0).unwrap().iter().collect::<Vec<_>>(), &x[..]);
            assert!(!call.contiguous::<f64>(1).unwrap().is_copy());
            call.contiguous_out::<f64>(0).unwrap().copy_from_slice(&x);
        });
        assert_eq!(o, [0.0, 3.0, 1.0, 4.0, 2.0, 5.0]);
        with_call(&[arg(&whole)], &[&transposed], |call| {
            let x = call.contiguous::<f64>(0).unwrap();
            assert!(x.is_copy(), "the output has its memory");
            let mut out = call.contiguous_out::<f64>(0).unwrap();
            out.copy_from_slice(&x);
        });
        assert_eq!(a, [0.0, 2.0, 4.0, 1.0, 3.0, 5.0]);
    }
}
