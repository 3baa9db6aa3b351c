//! `max_unpool`

use keyway_cpu_loops::images::Volume;
use keyway_cpu_loops::parallel_try;
use keyway_sdk::author::{Call, Error, Float, Real};
use keyway_sdk::half::{bf16, f16};

/// Elements that are worth handing to a thread.
const GRAIN: usize = 1 << 14;

fn offset(index: [usize; 5], strides: [usize; 5]) -> usize {
    index.iter().zip(&strides).map(|(i, stride)| i * stride).sum()
}

/// Channel by channel: zeros, and then the elements in their order, so that of several with one place the last one stays.
fn max_unpool<T: Float>(call: &Call) -> Result<(), Error> {
    let (input, indices) = (Volume::<T>::argument(call, 0)?, Volume::<i64>::argument(call, 1)?);
    let out = Volume::<T>::output(call, 0)?;
    let [samples, channels, depth, height, width] = input.sizes;
    let [_, _, _, rows, columns] = out.sizes;
    let count: usize = out.sizes[2..].iter().product();
    let at = |n, c, place: usize| {
        offset([n, c, place / columns / rows, place / columns % rows, place % columns], out.strides)
    };
    parallel_try(samples * channels, GRAIN / count.max(1), |range| {
        for (n, c) in range.map(|plane| (plane / channels, plane % channels)) {
            for place in 0..count {
                // SAFETY: sizes and strides are those of the call's tensors, whose elements the host guarantees; the output is
                // this call's alone, and each channel is one piece's.
                unsafe { out.data.as_ptr().add(at(n, c, place)).write(T::from_acc(T::Acc::ZERO)) };
            }
            for i in 0..depth * height * width {
                let index = [n, c, i / width / height, i / width % height, i % width];
                // SAFETY: as above; the op's rule has matched the sizes of both.
                let (x, place) = unsafe {
                    let x = *input.data.as_ptr().add(offset(index, input.strides));
                    (x, *indices.data.as_ptr().add(offset(index, indices.strides)))
                };
                let inside = usize::try_from(place).ok().filter(|&place| place < count);
                let inside = inside.ok_or_else(|| Error::InvalidArgument {
                    argument: "indices",
                    expected: format!("places in 0..{count}, the elements of a channel"),
                    got: format!("{place}"),
                })?;
                // SAFETY: as above.
                unsafe { out.data.as_ptr().add(at(n, c, inside)).write(x) };
            }
        }
        Ok(())
    })
}

kernel!("max_unpool", "TTI>T", max_unpool, [f32, f64, f16, bf16]);
