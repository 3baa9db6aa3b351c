//! Ops that a plugin provides, as traits, and the ABI tables built from them.

use super::call::{Call, CallFn};
use super::connection::{host_api, no_host};
use super::error::Error;
use super::export::run_kernel;
use crate::abi::RawStr;
use crate::abi::codes::{memory_format, op_flag};
use crate::abi::op::{RawOp, RawOutput, RawPlan};
use crate::abi::tensor::RawCall;
use std::ops::Deref;

/// The result dtype of an element-wise op, given the promoted dtype of its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Elementwise {
    /// The promoted dtype, as for `mul`.
    Promoted(u32),
    /// The promoted dtype, or f32 for integers, as for `exp`.
    Float(u32),
    /// bool, as `eq`.
    Bool(u32),
}

/// An op that the plugin brings. Masks have bit `i` for argument or output `i`.
///
/// ```
/// use keyway_sdk::abi::op::RawOp;
/// use keyway_sdk::author::{Elementwise, Op, op};
///
/// /// x / (1 + |x|).
/// struct Softsign;
///
/// impl Op for Softsign {
///     const SCHEMA: &'static str = "softsign(Tensor self) -> Tensor";
///     const ELEMENTWISE: Option<Elementwise> = Some(Elementwise::Float(0b1));
///     const BACKWARD: &'static str = "softsign_backward";
///     const SAVES_OUTPUTS: u32 = 0;
///     const SAMPLES: &'static str = r#"[{"args": [{"sizes": [2, 3]}]}]"#;
/// }
/// static SOFTSIGN: RawOp = op::<Softsign>();
/// ```
pub trait Op: 'static {
    /// See [`RawOp::schema`].
    const SCHEMA: &'static str;
    /// For an element-wise op: the arguments that are broadcast together and promoted. It needs no rule.
    const ELEMENTWISE: Option<Elementwise> = None;
    /// See [`RawOp::backward`]; empty for none.
    const BACKWARD: &'static str = "";
    /// The mask of tensor arguments that are saved for the backward op.
    const SAVES: u32 = u32::MAX;
    /// The mask of outputs that are saved for the backward op.
    const SAVES_OUTPUTS: u32 = u32::MAX;
    /// Whether the last argument of the backward op is an `int[]` that marks the required gradients.
    const BACKWARD_WANTS: bool = false;
    /// Computes the op with other ops, with [`call_op`](super::call_op) and [`Call::set_output`].
    const DECOMPOSITION: Option<CallFn> = None;
    /// The ops that the decomposition calls and that need a kernel.
    const PARTS: &'static [RawStr] = &[];
    /// Valid calls, see [`RawOp::samples`].
    const SAMPLES: &'static str = "";
    /// The reference implementation in f64, against which kernels are tested.
    const REFERENCE: Option<CallFn> = None;

    /// Describes each output with [`RuleCall::state`], from the arguments' metadata. The default: one output like argument
    /// 0, which must be a tensor.
    ///
    /// # Errors
    /// An error fails the call; return one for arguments that do not match.
    fn rule(call: &RuleCall<'_>) -> Result<(), Error> {
        let first = call.tensor(0)?;
        call.state(0, first.dtype(), first.sizes())
    }
}

/// The memory format of an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement<'a> {
    /// Row-major without gaps.
    Contiguous,
    /// Dimension 1 innermost, the other dimensions in order; for 3, 4 or 5 dimensions.
    ChannelsLast,
    /// These strides: non-overlapping and dense.
    Strides(&'a [i64]),
    /// The format that an element-wise op preserves for the arguments in [`Compute::broadcast`].
    Preserve,
    /// The memory order of this argument, if it has the output's shape.
    Like(u32),
    /// channels_last if any argument in this mask with 3 to 5 dimensions is, otherwise row-major.
    Images(u32),
}

/// The plan for computing the outputs of a call. Masks have bit `i` for argument `i`.
#[derive(Clone, Copy, Debug)]
pub struct Compute(RawPlan);

impl Compute {
    /// Uses the kernel of this dtype, with the arguments unchanged.
    pub const fn of(dtype: u16) -> Compute {
        Compute(RawPlan {
            struct_size: size_of::<RawPlan>() as u32,
            compute: dtype,
            reserved: 0,
            cast: 0,
            cast_index: 0,
            broadcast: 0,
            contiguous: 0,
            alias: 0,
        })
    }

    /// Casts these tensor arguments to that dtype.
    #[must_use]
    pub const fn cast(self, arguments: u32) -> Compute {
        Compute(RawPlan { cast: arguments, ..self.0 })
    }

    /// Casts these tensor arguments to i64: indices.
    #[must_use]
    pub const fn cast_index(self, arguments: u32) -> Compute {
        Compute(RawPlan { cast_index: arguments, ..self.0 })
    }

    /// Broadcasts these tensor arguments to the shape of output 0.
    #[must_use]
    pub const fn broadcast(self, arguments: u32) -> Compute {
        Compute(RawPlan { broadcast: arguments, ..self.0 })
    }

    /// Makes these tensor arguments contiguous.
    #[must_use]
    pub const fn contiguous(self, arguments: u32) -> Compute {
        Compute(RawPlan { contiguous: arguments, ..self.0 })
    }

