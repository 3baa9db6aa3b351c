//! Gradients that go back to where the elements came from.

use keyway_cpu_loops::images::Volume;
use keyway_cpu_loops::parallel_try;
use keyway_sdk::author::{Error, Float, Real, Scratch};

/// Elements that are worth handing to a thread.
const GRAIN: usize = 1 << 14;

/// Gives `add` each element of the gradient with its index and the sums of its channel, and writes the sums to `out`.
///
/// # Safety
/// Both must hold the elements that they name, and nobody else may use those of `out`.
pub unsafe fn spread<T: Float>(
    grad: &Volume<'_, T>,
    out: &Volume<'_, T>,
    add: impl Fn([usize; 5], T::Acc, &mut [T::Acc]) -> Result<(), Error> + Sync,
) -> Result<(), Error> {
    let [samples, channels, depth, height, width] = grad.sizes;
    let [_, _, out_depth, out_height, out_width] = out.sizes;
    let count = out_depth * out_height * out_width;
    parallel_try(samples * channels, GRAIN / count.max(1), |range| {
        let mut sums = Scratch::<T::Acc>::zeroed(count)?;
        for plane in range {
            let (n, c) = (plane / channels, plane % channels);
            sums.fill(T::Acc::ZERO);
            for (d, h) in (0..depth).flat_map(|d| (0..height).map(move |h| (d, h))) {
                for w in 0..width {
                    let index = [n, c, d, h, w];
                    let at: usize = index.iter().zip(&grad.strides).map(|(i, stride)| i * stride).sum();
                    // SAFETY: the index lies within the sizes of the gradient.
                    add(index, unsafe { *grad.data.as_ptr().add(at) }.to_acc(), &mut sums)?;
                }
            }
            for (row, line) in sums.chunks_exact(out_width.max(1)).enumerate() {
                let at = n * out.strides[0]
                    + c * out.strides[1]
                    + row / out_height * out.strides[2]
                    + row % out_height * out.strides[3];
                for (w, &sum) in line.iter().enumerate() {
                    // SAFETY: as above, of the output, of which each channel is one piece's.
                    unsafe { out.data.as_ptr().add(at + w * out.strides[4]).write(T::from_acc(sum)) };
                }
            }
        }
        Ok(())
    })
}
