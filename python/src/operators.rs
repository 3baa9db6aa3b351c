//! The binary operators of `Tensor`.

// The macro of PyO3 calls the functions that it writes from unsafe functions of its own, which inside another macro is reported as
// the caller's.
#![allow(unsafe_op_in_unsafe_fn)]

use crate::handle::{Operand, PyTensor};
use crate::ops;
use keyway::Arg;
use keyway::ops::{linalg, pointwise};
use pyo3::prelude::*;

/// The operators, each by its op, with the argument after the operands.
macro_rules! operators {
    ($($op:path, $rest:expr; $forward:ident $reflected:ident $in_place:ident;)*) => {
        #[pymethods]
        impl PyTensor {
            $(
                fn $forward<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Operand<'py> {
                    ops::operator(slf.py(), &$op, $rest, slf, other)
                }

                fn $reflected<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Operand<'py> {
                    ops::operator(slf.py(), &$op, $rest, other, slf)
                }

                fn $in_place(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<()> {
                    ops::in_place(slf.py(), &$op, $rest, slf, other)
                }
            )*
        }
    };
}

operators! {
    pointwise::add::DEF, Some(Arg::Int(1)); __add__ __radd__ __iadd__;
    pointwise::sub::DEF, Some(Arg::Int(1)); __sub__ __rsub__ __isub__;
    pointwise::mul::DEF, None; __mul__ __rmul__ __imul__;
    pointwise::div::DEF, Some(Arg::None); __truediv__ __rtruediv__ __itruediv__;
    pointwise::floor_divide::DEF, None; __floordiv__ __rfloordiv__ __ifloordiv__;
    pointwise::remainder::DEF, None; __mod__ __rmod__ __imod__;
    linalg::matmul::DEF, None; __matmul__ __rmatmul__ __imatmul__;
    pointwise::bitwise_and::DEF, None; __and__ __rand__ __iand__;
    pointwise::bitwise_or::DEF, None; __or__ __ror__ __ior__;
    pointwise::bitwise_xor::DEF, None; __xor__ __rxor__ __ixor__;
    pointwise::bitwise_left_shift::DEF, None; __lshift__ __rlshift__ __ilshift__;
    pointwise::bitwise_right_shift::DEF, None; __rshift__ __rrshift__ __irshift__;
}
