//! Interposers: code around every call of selected ops.

use super::call::Call;
use super::error::Error;
use super::guard::guarded;
use super::host::{Arg, Lent};
use super::tensor::{Origin, OwnedTensor, Tensor};
use crate::abi::RawStr;
use crate::abi::codes::{interposed_flag, interposer_flag, tag};
use crate::abi::interposer::{RawInterposed, RawInterposer};
use std::ops::Deref;

/// Code that runs before and after each call of some ops, above autograd and below the profiler: it may read arguments and
/// outputs, replace them, fail the call, or compute the outputs itself. Registered with
/// [`register_interposer!`](crate::register_interposer).
///
/// ```
/// use keyway_sdk::author::{Error, Interposed, Interposer};
///
/// /// Refuses products of more than a million elements.
/// struct Small;
///
/// impl Interposer for Small {
///     const NAME: &'static str = "small";
///     const OPS: &'static [&'static str] = &["mm", "bmm"];
///
///     fn run(call: &mut Interposed<'_>) -> Result<(), Error> {
///         call.run_next()?;
///         match call.output(0)?.numel() {
///             n if n > 1_000_000 => Err(Error::Failed { detail: format!("{} made {n} elements", call.op()) }),
///             _ => Ok(()),
///         }
///     }
/// }
/// keyway_sdk::register_interposer!(Small);
/// ```
pub trait Interposer: 'static {
    /// The name by which a program enables and disables it; unique in a process, without spaces.
    const NAME: &'static str;
    /// The ops whose calls it handles, `*` for any text: `&["mm", "conv*"]`. Empty for every op. Other ops have no
    /// overhead.
    const OPS: &'static [&'static str] = &[];
    /// The interposer with the higher order runs first and so encloses the others.
    const ORDER: i32 = 0;
    /// Whether it is enabled until a thread excludes it, or only if a thread includes it.
    const DEFAULT_ON: bool = true;
    /// Called for each call of these ops. Ops that it calls itself do not call it again.
    ///
    /// # Errors
    /// An error fails the call. An error of [`Interposed::run_next`] reaches the caller unchanged.
    fn run(call: &mut Interposed<'_>) -> Result<(), Error>;
}

/// The target of a call's results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Outputs are new tensors.
    New,
    /// The output is argument 0.
    InPlace,
    /// Outputs are written to tensors of the caller.
    Out,
}

