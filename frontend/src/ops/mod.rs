//! The ops. One file each, in the folder of its family; one line in the family's list.

pub mod build;
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

pub mod pointwise;
pub mod reduce;
pub mod linalg;
pub mod memory;
pub mod shape;

/// Every definition, in the order of families.
pub fn all() -> impl Iterator<Item = &'static def::OpDef> {
    [memory::ALL, pointwise::ALL, reduce::ALL, linalg::ALL, shape::ALL].into_iter().flatten().copied()
}
