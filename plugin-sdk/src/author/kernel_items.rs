//! The registered kernels of this library.

use crate::abi::RawStr;
use crate::abi::op::RawKernel;
use crate::abi::tensor::KernelFn;

/// The kernels of one `register_kernel!`, collected by `inventory` inside this library. Their common data is stored once: a
/// library has thousands of kernels, and each string costs the loader a relocation.
pub struct KernelItems {
    /// See [`kernel_flag`](crate::abi::codes::kernel_flag).
    pub flags: u32,
    /// The op's name.
    pub op: &'static str,
    /// The op's signature.
    pub signature: &'static str,
    /// The device's name.
    pub device: &'static str,
    /// The layout's name.
    pub layout: &'static str,
    /// The dtype's name and the function of each kernel.
    pub kernels: &'static [(&'static str, KernelFn)],
}
inventory::collect!(KernelItems);

impl KernelItems {
    /// The kernels as ABI records.
    pub(crate) fn raw(&self) -> impl Iterator<Item = RawKernel> {
        self.kernels.iter().map(|&(dtype, run)| RawKernel {
            struct_size: size_of::<RawKernel>() as u32,
            flags: self.flags,
            op: RawStr::new(self.op),
            signature: RawStr::new(self.signature),
            device: RawStr::new(self.device),
            layout: RawStr::new(self.layout),
            dtype: RawStr::new(dtype),
            run,
        })
    }
}
