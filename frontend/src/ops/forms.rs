//! The methods of an op on [`Tensor`](crate::Tensor), written from one declaration.

/// Declares the methods of the op that `DEF` in the same file defines: the functional one with this documentation and
/// signature, and where they are named, `in_place` and `out`, which take the same arguments. All give a `Result`.
///
/// ```text
/// forms! {
///     /// `self + other`, broadcast and promoted.
///     pub fn add<'a>(&'a self, other: impl Into<Arg<'a>>), defaults: [Arg::Int(1)], in_place: add_, out: add_out;
/// }
/// ```
///
/// The arguments are passed in the order of the schema; `defaults` follow them, for parameters that these methods do
/// not show.
macro_rules! forms {
    ($(
        $(#[$doc:meta])*
        pub fn $name:ident $(<$life:lifetime>)? ($($params:tt)*)
        $(, defaults: [$($default:expr),+])?
        $(, in_place: $in_place:ident)?
        $(, out: $out:ident)?;
    )+) => {
        impl $crate::Tensor {$(
            $crate::ops::forms::form! {
                functional [$name] $name [$(#[$doc])*] <$($life)?> ($($params)*) [$($($default),+)?]
            }
            $crate::ops::forms::form! {
                in_place [$($in_place)?] $name [] <$($life)?> ($($params)*) [$($($default),+)?]
            }
            $crate::ops::forms::form! {
                out [$($out)?] $name [] <$($life)?> ($($params)*) [$($($default),+)?]
            }
        )+}
    };
}
pub(crate) use forms;

/// One method of [`forms!`]; nothing where the form has no name.
macro_rules! form {
    ($form:ident [] $($unused:tt)*) => {};
    (functional [$name:ident] $op:ident [$($doc:tt)*] <$($life:lifetime)?>
        (& $($own:lifetime)? self $(, $arg:ident: $type:ty)* $(,)?) [$($default:expr),*]) => {
        $($doc)*
        pub fn $name<$($life)?>(& $($own)? self $(, $arg: $type)*) -> $crate::error::Result<$crate::Tensor> {
            DEF.run(&[self.into(), $($arg.into(),)* $($default),*])
        }
    };
    (in_place [$name:ident] $op:ident [] <$($life:lifetime)?>
        (& $($own:lifetime)? self $(, $arg:ident: $type:ty)* $(,)?) [$($default:expr),*]) => {
        #[doc = concat!("`self = ", stringify!($op), "(self", $(", ", stringify!($arg),)* ")`: ")]
        #[doc = concat!("[`Tensor::", stringify!($op), "`](crate::Tensor::", stringify!($op), ") in place.")]
        /// Returns `self`.
        ///
        /// # Errors
        /// As the functional form; a result of a shape or dtype that `self` cannot hold.
        pub fn $name<$($life)?>(& $($own)? self $(, $arg: $type)*) -> $crate::error::Result<$crate::Tensor> {
            DEF.run_in_place(&[self.into(), $($arg.into(),)* $($default),*])
        }
    };
    (out [$name:ident] $op:ident [] <$($life:lifetime)?>
        (& $($own:lifetime)? self $(, $arg:ident: $type:ty)* $(,)?) [$($default:expr),*]) => {
        #[doc = concat!("`out = ", stringify!($op), "(self", $(", ", stringify!($arg),)* ")`: ")]
        #[doc = concat!("[`Tensor::", stringify!($op), "`](crate::Tensor::", stringify!($op), ") written to `out`.")]
        /// An `out` without elements is replaced.
        ///
        /// # Errors
        /// As the functional form; a result of another shape than `out`, or of a dtype that `out` cannot hold.
        pub fn $name<$($life)?>(
            & $($own)? self $(, $arg: $type)*, out: &mut $crate::Tensor
        ) -> $crate::error::Result<()> {
            DEF.run_out(&[self.into(), $($arg.into(),)* $($default),*], out)
        }
    };
}
pub(crate) use form;
