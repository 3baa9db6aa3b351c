//! Op definitions. The typed call, the op table, gradcheck and the conformance cases all derive from one definition.

pub use crate::autograd::derivative::Derivative;
pub use crate::op::flags::OpFlags;

use super::sample::{ErrorSample, Sample};
use crate::Tensor;
use crate::autograd::derivative::{OpInfo, info};
use crate::error::Result;
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Decomposition, OpEntry, OpSpec, Out, Outputs, Rule};
use std::sync::OnceLock;

/// The set of dtypes that an op supports.
///
/// ```
/// use keyway::{DType, ops::def::Dtypes};
/// assert!(Dtypes::NUMERIC.has(DType::I32) && !Dtypes::NUMERIC.has(DType::BOOL));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Dtypes(u8);

impl Dtypes {
    /// f64, f32, f16, bf16.
    pub const FLOAT: Dtypes = Dtypes(1);
    /// Signed and unsigned integers of every width.
    pub const INT: Dtypes = Dtypes(2);
    /// bool.
    pub const BOOL: Dtypes = Dtypes(4);
    /// Floats and integers.
    pub const NUMERIC: Dtypes = Dtypes(3);
    /// All dtypes.
    pub const ALL: Dtypes = Dtypes(7);
    /// Integers and bool.
    pub const INTEGRAL: Dtypes = Dtypes(6);
    /// c64 and c128 only: an op that has no meaning for real numbers, or that is the identity for them.
    pub const COMPLEX: Dtypes = Dtypes(16);
    /// f64 and f32: an op whose algorithm is unstable in a narrower dtype.
    pub const F32_F64: Dtypes = Dtypes(8);

    /// Whether the set contains this dtype.
    ///
    /// ```
    /// use keyway::{DType, ops::def::Dtypes};
    /// assert!(Dtypes::FLOAT.has(DType::BF16) && !Dtypes::FLOAT.has(DType::I64));
    /// ```
    pub fn has(self, dtype: crate::DType) -> bool {
        if self == Dtypes::F32_F64 {
            return matches!(dtype, crate::DType::F32 | crate::DType::F64);
        }
        let bit = if dtype.is_complex() {
            16
        } else if dtype.is_float() {
            1
        } else if dtype.is_integer() {
            2
        } else {
            4
        };
        self.0 & bit != 0
    }
}

/// The forms that an op has besides the functional one.
///
/// ```
/// use keyway::ops::{def::Forms, pointwise, reduce};
/// assert_eq!((pointwise::exp::DEF.forms, reduce::sum::DEF.forms), (Forms::InPlace, Forms::Out));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Forms {
    /// No other form.
    New,
    /// `out=`.
    Out,
    /// `out=` and in place on argument 0.
    InPlace,
}

/// A decomposition: computes the results of an op with other ops.
///
/// ```
/// use keyway::dispatcher::op::Out;
/// use keyway::ops::{def::Decompose, pointwise::mul};
/// let square: Decompose = |args| Ok(mul::DEF.call(&[args.get(0), args.get(0)], Out::New)?);
/// # let _ = square;
/// ```
pub type Decompose = fn(&Args<'_>) -> RuleResult<Outputs>;

/// The definition of an op, built by [`OpDef::new`], [`OpDef::unary`] or [`OpDef::binary`].
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::ops::{def::{Derivative, OpDef}, rules};
/// static TWICE: OpDef = OpDef::unary(
///     "twice(Tensor self) -> Tensor",
///     rules::unary,
///     Derivative::of_grad(|b, g| g.set(0, || b.grad(0)?.mul(2.0))),
/// );
/// assert_eq!(TWICE.name(), "twice");
/// # Ok(()) }
/// ```
pub struct OpDef {
    /// The schema, such as `add(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor`.
    pub schema: &'static str,
    /// The shape, dtype and memory format of the outputs.
    pub rule: Rule,
    /// The decomposition used without a kernel.
    pub decomposition: Option<Decompose>,
    /// The views that the decomposition takes of its arguments.
    pub views: &'static [&'static str],
    /// The derivative of the op.
    pub derivative: Derivative,
    /// The forms of the op.
    pub forms: Forms,
    /// The supported dtypes.
    pub dtypes: Dtypes,
    /// Valid sample calls.
    pub samples: fn() -> Vec<Sample>,
    /// Sample calls that must fail, and their errors.
    pub errors: fn() -> Vec<ErrorSample>,
    /// The registration state and the flags; `Registration::new()`.
    pub registration: Registration,
}

/// The registered form of a definition, initialized at registration, and the flags that [`OpDef::with`] adds.
///
/// ```
/// use keyway::ops::def::{Derivative, OpDef, OpFlags, Registration};
/// use keyway::ops::rules;
/// let twice = OpDef {
///     registration: Registration::new(),
///     ..OpDef::unary("twice(Tensor self) -> Tensor", rules::unary, Derivative::ZERO)
/// };
/// assert!(!twice.is(OpFlags::EXACT));
/// ```
pub struct Registration {
    registered: OnceLock<&'static OpEntry>,
    flags: OpFlags,
    library: Option<&'static str>,
    info: OnceLock<OpInfo>,
}

