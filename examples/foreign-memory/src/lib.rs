//! Tensors over the image buffers of a driver written in C.

mod mapped;

pub use mapped::{mapped, received};

use keyway::storage::Blob;
use keyway::{DType, Device, Result, Tensor};
use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The driver of this example: C's allocator.
mod driver {
    use super::c_void;
    // SAFETY: the C library's own functions, as its manual declares them.
    unsafe extern "C" {
        pub fn malloc(size: usize) -> *mut c_void;
        pub fn free(memory: *mut c_void);
    }
}

/// Bytes from the start of one row of an image to that of the next.
pub const PITCH: usize = 64;

static LENT: AtomicUsize = AtomicUsize::new(0);

/// Number of buffers that the driver has lent.
pub fn lent() -> usize {
    LENT.load(Ordering::SeqCst)
}

/// Grey values of 16 bits, (rows, columns), in a buffer of the driver; at most 32 columns.
///
/// # Errors
/// Out of memory; more columns than a row has space for.
pub fn grab(rows: usize, columns: usize) -> Result<Tensor> {
    let bytes = rows * PITCH;
    // SAFETY: `malloc` may be asked for any size.
    let buffer = unsafe { driver::malloc(bytes) }.cast::<u8>();
    if !buffer.is_null() {
        // SAFETY: the buffer has `bytes` bytes, and nothing else refers to it yet.
        unsafe { buffer.write_bytes(0, bytes) };
        LENT.fetch_add(1, Ordering::SeqCst);
    }
    let give_back = |buffer: *mut u8| {
        if !buffer.is_null() {
            LENT.fetch_sub(1, Ordering::SeqCst);
        }
        // SAFETY: `malloc` returned it, and a deleter runs once.
        unsafe { driver::free(buffer.cast()) };
    };
    // SAFETY: the buffer has `bytes` initialized bytes, is uniquely owned, and any thread may free it.
    let blob = unsafe { Blob::from_raw_parts(buffer, bytes, Device::CPU, give_back)? };
    // The last row's padding is part of the buffer too.
    Tensor::from_blob_strided(blob.named("camera"), &[rows, columns], &[PITCH / 2, 1], DType::U16)
}

/// Fills an image with a ramp, by hand.
///
/// # Errors
/// An image that other handles share.
pub fn expose(image: &mut Tensor) -> Result<()> {
    let mut pixels = image.accessor_mut::<u16, 2>()?;
    let [rows, columns] = pixels.sizes();
    for i in 0..rows {
        for j in 0..columns {
            pixels[[i, j]] = (100 * i + j) as u16;
        }
    }
    Ok(())
}

/// The brightest pixel: its row, column and value.
///
/// # Errors
/// An image that other handles share.
pub fn brightest(image: &mut Tensor) -> Result<Option<([usize; 2], u16)>> {
    let pixels = image.accessor_ref::<u16, 2>()?;
    let [rows, _] = pixels.sizes();
    // Each row is contiguous, so it is a slice.
    let all = (0..rows).filter_map(|i| Some((i, pixels.row([i])?)));
    let all = all.flat_map(|(i, row)| row.iter().enumerate().map(move |(j, &value)| ([i, j], value)));
    Ok(all.max_by_key(|(_, value)| *value))
}
