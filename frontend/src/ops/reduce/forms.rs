//! The methods of a reduction on [`Tensor`](crate::Tensor), written from one declaration.

/// Declares three methods of a reduction: the one with this documentation, which drops the dimensions that it goes over, the one
/// that keeps them as size 1 and, where it is named, the one over all elements.
///
/// ```text
/// reduction! {
///     /// The sums over `dims`.
///     pub fn sum(x, dims, keepdim) -> Tensor { DEF.run(&[x.into(), dims, keepdim]) }
///     keepdim: sum_keepdim, all: sum_all
/// }
/// ```
///
/// `dims` and `keepdim` are arguments of the op; parameters before `dims` are the caller's.
macro_rules! reduction {
    (
        $(#[$doc:meta])*
        pub fn $name:ident($x:ident $(, $arg:ident: $type:ty)*; $dims:ident, $keepdim:ident) -> $result:ty $body:block
        keepdim: $keeping:ident, all: $all:ident
    ) => {
        impl $crate::Tensor {
            #[doc = concat!("[`Tensor::", stringify!($name), "`](crate::Tensor::", stringify!($name), ") over all dimensions.")]
            ///
            /// # Errors
            /// The same, but those of dimensions.
            pub fn $all(&self $(, $arg: $type)*) -> $crate::error::Result<$result> {
                let $x = self;
                let ($dims, $keepdim) = (
                    keyway_dispatcher::op::Arg::Ints(&[]),
                    keyway_dispatcher::op::Arg::Bool(false),
                );
                $body
            }
        }
        $crate::ops::reduce::forms::reduction! {
            $(#[$doc])*
            pub fn $name($x $(, $arg: $type)*; $dims, $keepdim) -> $result $body
            keepdim: $keeping
        }
    };
    (
        $(#[$doc:meta])*
        pub fn $name:ident($x:ident $(, $arg:ident: $type:ty)*; $dims:ident, $keepdim:ident) -> $result:ty $body:block
        keepdim: $keeping:ident
    ) => {
        impl $crate::Tensor {
            $(#[$doc])*
            pub fn $name(
                &self $(, $arg: $type)*, dims: impl $crate::tensor::IntoDims
            ) -> $crate::error::Result<$result> {
                let ($x, ints) = (self, dims.into_dims());
                let ($dims, $keepdim) = (
                    keyway_dispatcher::op::Arg::Ints(&ints),
                    keyway_dispatcher::op::Arg::Bool(false),
                );
                $body
            }

            #[doc = concat!("[`Tensor::", stringify!($name), "`](crate::Tensor::", stringify!($name), ") whose dimensions ")]
            /// stay as size 1.
            ///
            /// # Errors
            /// The same.
            pub fn $keeping(
                &self $(, $arg: $type)*, dims: impl $crate::tensor::IntoDims
            ) -> $crate::error::Result<$result> {
                let ($x, ints) = (self, dims.into_dims());
                let ($dims, $keepdim) = (
                    keyway_dispatcher::op::Arg::Ints(&ints),
                    keyway_dispatcher::op::Arg::Bool(true),
                );
                $body
            }
        }
    };
}
pub(super) use reduction;