impl Registration {
    /// An unregistered entry without flags.
    ///
    /// ```
    /// use keyway::ops::def::{Derivative, Registration, OpFlags, OpDef};
    /// use keyway::ops::rules;
    /// let twice = OpDef {
    ///     registration: Registration::new(),
    ///     ..OpDef::unary("twice(Tensor self) -> Tensor", rules::unary, Derivative::NotDifferentiable)
    /// };
    /// assert!(!twice.is(OpFlags::EXACT));
    /// ```
    #[allow(clippy::new_without_default)]
    pub const fn new() -> Registration {
        Registration {
            registered: OnceLock::new(),
            flags: OpFlags::NONE,
            library: None,
            info: OnceLock::new(),
        }
    }
}

impl OpDef {
    /// The op's name.
    ///
    /// ```
    /// assert_eq!(keyway::ops::pointwise::exp::DEF.name(), "exp");
    /// ```
    pub fn name(&self) -> &'static str {
        self.schema.split('(').next().unwrap_or(self.schema)
    }

    /// Adds flags to the definition.
    ///
    /// ```
    /// use keyway::ops::def::{Derivative, OpFlags, OpDef};
    /// use keyway::ops::rules;
    /// let twice = OpDef::unary("twice(Tensor self) -> Tensor", rules::unary, Derivative::ZERO);
    /// assert!(twice.with(OpFlags::EXACT).is(OpFlags::EXACT));
    /// ```
    #[must_use]
    pub const fn with(mut self, flags: OpFlags) -> OpDef {
        self.registration.flags = self.registration.flags.and(flags);
        self
    }

    /// Names the library of this project whose kernels serve the op, where that is not the device's own backend. The error of a
    /// call without it names the library to install.
    ///
    /// ```
    /// use keyway::ops::def::{Derivative, OpDef};
    /// use keyway::ops::rules;
    /// let twice = OpDef::unary("twice(Tensor self) -> Tensor", rules::unary, Derivative::ZERO);
    /// assert_eq!(twice.in_library("keyway-twice").library(), Some("keyway-twice"));
    /// ```
    #[must_use]
    pub const fn in_library(mut self, name: &'static str) -> OpDef {
        self.registration.library = Some(name);
        self
    }

    /// The library of [`OpDef::in_library`].
    ///
    /// ```
    /// assert_eq!(keyway::ops::pointwise::exp::DEF.library(), None);
    /// assert_eq!(keyway::ops::linalg::cholesky::DEF.library(), Some("keyway-linalg"));
    /// ```
    pub const fn library(&self) -> Option<&'static str> {
        self.registration.library
    }

    /// Whether all of `flags` hold for the op.
    ///
    /// ```
    /// use keyway::ops::{def::OpFlags, reduce};
    /// assert!(reduce::sum::DEF.is(OpFlags::AUTOCAST_F32) && !reduce::sum::DEF.is(OpFlags::AUTOCAST));
    /// ```
    pub const fn is(&self, flags: OpFlags) -> bool {
        self.registration.flags.has(flags)
    }

    /// The specification that is registered with the dispatcher.
    pub(crate) fn spec(&'static self) -> OpSpec {
        let info = self.registration.info.get_or_init(|| OpInfo {
            derivative: self.derivative,
            flags: self.registration.flags,
            definition: self,
        });
        OpSpec {
            schema: self.schema,
            rule: self.rule,
            decomposition: self.decomposition.map(|run| Decomposition { run, parts: self.parts() }),
            extra: Some(info),
            foreign: None,
            owner: "keyway",
            library: self.registration.library,
        }
    }

    pub(crate) fn bind(&self, entry: &'static OpEntry) {
        let _ = self.registration.registered.set(entry);
    }

    /// The registered op; starts the runtime if necessary.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// let entry = keyway::ops::pointwise::exp::DEF.entry()?;
    /// assert_eq!((entry.name, entry.schema.param_name(0)), ("exp", "self"));
    /// # Ok(()) }
    /// ```
    #[inline]
    pub fn entry(&'static self) -> Result<&'static OpEntry> {
        match self.registration.registered.get() {
            Some(entry) => Ok(entry),
            None => {
                crate::runtime::start()?;
                Ok(self.registration.registered.get().copied().unwrap_or_else(|| unreachable_entry(self)))
            }
        }
    }

    /// Calls the op through the dispatcher.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, dispatcher::op::Out, ops::pointwise::add};
    /// let a = Tensor::new([1.0f32])?;
    /// let made = add::DEF.call(&[(&a).into(), (&a).into(), 1.into()], Out::New)?;
    /// assert_eq!(Tensor::from_ref(made[0].clone()).item::<f32>()?, 2.0);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The errors of the op's rule, its derivative and its backend.
    #[inline]
    pub fn call(&'static self, values: &[Arg<'_>], out: Out<'_>) -> Result<Outputs> {
        let op = self.entry()?;
        Ok(keyway_dispatcher::call::call(Args { op, values }, out)?)
    }

    /// Calls the op and returns its first result.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, ops::pointwise::add};
    /// let a = Tensor::new([1.0f32])?;
    /// assert_eq!(add::DEF.run(&[(&a).into(), (&a).into(), 1.into()])?.item::<f32>()?, 2.0);
    /// # Ok(()) }
    /// ```
    #[inline]
    #[allow(clippy::missing_errors_doc)]
    pub fn run(&'static self, values: &[Arg<'_>]) -> Result<Tensor> {
        let op = self.entry()?;
        let mut result = keyway_dispatcher::call::call(Args { op, values }, Out::New);
        // Taken in place: this avoids moving the list of results, and an empty inline list needs no drop.
        if let Ok(made) = &mut result
            && made.len() == 1
            && !made.spilled()
            && let Some(tensor) = made.pop()
        {
            std::mem::forget(result);
            return Ok(Tensor::from_ref(tensor));
        }
        match result {
            Ok(made) => made.into_iter().next().map(Tensor::from_ref).ok_or_else(|| no_result(self)),
            Err(error) => Err(error.into()),
        }
    }

    /// Calls the op and returns all results.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, ops::pointwise::exp};
    /// let a = Tensor::new([0.0f32])?;
    /// assert_eq!(exp::DEF.run_all(&[(&a).into()])?.len(), 1);
    /// # Ok(()) }
    /// ```
    #[allow(clippy::missing_errors_doc)]
    pub fn run_all(&'static self, values: &[Arg<'_>]) -> Result<Vec<Tensor>> {
        Ok(self.call(values, Out::New)?.into_iter().map(Tensor::from_ref).collect())
    }

    /// Calls the op and returns its two results.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, ops::index::sort};
    /// let a = Tensor::new([3, 1, 2])?;
    /// let (values, indices) = sort::DEF.run_pair(&[(&a).into(), 0.into(), false.into(), true.into()])?;
    /// assert_eq!((values.to_vec::<i32>()?, indices.to_vec::<i64>()?), (vec![1, 2, 3], vec![1, 2, 0]));
    /// # Ok(()) }
    /// ```
    #[allow(clippy::missing_errors_doc)]
    pub fn run_pair(&'static self, values: &[Arg<'_>]) -> Result<(Tensor, Tensor)> {
        let mut made = self.call(values, Out::New)?.into_iter().map(Tensor::from_ref);
        match (made.next(), made.next()) {
            (Some(a), Some(b)) => Ok((a, b)),
            _ => Err(no_result(self)),
        }
    }

    /// Calls the in-place form on argument 0 and returns that tensor.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, ops::pointwise::exp};
    /// let a = Tensor::new([0.0f32])?;
    /// exp::DEF.run_in_place(&[(&a).into()])?;
    /// assert_eq!(a.item::<f32>()?, 1.0);
    /// # Ok(()) }
    /// ```
    #[allow(clippy::missing_errors_doc)]
    pub fn run_in_place(&'static self, values: &[Arg<'_>]) -> Result<Tensor> {
        let made = self.call(values, Out::InPlace)?;
        made.into_iter().next().map(Tensor::from_ref).ok_or_else(|| no_result(self))
    }

    /// Calls the `out=` form. An `out` without elements is replaced by a tensor of the result's size; any other must have the
    /// result's shape and a dtype that can hold it.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, ops::pointwise::exp};
    /// let (a, mut out) = (Tensor::new([0.0f32])?, Tensor::zeros(1)?);
    /// exp::DEF.run_out(&[(&a).into()], &mut out)?;
    /// assert_eq!(out.item::<f32>()?, 1.0);
    /// # Ok(()) }
    /// ```
    #[allow(clippy::missing_errors_doc)]
    pub fn run_out(&'static self, values: &[Arg<'_>], out: &mut Tensor) -> Result<()> {
        if out.elem_count() == 0 {
            let made = self.run(values)?;
            *out = if made.dtype() == out.dtype() { made } else { made.to_dtype(out.dtype())? };
            return Ok(());
        }
        self.call(values, Out::Given(&[out.as_ref()])).map(|_| ())
    }
}

#[cold]
pub(crate) fn no_result(def: &OpDef) -> crate::Error {
    keyway_dispatcher::Error::UnknownOp { name: format!("{} (it gave no result)", def.name()) }.into()
}

/// Every definition is in `ops::all()`, which the runtime registers as a whole before `start` returns.
#[cold]
fn unreachable_entry(def: &'static OpDef) -> ! {
    panic!("op `{}` is not in the list of its family, see `ops/mod.rs`", def.name())
}

/// The definition of a registered op; `None` for an op of a plugin.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::ops::{def::definition, pointwise::exp};
/// assert_eq!(definition(exp::DEF.entry()?).unwrap().schema, "exp(Tensor self) -> Tensor");
/// # Ok(()) }
/// ```
pub fn definition(op: &OpEntry) -> Option<&'static OpDef> {
    info(op)?.definition.downcast_ref()
}