/// An argument of any kind, to be inspected or passed to [`call_op`](super::call_op).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Argument<'a> {
    /// An absent optional argument.
    None,
    /// A tensor.
    Tensor(Tensor<'a>),
    /// A list of tensors.
    Tensors(Vec<Tensor<'a>>),
    /// An integer.
    Int(i64),
    /// A float.
    Float(f64),
    /// A flag.
    Bool(bool),
    /// A list of integers.
    Ints(&'a [i64]),
    /// A list of floats.
    Floats(&'a [f64]),
    /// A string.
    Str(&'a str),
    /// A dtype code.
    Dtype(u16),
}

impl<'a> Argument<'a> {
    /// The argument for another call.
    pub fn arg(&'a self) -> Arg<'a> {
        match self {
            Argument::None => Arg::None,
            Argument::Tensor(t) => Arg::Tensor(*t),
            Argument::Tensors(list) => Arg::Tensors(list),
            Argument::Int(v) => Arg::Int(*v),
            Argument::Float(v) => Arg::Float(*v),
            Argument::Bool(v) => Arg::Bool(*v),
            Argument::Ints(v) => Arg::Ints(v),
            Argument::Floats(v) => Arg::Floats(v),
            Argument::Str(v) => Arg::Str(v),
            Argument::Dtype(v) => Arg::Dtype(*v),
        }
    }
}

/// A running call. Its arguments, as the caller passed them, are read as those of a [`Call`].
#[derive(Debug)]
pub struct Interposed<'a> {
    raw: &'a RawInterposed,
    op: &'a str,
    call: Call<'a>,
    n_outputs: Option<usize>,
}

impl<'a> Deref for Interposed<'a> {
    type Target = Call<'a>;
    fn deref(&self) -> &Call<'a> {
        &self.call
    }
}

fn done(status: i32) -> Result<(), Error> {
    if status == 0 { Ok(()) } else { Err(Error::Host { status }) }
}

impl<'a> Interposed<'a> {
    /// The op's name.
    pub fn op(&self) -> &'a str {
        self.op
    }

    /// The nesting depth: the number of calls of other ops that contain this one; 0 for a call of the program itself.
    pub fn depth(&self) -> usize {
        self.raw.depth as usize
    }

    /// Whether the thread runs a backward pass.
    pub fn in_backward(&self) -> bool {
        self.raw.flags & interposed_flag::BACKWARD != 0
    }

    /// Argument `index`, as the caller passed it.
    ///
    /// # Errors
    /// An index beyond the last, or an argument of a kind that this SDK does not know.
    pub fn argument(&self, index: usize) -> Result<Argument<'a>, Error> {
        let call = &self.call;
        Ok(match call.tag(index)? {
            tag::NONE => Argument::None,
            tag::TENSOR => Argument::Tensor(call.tensor(index)?),
            tag::TENSORS => Argument::Tensors(call.tensors(index)?.iter().collect()),
            tag::INT => Argument::Int(call.int(index)?),
            tag::FLOAT => Argument::Float(call.float(index)?),
            tag::BOOL => Argument::Bool(call.bool(index)?),
            tag::INTS => Argument::Ints(call.ints(index)?),
            tag::FLOATS => Argument::Floats(call.floats(index)?),
            tag::STR => Argument::Str(call.str(index)?),
            tag::DTYPE => Argument::Dtype(call.dtype(index)?),
            other => return Err(Error::Unsupported { what: format!("an argument of the kind {other}") }),
        })
    }

    /// The target of the results.
    pub fn form(&self) -> Form {
        match self.raw.flags {
            f if f & interposed_flag::IN_PLACE != 0 => Form::InPlace,
            f if f & interposed_flag::OUT != 0 => Form::Out,
            _ => Form::New,
        }
    }

    /// Replaces argument `index` by another value of the kind in the op's schema, before [`Interposed::run_next`].
    ///
    /// # Errors
    /// An argument of another kind, an index out of range, argument 0 of an in-place call, or a call that has run.
    pub fn set_argument(&mut self, index: usize, arg: Arg<'_>) -> Result<(), Error> {
        let lent = Lent::of(&arg)?;
        // SAFETY: `context` is this call's; the argument and its referents live until the host has copied them.
        done(unsafe { (self.raw.set_argument)(self.raw.context, index as u32, lent.raw()) })
    }

    /// Runs the remaining handlers and the call itself. If this is not called, each output must be set.
    ///
    /// # Errors
    /// The error of the call; a second call of this function.
    pub fn run_next(&mut self) -> Result<(), Error> {
        let mut count = 0;
        // SAFETY: `context` is this call's, and `count` is valid for the write.
        done(unsafe { (self.raw.next)(self.raw.context, &mut count) })?;
        self.n_outputs = Some(count as usize);
        Ok(())
    }

    /// The number of outputs: the number in the schema or, once the call has run, the actual one. `None` before that if
    /// it depends on the arguments.
    pub fn output_count(&self) -> Option<usize> {
        let stated = (self.raw.n_outputs != u32::MAX).then_some(self.raw.n_outputs as usize);
        self.n_outputs.or(stated)
    }

    /// Output `index` after [`Interposed::run_next`].
    ///
    /// # Errors
    /// A call that has not run, or an index beyond the last output.
    pub fn output(&self, index: usize) -> Result<Tensor<'_>, Error> {
        // SAFETY: `context` is this call's.
        let raw = unsafe { (self.raw.output)(self.raw.context, index as u32) };
        // SAFETY: not null, the tensor is valid until `run` returns; the host upholds this.
        match unsafe { raw.as_ref() } {
            Some(raw) => Ok(Tensor { raw, origin: Origin::Shared }),
            None => Err(Error::InvalidArgument {
                argument: "output",
                expected: "the index of an output, after `run_next`".into(),
                got: match self.n_outputs {
                    Some(count) => format!("{index}, of {count} outputs"),
                    None => format!("{index}, before `run_next`"),
                },
            }),
        }
    }

    /// Sets `tensor` as output `index`. After [`Interposed::run_next`] it must have the shape, dtype and device of the
    /// output that it replaces.
    ///
    /// # Errors
    /// Another shape, dtype or device, or an index beyond the last output.
    pub fn set_output(&mut self, index: usize, tensor: OwnedTensor) -> Result<(), Error> {
        // SAFETY: `context` is this call's; the handle is owned and given up here.
        done(unsafe { (self.raw.set_output)(self.raw.context, index as u32, tensor.into_handle()) })
    }
}

