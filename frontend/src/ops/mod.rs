//! The ops. One file each, in the folder of its family; one line in the family's list.

pub mod build;
pub mod by_name;
pub mod def;
pub mod rules;
pub mod sample;

/// Declares the modules of a family and lists their definitions: the one line that a new op costs here.
macro_rules! family {
    ($($(#[$attribute:meta])* $op:ident),* $(,)?) => {
        $($(#[$attribute])* pub mod $op;)*
        /// The definitions of this family.
        pub static ALL: &[&crate::ops::def::OpDef] = &[$(&$op::DEF),*];
    };
}
pub(crate) use family;

pub mod create;
pub mod index;
pub mod pointwise;
pub mod random;
pub mod reduce;
pub mod linalg;
pub mod memory;
pub mod shape;

/// Every definition, in the order of families.
pub fn all() -> impl Iterator<Item = &'static def::OpDef> {
    [memory::ALL, create::ALL, random::ALL, pointwise::ALL, reduce::ALL, linalg::ALL, shape::ALL].into_iter().flatten().copied()
    [memory::ALL, pointwise::ALL, reduce::ALL, linalg::ALL, shape::ALL, index::ALL].into_iter().flatten().copied()
}