    /// Allows an output to be exactly an argument, so that in-place calls need no copy.
    #[must_use]
    pub const fn alias(self) -> Compute {
        Compute(RawPlan { alias: 1, ..self.0 })
    }
}

/// A call as passed to a shape rule, for the arguments' metadata. Their elements may not have been computed yet.
#[derive(Debug)]
pub struct RuleCall<'a>(&'a Call<'a>);

impl RuleCall<'_> {
    /// Describes output `index`, row-major. Outputs must be described in order.
    ///
    /// # Errors
    /// An index out of order, an invalid dtype, or a negative size; the same for [`RuleCall::state_as`].
    pub fn state(&self, index: usize, dtype: u16, sizes: &[i64]) -> Result<(), Error> {
        self.state_as(index, dtype, sizes, Placement::Contiguous)
    }

    /// Describes output `index` with its memory format.
    ///
    /// # Errors
    /// As [`RuleCall::state`]; strides with gaps or overlaps, or another number of them.
    pub fn state_as(
        &self,
        index: usize,
        dtype: u16,
        sizes: &[i64],
        placement: Placement<'_>,
    ) -> Result<(), Error> {
        let host = host_api().ok_or_else(no_host)?;
        let (format, of, strides): (u32, u32, &[i64]) = match placement {
            Placement::Contiguous => (memory_format::CONTIGUOUS, 0, &[]),
            Placement::ChannelsLast => (memory_format::CHANNELS_LAST, 0, &[]),
            Placement::Strides(strides) if strides.len() != sizes.len() => {
                return Err(Error::InvalidArgument {
                    argument: "strides",
                    expected: format!("{} strides", sizes.len()),
                    got: strides.len().to_string(),
                });
            }
            Placement::Strides(strides) => (memory_format::STRIDES, 0, strides),
            Placement::Preserve => (memory_format::PRESERVE, 0, &[]),
            Placement::Like(argument) => (memory_format::LIKE, argument, &[]),
            Placement::Images(arguments) => (memory_format::IMAGES, arguments, &[]),
        };
        let output = RawOutput {
            struct_size: size_of::<RawOutput>() as u32,
            ndim: sizes.len() as u32,
            sizes: sizes.as_ptr(),
            strides: if format == memory_format::STRIDES { strides.as_ptr() } else { std::ptr::null() },
            dtype,
            reserved: 0,
            format,
            of,
            reserved_end: 0,
        };
        // SAFETY: `context` is this call's; the host copies the lists, which have `ndim` entries.
        answered(unsafe { (host.rule_output)(self.0.raw().context, index as u32, &output) })
    }

    /// Describes how the outputs are computed.
    ///
    /// # Errors
    /// An invalid dtype.
    pub fn compute(&self, compute: Compute) -> Result<(), Error> {
        let host = host_api().ok_or_else(no_host)?;
        // SAFETY: `context` is this call's; the host copies the structure.
        answered(unsafe { (host.rule_plan)(self.0.raw().context, &compute.0) })
    }
}

fn answered(status: i32) -> Result<(), Error> {
    if status == 0 { Ok(()) } else { Err(Error::Host { status }) }
}

impl<'a> Deref for RuleCall<'a> {
    type Target = Call<'a>;
    fn deref(&self) -> &Call<'a> {
        self.0
    }
}

fn none() -> Result<(), Error> {
    Err(Error::Unsupported { what: "what the op does not bring".into() })
}

/// A guarded kernel entry for a function of an op.
macro_rules! kernel_entry {
    ($op:ident, $run:expr) => {{
        unsafe extern "C" fn shim<$op: Op>(call: *const RawCall) -> i32 {
            // SAFETY: the host upholds the contract of `KernelFn`.
            unsafe { run_kernel(call, $run) }
        }
        shim::<$op>
    }};
}

/// The table of an op, for `static OP: RawOp = op::<MyOp>();`.
pub const fn op<O: Op>() -> RawOp {
    let (elementwise, kind) = match O::ELEMENTWISE {
        None => (0, 0),
        Some(Elementwise::Promoted(inputs)) => (inputs, 0),
        Some(Elementwise::Float(inputs)) => (inputs, op_flag::TO_FLOAT),
        Some(Elementwise::Bool(inputs)) => (inputs, op_flag::TO_BOOL),
    };
    RawOp {
        struct_size: size_of::<RawOp>() as u32,
        flags: kind | if O::BACKWARD_WANTS { op_flag::BACKWARD_WANTS } else { 0 },
        schema: RawStr::new(O::SCHEMA),
        rule: match O::ELEMENTWISE {
            None => Some(kernel_entry!(O, |call| O::rule(&RuleCall(call)))),
            Some(_) => None,
        },
        elementwise,
        saves: O::SAVES,
        saves_outputs: O::SAVES_OUTPUTS,
        n_parts: O::PARTS.len() as u32,
        backward: RawStr::new(O::BACKWARD),
        decomposition: match O::DECOMPOSITION {
            None => None,
            Some(_) => Some(kernel_entry!(O, |call| O::DECOMPOSITION.map_or_else(none, |run| run(call)))),
        },
        parts: O::PARTS.as_ptr(),
        samples: RawStr::new(O::SAMPLES),
        reference: match O::REFERENCE {
            None => None,
            Some(_) => Some(kernel_entry!(O, |call| O::REFERENCE.map_or_else(none, |run| run(call)))),
        },
    }
}