/// # Safety
/// `call` and all that it points to must be valid until this returns, as [`RawInterposed`] requires; the host upholds
/// this.
unsafe extern "C" fn entry<I: Interposer>(call: *const RawInterposed) -> i32 {
    guarded(|| {
        // SAFETY: per this function's contract.
        let raw = unsafe { &*call };
        // SAFETY: as above; the name's bytes live as long.
        let op = unsafe { raw.op.read() };
        // SAFETY: as above; the outputs are sealed, so no two `Call`s return the same one for writing.
        let inner = unsafe { Call::new(&*raw.call) }.sealed();
        I::run(&mut Interposed { raw, op: &op, call: inner, n_outputs: None })
    })
}

/// One `register_interposer!`, collected by `inventory` inside this library.
#[doc(hidden)]
pub struct InterposerItem(pub &'static RawInterposer);
inventory::collect!(InterposerItem);

/// The table of an interposer; `ops` are its [`Interposer::OPS`].
#[doc(hidden)]
pub const fn table<I: Interposer>(ops: &'static [RawStr]) -> RawInterposer {
    RawInterposer {
        struct_size: size_of::<RawInterposer>() as u32,
        flags: if I::DEFAULT_ON { interposer_flag::DEFAULT_ON } else { 0 },
        name: RawStr::new(I::NAME),
        ops: ops.as_ptr(),
        n_ops: ops.len() as u32,
        order: I::ORDER,
        run: entry::<I>,
    }
}

/// The raw forms of `N` static strings.
#[doc(hidden)]
pub const fn raw_strs<const N: usize>(texts: &[&'static str]) -> [RawStr; N] {
    let mut out = [RawStr::EMPTY; N];
    let mut i = 0;
    while i < N {
        out[i] = RawStr::new(texts[i]);
        i += 1;
    }
    out
}

/// Registers an [`Interposer`](crate::author::Interposer), and adds a record by which `keyway backend list` shows it
/// without opening the library.
#[macro_export]
macro_rules! register_interposer {
    ($interposer:ty) => {
        const _: () = {
            const __KEYWAY_OPS: &[&str] = <$interposer as $crate::author::Interposer>::OPS;
            const __KEYWAY_PARTS: &[&str] = &[
                <$interposer as $crate::author::Interposer>::NAME,
                if <$interposer as $crate::author::Interposer>::DEFAULT_ON { " on" } else { " off" },
            ];
            #[used]
            #[cfg_attr(not(target_vendor = "apple"), unsafe(link_section = ".note.keyway.i"))]
            #[cfg_attr(target_vendor = "apple", unsafe(link_section = "__DATA,__keyway_i"))]
            static __KEYWAY_RECORD: [u8; $crate::__private::manifest::encoded_len(__KEYWAY_PARTS)] =
                $crate::__private::manifest::encode(__KEYWAY_PARTS);
            static __KEYWAY_NAMES: [$crate::__private::RawStr; __KEYWAY_OPS.len()] =
                $crate::__private::raw_strs(__KEYWAY_OPS);
            static __KEYWAY_INTERPOSER: $crate::__private::RawInterposer =
                $crate::__private::interposer::<$interposer>(&__KEYWAY_NAMES);
            $crate::__private::inventory::submit! {
                $crate::__private::InterposerItem(&__KEYWAY_INTERPOSER)
            }
        };
    };
}
