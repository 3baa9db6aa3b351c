//! The interface of a layout.

use super::RawStr;
use super::tensor::KernelFn;

/// A layout that a plugin brings: either a sub-layout of another (its kernels fall back to the parent's)
/// or a composite of component tensors and integer attributes.
#[repr(C)]
#[derive(Debug)]
pub struct LayoutApi {
    /// Size of this structure in bytes.
    pub struct_size: u32,
    /// Number of component names.
    pub n_components: u32,
    /// The layout's name: `sparse_csr`, or `vendor.example/blocked`.
    pub name: RawStr,
    /// The layout whose kernels may serve this one; empty for none.
    pub parent: RawStr,
    /// See [`codes::layout_flag`](super::codes::layout_flag).
    pub flags: u64,
    /// `n_components` names.
    pub components: *const RawStr,
    /// `n_attrs` names.
    pub attrs: *const RawStr,
    /// Number of attribute names.
    pub n_attrs: u32,
    /// Zero.
    pub reserved: u32,
    /// Checks that a tensor's components fit each other: argument 0 is the tensor. `None` accepts all.
    pub validate: Option<KernelFn>,
    /// Writes argument 0 (of this layout) into output 0 (strided, contiguous). The argument may be on any
    /// device; where the owner does not know the device, it answers `UNSUPPORTED`. So for `from_strided`.
    pub to_strided: Option<KernelFn>,
    /// Makes output 0 of this layout, through `set_output`, from argument 0 (strided).
    pub from_strided: Option<KernelFn>,
}

// SAFETY: the table holds function pointers and static strings, all immutable; the plugin keeps them.
unsafe impl Send for LayoutApi {}
// SAFETY: as for Send.
unsafe impl Sync for LayoutApi {}
