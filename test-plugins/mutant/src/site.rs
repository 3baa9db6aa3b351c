//! One call of one kernel, as passed to a fault.

use crate::raw::{Elements, Staged};
use crate::wrapped;
use keyway_sdk::Error;
use keyway_sdk::abi::codes::{status, tag};
use keyway_sdk::abi::tensor::{KernelFn, RawArg, RawCall, RawTensor};
use keyway_sdk::author::Call;
use std::sync::OnceLock;

/// A kernel of the mutant that replaces none of the wrapped backend's.
type Own = fn(&Site<'_>) -> Result<(), Error>;

/// A registered kernel.
pub struct Kernel {
    /// The op.
    pub op: &'static str,
    /// The dtype.
    pub dtype: &'static str,
    /// Whether the kernel is the one for channels_last.
    pub images: bool,
    own: Option<Own>,
    wrapped: OnceLock<KernelFn>,
}

impl Kernel {
    /// A kernel that calls the wrapped backend's.
    pub const fn new(op: &'static str, dtype: &'static str) -> Kernel {
        Kernel { op, dtype, images: false, own: None, wrapped: OnceLock::new() }
    }

    /// The same for channels_last: the wrapped backend's accepts any strides.
    pub const fn of_images(mut self) -> Kernel {
        self.images = true;
        self
    }

    /// A kernel that calls this function.
    pub const fn own(mut self, run: Own) -> Kernel {
        self.own = Some(run);
        self
    }
}

/// One call of a kernel.
pub struct Site<'a> {
    /// The call.
    pub call: &'a Call<'a>,
    /// The kernel.
    pub kernel: &'static Kernel,
}

impl<'a> Site<'a> {
    /// Runs the kernel as it should be.
    pub fn run(&self) -> Result<(), Error> {
        match self.kernel.own {
            Some(own) => own(self),
            None => self.run_raw(self.call.raw()),
        }
    }

    fn run_raw(&self, call: &RawCall) -> Result<(), Error> {
        let Kernel { op, dtype, wrapped, .. } = self.kernel;
        let run = match wrapped.get() {
            Some(run) => *run,
            None => {
                let found = wrapped::kernel(op, dtype)?;
                *wrapped.get_or_init(|| found)
            }
        };
        // SAFETY: the call is the host's, but for arguments and outputs that are tensors of the same dtype and
        // sizes and live until the return.
        match unsafe { run(call) } {
            status::OK => Ok(()),
            status => Err(Error::Host { status }),
        }
    }

    /// The arguments.
    pub fn args(&self) -> &'a [RawArg] {
        let raw = self.call.raw();
        // SAFETY: a call has `n_args` arguments; the host upholds this.
        unsafe { std::slice::from_raw_parts(raw.args, raw.n_args as usize) }
    }

    /// Runs the kernel with one argument replaced.
    pub fn run_with(&self, index: usize, arg: RawArg) -> Result<(), Error> {
        self.run_with_all(&[(index, arg)])
    }

    /// Runs the kernel with some arguments replaced.
    pub fn run_with_all(&self, replaced: &[(usize, RawArg)]) -> Result<(), Error> {
        let mut args = self.args().to_vec();
        replaced.iter().for_each(|&(index, arg)| args[index] = arg);
        self.run_raw(&RawCall { args: args.as_ptr(), ..*self.call.raw() })
    }

    /// Runs the kernel with some arguments replaced by tensors of this plugin.
    pub fn run_staged(&self, staged: &[(usize, Staged)]) -> Result<(), Error> {
        let mut args = self.args().to_vec();
        for (index, tensor) in staged {
            args[*index].value = std::ptr::from_ref(tensor.elements().raw()) as u64;
        }
        self.run_raw(&RawCall { args: args.as_ptr(), ..*self.call.raw() })
    }

    /// Runs the kernel into another first output.
    pub fn run_into(&self, output: &Staged) -> Result<(), Error> {
        let raw = self.call.raw();
        // SAFETY: a call has `n_outputs` outputs; the host upholds this.
        let mut outputs = unsafe { std::slice::from_raw_parts(raw.outputs, raw.n_outputs as usize) }.to_vec();
        outputs[0] = output.elements().raw();
        self.run_raw(&RawCall { outputs: outputs.as_ptr(), ..*raw })
    }

    /// Argument `index`, a tensor.
    pub fn input(&self, index: usize) -> Result<Elements<'a>, Error> {
        self.call.tensor(index)?;
        let raw = self.args()[index].value as *const RawTensor;
        // SAFETY: the value of a tensor argument is a tensor that the host lends for the call.
        Ok(unsafe { Elements::new(&*raw) })
    }

    /// The tensor arguments, with their indices.
    pub fn inputs(&self) -> Vec<(usize, Elements<'a>)> {
        let places = (0..self.args().len()).filter(|&i| self.args()[i].tag == tag::TENSOR);
        places.filter_map(|i| self.input(i).ok().map(|tensor| (i, tensor))).collect()
    }

    /// Output `index`.
    pub fn output(&self, index: usize) -> Result<Elements<'a>, Error> {
        self.call.output(index)?;
        // SAFETY: a call has `n_outputs` outputs; the output is there, as was checked.
        let raw = unsafe { *self.call.raw().outputs.add(index) };
        // SAFETY: an output is a tensor that the host lends for the call.
        Ok(unsafe { Elements::new(&*raw) })
    }

    /// Whether the first output is an argument: an in-place call.
    pub fn is_in_place(&self) -> Result<bool, Error> {
        let out = self.output(0)?.address();
        Ok(self.inputs().iter().any(|(_, input)| input.len() > 0 && input.address() == out))
    }

    /// Runs the kernel, then changes every element of the first output.
    pub fn then_map(&self, change: impl Fn(f64) -> f64) -> Result<(), Error> {
        self.run()?;
        self.output(0)?.map(change);
        Ok(())
    }

    /// Runs the kernel on changed copies of the arguments that are tensors.
    pub fn with_inputs(&self, change: impl Fn(f64) -> f64) -> Result<(), Error> {
        let staged: Vec<_> = self.inputs().iter().map(|(i, t)| (*i, Staged::copy(t))).collect();
        staged.iter().for_each(|(_, tensor)| tensor.elements().map(&change));
        self.run_staged(&staged)
    }
}
