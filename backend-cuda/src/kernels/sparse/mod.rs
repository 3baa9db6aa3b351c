//! COO tensors (`sparse_coo`): the layout on this device, and its kernels.
//!
//! A tensor has `sparse_dim` leading sparse dimensions, followed by dense ones. Every op adds duplicates: a kernel of an op
//! that is not linear coalesces first. Element-wise computations call the op of that name on the component `values`; the
//! kernels here compute coordinates.

pub mod convert;
pub mod coo;
pub mod entries;
pub mod layout;
mod product;
mod sum;
mod values;

use convert::{sparse_mask, to_sparse};
use product::{addmm, mm, sampled_mm};
use sum::{add, mean, sub, sum};
use values::{clone, coalesce, div, each, each_by, fill, mul, neg, permute, pow, to_dtype, transpose};

family!("sparse");
