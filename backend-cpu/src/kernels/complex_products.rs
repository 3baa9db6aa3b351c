//! Products of complex matrices by the `gemm` crate, tile by tile. It packs operands of any strides.

use super::gemm::{call_gemm, load_input};
use super::product::{Batch, Multiply, each_tile, tile_sizes};
use keyway_sdk::author::{Error, c64, c128};

macro_rules! complex {
    ($($t:ty),*) => {$(
        impl Multiply for $t {
            unsafe fn batch(all: &Batch<Self>) -> Result<(), Error> {
                let first = &all.first;
                let sizes = tile_sizes(all.count, first.rows, first.columns, first.inner);
                each_tile(all, sizes, |product, at| {
                    let tile = all.product(product).part(at, sizes);
                    // SAFETY: the caller guarantees the elements, and tiles of `out` are disjoint.
                    unsafe {
                        let beta = tile.input.map(|(input, beta)| {
                            load_input(&tile, input);
                            beta
                        });
                        call_gemm(&tile, beta);
                    }
                    Ok(())
                })
            }
        }
    )*};
}
complex!(c64, c128);
