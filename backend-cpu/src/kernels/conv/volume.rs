//! Images and kernels as five dimensions, and how a kernel moves.

use keyway_sdk::author::{Call, Element, Error, Lanes};

/// A tensor of `[first, second, spatial..]` with three spatial dimensions, of which those that it lacks come first and have
/// one element.
#[derive(Clone, Copy)]
pub struct Volume<'a, T> {
    pub data: Lanes<'a, T>,
    pub sizes: [usize; 5],
    pub strides: [usize; 5],
}

/// The last numbers of a list as the last three of `neutral`.
pub fn three(list: &[i64], neutral: usize) -> [usize; 3] {
    let mut all = [neutral; 3];
    all.iter_mut().rev().zip(list.iter().rev()).for_each(|(to, v)| *to = (*v).max(0) as usize);
    all
}

impl<'a, T: Element> Volume<'a, T> {
    /// # Safety
    /// The elements that sizes and strides name must exist for `'a`.
    unsafe fn of(data: *mut T, sizes: &[i64], strides: &[i64]) -> Result<Self, Error> {
        let (&[a, b, ref inner @ ..], &[a_step, b_step, ref steps @ ..]) = (sizes, strides) else {
            return Err(wrong(sizes));
        };
        if inner.len() > 3 {
            return Err(wrong(sizes));
        }
        let all = |first: i64, second: i64, rest: [usize; 3]| {
            [first.max(0) as usize, second.max(0) as usize, rest[0], rest[1], rest[2]]
        };
        Ok(Volume {
            // SAFETY: as the caller guarantees.
            data: unsafe { Lanes::new(data) },
            sizes: all(a, b, three(inner, 1)),
            strides: all(a_step, b_step, three(steps, 0)),
        })
    }

    /// Argument `i`.
    pub fn argument(call: &Call<'a>, i: usize) -> Result<Self, Error> {
        let view = call.view::<T>(i)?;
        // SAFETY: the host guarantees the elements of a call's tensors; they are only read.
        unsafe { Volume::of(view.as_ptr().cast_mut(), view.sizes(), view.strides()) }
    }

    /// Output `i`.
    pub fn output(call: &Call<'a>, i: usize) -> Result<Self, Error> {
        let mut out = call.out::<T>(i)?;
        let data = out.as_mut_ptr();
        // SAFETY: as above; the output is this call's alone.
        unsafe { Volume::of(data, out.sizes(), out.strides()) }
    }
}

fn wrong(sizes: &[i64]) -> Error {
    Error::InvalidArgument {
        argument: "input",
        expected: "a tensor of 2 to 5 dimensions".into(),
        got: format!("sizes {sizes:?}"),
    }
}

/// For each element of a kernel, the element of the input that its first place reads.
pub fn taps(kernel: usize, dilation: usize, padding: usize) -> Vec<isize> {
    // Of numbers that no memory could hold there are no places.
    let tap = |t: usize| t.wrapping_mul(dilation).wrapping_sub(padding);
    (0..kernel).map(|t| tap(t).cast_signed()).collect()
}

/// How a kernel moves over an input.
pub struct Moves {
    pub stride: [usize; 3],
    pub padding: [usize; 3],
    pub dilation: [usize; 3],
    pub groups: usize,
}

impl Moves {
    /// Arguments 3 to 6.
    pub fn of(call: &Call<'_>) -> Result<Self, Error> {
        Ok(Moves {
            stride: three(call.ints(3)?, 1),
            padding: three(call.ints(4)?, 0),
            dilation: three(call.ints(5)?, 1),
            groups: call.int(6)?.max(1) as usize,
        })
    }

    /// [`taps`] along dimension `d`.
    pub fn taps(&self, d: usize, kernel: usize) -> Vec<isize> {
        taps(kernel, self.dilation[d], self.padding[d])
    }
}
