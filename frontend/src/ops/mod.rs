//! The ops: one file each, in the folder of its family, and one line in the family's list.

mod arguments;
pub mod build;
pub mod by_name;
pub(crate) mod composite;
pub mod def;
mod define;
mod documentation;
mod family;
mod forms;
mod nearest;
mod operators;
mod parts;
pub mod sample;
pub(crate) mod spatial;
pub mod tiers;

pub use crate::op::rules;
pub(crate) use family::family;
pub(crate) use forms::forms;

pub mod activation;
pub mod attention;
pub mod complex;
pub mod conv;
pub mod create;
pub mod fft;
pub mod image;
pub mod index;
pub mod linalg;
pub mod loss;
pub mod memory;
pub mod norm;
pub mod optim;
pub mod pointwise;
pub mod pool;
pub mod random;
pub mod recurrent;
pub mod reduce;
pub mod shape;
pub mod sparse;

/// All definitions, in the order of families.
///
/// ```
/// use keyway::Tensor;
/// let softmax = keyway::ops::all().find(|op| op.name() == "softmax").unwrap();
/// assert!(softmax.schema.starts_with("softmax(Tensor self, int dim"));
/// ```
pub fn all() -> impl Iterator<Item = &'static def::OpDef> {
    let families = [
        memory::ALL,
        create::ALL,
        random::ALL,
        pointwise::ALL,
        complex::ALL,
        fft::ALL,
        activation::ALL,
        reduce::ALL,
        linalg::ALL,
        shape::ALL,
        sparse::ALL,
        index::ALL,
        norm::ALL,
        conv::ALL,
        pool::ALL,
        image::ALL,
        loss::ALL,
        attention::ALL,
        recurrent::ALL,
        optim::ALL,
    ];
    families.into_iter().flatten().copied()
}
