//! The list of a family of ops.

/// Declares the modules of a family and lists their definitions; a new op adds one line here.
macro_rules! family {
    ($($(#[$attribute:meta])* $op:ident),* $(,)?) => {
        $($(#[$attribute])* pub mod $op;)*
        /// The definitions of this family.
        pub static ALL: &[&crate::ops::def::OpDef] = &[$(&$op::DEF),*];
    };
}
pub(crate) use family;
