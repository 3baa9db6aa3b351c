//! Ops and interposers as traits, and the tables made of them.

use super::call::Call;
use super::error::Error;
use super::export::{host_api, run_kernel};
use super::guard::guarded;
use super::tensor::no_host;
use crate::abi::RawStr;
use crate::abi::op::{NextFn, RawInterposer, RawOp};
use crate::abi::tensor::RawCall;
use std::ffi::c_void;
use std::ops::Deref;

/// A guarded kernel entry for a function of a trait.
macro_rules! kernel_entry {
    ($t:ident: $bound:ident, $run:expr) => {{
        unsafe extern "C" fn shim<$t: $bound>(call: *const RawCall) -> i32 {
            // SAFETY: the host upholds the contract of `KernelFn`.
            unsafe { run_kernel(call, $run) }
        }
        shim::<$t>
    }};
}
pub(super) use kernel_entry;

/// An op that the plugin brings.
pub trait Op: 'static {
    /// See [`RawOp::schema`].
    const SCHEMA: &'static str;
    /// See [`RawOp::backward`].
    const BACKWARD: &'static str = "";
    /// States each output with [`RuleCall::state`], from the arguments' metadata.
    fn rule(call: &RuleCall<'_>) -> Result<(), Error>;
}

/// A call as a shape rule sees it: for the arguments' metadata. Their elements may not have been computed yet.
#[derive(Debug)]
pub struct RuleCall<'a>(&'a Call<'a>);

impl RuleCall<'_> {
    /// States output `index`.
    pub fn state(&self, index: usize, dtype: u16, sizes: &[i64]) -> Result<(), Error> {
        let host = host_api().ok_or_else(no_host)?;
        let context = self.0.raw().context;
        // SAFETY: `context` is this call's; the host copies the sizes.
        match unsafe { (host.rule_output)(context, index as u32, dtype, sizes.len() as u32, sizes.as_ptr()) }
        {
            0 => Ok(()),
            status => Err(Error::Host { status }),
        }
    }
}

impl<'a> Deref for RuleCall<'a> {
    type Target = Call<'a>;
    fn deref(&self) -> &Call<'a> {
        self.0
    }
}

/// The table of an op, for `static OP: RawOp = op::<MyOp>();`.
pub const fn op<O: Op>() -> RawOp {
    RawOp {
        struct_size: size_of::<RawOp>() as u32,
        reserved: 0,
        schema: RawStr::new(O::SCHEMA),
        rule: Some(kernel_entry!(O: Op, |call| O::rule(&RuleCall(call)))),
        backward: RawStr::new(O::BACKWARD),
    }
}

/// The rest of an intercepted call.
#[derive(Debug)]
pub struct Next {
    run: NextFn,
    context: *mut c_void,
}

impl Next {
    /// Runs it. Its outputs stay with the host.
    pub fn run(self) -> Result<(), Error> {
        // SAFETY: the host gave the function with this context; `self` is used up, so it runs once.
        match unsafe { (self.run)(self.context) } {
            0 => Ok(()),
            status => Err(Error::Host { status }),
        }
    }
}

/// A functionality key above the backends that sees each call.
pub trait Interposer: 'static {
    /// Name for listings.
    const NAME: &'static str;
    /// Called around each op. `call` has the arguments as the caller gave them, and no outputs.
    fn run(op: &str, call: &Call<'_>, next: Next) -> Result<(), Error>;
}

/// The table of an interposer, for `static API: RawInterposer = interposer::<MyInterposer>();`.
pub const fn interposer<I: Interposer>() -> RawInterposer {
    unsafe extern "C" fn shim<I: Interposer>(
        op: RawStr,
        call: *const RawCall,
        next: NextFn,
        context: *mut c_void,
    ) -> i32 {
        guarded(|| {
            // SAFETY: the host upholds the contract of `RawInterposer::run`: both live until the return.
            let (name, raw) = unsafe { (op.read(), &*call) };
            // SAFETY: as above; the outputs are sealed, so this is the only `Call` that gives none.
            let call = unsafe { Call::new(raw) }.sealed();
            I::run(&name, &call, Next { run: next, context })
        })
    }
    RawInterposer {
        struct_size: size_of::<RawInterposer>() as u32,
        reserved: 0,
        name: RawStr::new(I::NAME),
        run: shim::<I>,
    }
}
