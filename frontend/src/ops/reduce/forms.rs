//! The methods of a reduction on [`Tensor`](crate::Tensor), generated from one declaration.

/// Declares three methods of a reduction: the one with this documentation, which removes the reduced dimensions, the one
/// that retains them with size 1 and, if it is named, the one over all elements.
///
/// ```text
/// reduction! {
///     /// The sums over `dims`.
///     pub fn sum(x, dims, keepdim) -> Tensor { DEF.run(&[x.into(), dims, keepdim]) }
///     keepdim: sum_keepdim, all: sum_all
/// }
/// ```
///
/// `dims` and `keepdim` are arguments of the op; parameters before `dims` are the caller's. The examples of the second and
/// third method are generated here; for such parameters or two results, `shown` is the code after the call in them. Errors
/// of the third method start with the name of the first, unless `called` names another.
macro_rules! reduction {
    (
        $(#[$doc:meta])*
        pub fn $name:ident($x:ident $(, $arg:ident: $type:ty)*; $dims:ident, $keepdim:ident) -> $result:ty $body:block
        keepdim: $keeping:ident, all: $all:ident $(called $called:literal)?
        $(, shown: ($alone:literal, $given:literal, $($part:literal),+))?
    ) => {
        impl $crate::Tensor {
            #[doc = concat!("[`Tensor::", stringify!($name), "`](crate::Tensor::", stringify!($name), ") over all dimensions.")]
            ///
            #[doc = $crate::ops::reduce::forms::example!(all $name $all $(($alone, $given, $($part),+))?)]
            ///
            /// # Errors
            /// The same, except those about dimensions.
            pub fn $all(&self $(, $arg: $type)*) -> $crate::error::Result<$result> {
                let $x = self;
                let ($dims, $keepdim) = (
                    keyway_dispatcher::op::Arg::Ints(&[]),
                    keyway_dispatcher::op::Arg::Bool(false),
                );
                let made = $body;
                $(let made = $crate::error::called($called, &[], || made);)?
                made
            }
        }
        $crate::ops::reduce::forms::reduction! {
            $(#[$doc])*
            pub fn $name($x $(, $arg: $type)*; $dims, $keepdim) -> $result $body
            keepdim: $keeping $(, shown: ($alone, $given, $($part),+))?
        }
    };
    (
        $(#[$doc:meta])*
        pub fn $name:ident($x:ident $(, $arg:ident: $type:ty)*; $dims:ident, $keepdim:ident) -> $result:ty $body:block
        keepdim: $keeping:ident $(, shown: ($alone:literal, $given:literal, $($part:literal),+))?
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
            /// are retained with size 1.
            ///
            #[doc = $crate::ops::reduce::forms::example!(keepdim $name $keeping $(($alone, $given, $($part),+))?)]
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

/// The example of a reduction that retains its dimensions, or reduces all elements.
macro_rules! example {
    ($form:ident $name:ident $method:ident) => {
        $crate::ops::reduce::forms::example!($form $name $method ("", "", ""))
    };
    (keepdim $name:ident $method:ident ($alone:literal, $given:literal, $($part:literal),+)) => {
        concat!(
            "```\n# fn main() -> keyway::Result<()> {\n",
            "let x = keyway::Tensor::new([[1.0f32, 2.0, 4.0], [3.0, 5.0, 9.0]])?;\n",
            $("assert_eq!(x.", stringify!($method), "(", $given, "1)?", $part, ".shape(), [2, 1]);\n",)+
            "# Ok(()) }\n```",
        )
    };
    (all $name:ident $method:ident ($alone:literal, $given:literal, $($part:literal),+)) => {
        concat!(
            "```\n# fn main() -> keyway::Result<()> {\n",
            "let x = keyway::Tensor::new([[1.0f32, 2.0, 4.0], [3.0, 5.0, 9.0]])?;\n",
            "let flat = x.flatten_all()?;\n",
            $(
                "assert_eq!(x.", stringify!($method), "(", $alone, ")?", $part, ".to_vec_f64()?, ",
                "flat.", stringify!($name), "(", $given, "0)?", $part, ".to_vec_f64()?);\n",
            )+
            "# Ok(()) }\n```",
        )
    };
}
pub(super) use example;
