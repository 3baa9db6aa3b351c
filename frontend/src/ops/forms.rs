//! The methods of an op on [`Tensor`](crate::Tensor), generated from one declaration.

/// Declares the methods of the op that `DEF` in the same file defines: the functional one with this documentation and
/// signature, and the named `in_place` and `out` forms with the same arguments. All return a `Result`.
///
/// ```text
/// forms! {
///     /// `self + other`, broadcast and promoted.
///     pub fn add<'a>(&'a self, other: impl Into<Arg<'a>>), defaults: [Arg::Int(1)], in_place: add_, out: add_out;
/// }
/// ```
///
/// The arguments are passed in the order of the schema, followed by `defaults` for the parameters that these methods omit.
///
/// If the arguments are `self` and at most a number, [`example!`] generates the examples of the in-place and `out` forms, on a
/// tensor of 1.5 or of the number after `on`. Otherwise an example may be given in braces after the form's name.
macro_rules! forms {
    ($(
        $(#[$doc:meta])*
        pub fn $name:ident $(<$life:lifetime>)? ($($params:tt)*)
        $(, defaults: [$($default:expr),+])?
        $(, in_place: $in_place:ident $({ $(#[$of_in_place:meta])+ })?)?
        $(, out: $out:ident $({ $(#[$of_out:meta])+ })?)?
        $(, on: $on:expr)?;
    )+) => {
        impl $crate::Tensor {$(
            $crate::ops::forms::form! {
                functional [$name] $name [$(#[$doc])*] <$($life)?> ($($params)*) [$($($default),+)?]
            }
            $crate::ops::forms::form! {
                in_place [$($in_place)?] $name [
                    #[doc = $crate::ops::forms::example!(in_place [$($in_place)?] $name [$($on)?] ($($params)*))]
                    $($($(#[$of_in_place])+)?)?
                ] <$($life)?> ($($params)*) [$($($default),+)?]
            }
            $crate::ops::forms::form! {
                out [$($out)?] $name [
                    #[doc = $crate::ops::forms::example!(out [$($out)?] $name [$($on)?] ($($params)*))]
                    $($($(#[$of_out])+)?)?
                ] <$($life)?> ($($params)*) [$($($default),+)?]
            }
        )+}
    };
}
pub(crate) use forms;

/// One method of [`forms!`]; expands to nothing if the form has no name.
macro_rules! form {
    ($form:ident [] $($unused:tt)*) => {};
    (functional [$name:ident] $op:ident [$($doc:tt)*] <$($life:lifetime)?>
        (& $($own:lifetime)? self $(, $arg:ident: $type:ty)* $(,)?) [$($default:expr),*]) => {
        $($doc)*
        pub fn $name<$($life)?>(& $($own)? self $(, $arg: $type)*) -> $crate::error::Result<$crate::Tensor> {
            DEF.run(&[self.into(), $($arg.into(),)* $($default),*])
        }
    };
    (in_place [$name:ident] $op:ident [$($doc:tt)*] <$($life:lifetime)?>
        (& $($own:lifetime)? self $(, $arg:ident: $type:ty)* $(,)?) [$($default:expr),*]) => {
        #[doc = concat!("`self = ", stringify!($op), "(self", $(", ", stringify!($arg),)* ")`: ")]
        #[doc = concat!("[`Tensor::", stringify!($op), "`](crate::Tensor::", stringify!($op), ") in place.")]
        /// Returns `self`.
        ///
        $($doc)*
        ///
        /// # Errors
        /// Those of the functional form; a result of a shape or dtype that `self` cannot hold.
        pub fn $name<$($life)?>(& $($own)? self $(, $arg: $type)*) -> $crate::error::Result<$crate::Tensor> {
            DEF.run_in_place(&[self.into(), $($arg.into(),)* $($default),*])
        }
    };
    (out [$name:ident] $op:ident [$($doc:tt)*] <$($life:lifetime)?>
        (& $($own:lifetime)? self $(, $arg:ident: $type:ty)* $(,)?) [$($default:expr),*]) => {
        #[doc = concat!("`out = ", stringify!($op), "(self", $(", ", stringify!($arg),)* ")`: ")]
        #[doc = concat!("[`Tensor::", stringify!($op), "`](crate::Tensor::", stringify!($op), ") written to `out`.")]
        /// An `out` without elements is replaced.
        ///
        $($doc)*
        ///
        /// # Errors
        /// Those of the functional form; a result of another shape than `out`, or of a dtype that `out` cannot hold.
        pub fn $name<$($life)?>(
            & $($own)? self $(, $arg: $type)*, out: &mut $crate::Tensor
        ) -> $crate::error::Result<()> {
            DEF.run_out(&[self.into(), $($arg.into(),)* $($default),*], out)
        }
    };
}
pub(crate) use form;

/// The example of an in-place or `out` form: its result equals that of the functional form. Expands to nothing for arguments of
/// other types.
macro_rules! example {
    ($form:ident $name:tt $op:ident [] $params:tt) => {
        $crate::ops::forms::example!($form $name $op [1.5] $params)
    };
    ($form:ident [$name:ident] $op:ident [$on:expr] (& self)) => {
        $crate::ops::forms::example!($form $name $op [$on] "" "")
    };
    ($form:ident [$name:ident] $op:ident [$on:expr] (& $own:lifetime self, $arg:ident: impl Into<Arg<$of:lifetime>>)) => {
        $crate::ops::forms::example!($form $name $op [$on] "2" "2, ")
    };
    (in_place $name:ident $op:ident [$on:expr] $arg:literal $first:literal) => {
        concat!(
            "```\n# fn main() -> keyway::Result<()> {\n",
            "let x = keyway::Tensor::new([", stringify!($on), "])?;\n",
            "let expected = x.", stringify!($op), "(", $arg, ")?.to_vec_f64()?;\n",
            "x.", stringify!($name), "(", $arg, ")?;\n",
            "assert_eq!(x.to_vec_f64()?, expected);\n",
            "# Ok(()) }\n```",
        )
    };
    (out $name:ident $op:ident [$on:expr] $arg:literal $first:literal) => {
        concat!(
            "```\n# fn main() -> keyway::Result<()> {\n",
            "let x = keyway::Tensor::new([", stringify!($on), "])?;\n",
            "let mut out = x.zeros_like()?;\n",
            "x.", stringify!($name), "(", $first, "&mut out)?;\n",
            "assert_eq!(out.to_vec_f64()?, x.", stringify!($op), "(", $arg, ")?.to_vec_f64()?);\n",
            "# Ok(()) }\n```",
        )
    };
    ($($other:tt)*) => {
        ""
    };
}
pub(crate) use example;
