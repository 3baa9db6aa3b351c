//! Tensors of coordinates (`sparse_coo`): the layout on this device, and its kernels.
//!
//! A tensor has `sparse_dim` sparse dimensions, the first ones, and dense ones behind them. Entries of one place are added up,
//! whatever the op: a kernel of an op that is not linear coalesces first. What is computed element by element is computed by
//! the op of that name on the component `values`; the kernels here know places.

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
