//! The binary operators of `Tensor`.

// The macro of PyO3 calls the functions that it writes from unsafe functions of its own, which inside another macro is reported as
// the caller's.
#![allow(unsafe_op_in_unsafe_fn)]

use crate::handle::{Operand, PyTensor};
use crate::ops;
use pyo3::prelude::*;

/// The operators, each by the op of its name.
macro_rules! operators {
    ($($op:literal: $forward:ident $reflected:ident $in_place:ident;)*) => {
        #[pymethods]
        impl PyTensor {
            $(
                fn $forward<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Operand<'py> {
                    ops::operator(slf.py(), $op, slf, other)
                }

                fn $reflected<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Operand<'py> {
                    ops::operator(slf.py(), $op, other, slf)
                }

                fn $in_place(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<()> {
                    ops::in_place(slf.py(), $op, slf, other)
                }
            )*
        }
    };
}

operators! {
    "add": __add__ __radd__ __iadd__;
    "sub": __sub__ __rsub__ __isub__;
    "mul": __mul__ __rmul__ __imul__;
    "div": __truediv__ __rtruediv__ __itruediv__;
    "floor_divide": __floordiv__ __rfloordiv__ __ifloordiv__;
    "remainder": __mod__ __rmod__ __imod__;
    "matmul": __matmul__ __rmatmul__ __imatmul__;
    "bitwise_and": __and__ __rand__ __iand__;
    "bitwise_or": __or__ __ror__ __ior__;
    "bitwise_xor": __xor__ __rxor__ __ixor__;
    "bitwise_left_shift": __lshift__ __rlshift__ __ilshift__;
    "bitwise_right_shift": __rshift__ __rrshift__ __irshift__;
}
