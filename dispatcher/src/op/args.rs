//! The arguments of a call.

use super::OpEntry;
use super::schema::Kind;
use crate::base::dims::{self, Dims, wrap_dim};
use crate::base::dtype::{DType, Promotion};
use crate::base::error::{Error, Result, shown, shown_all};
use crate::tensor::TensorRef;
use smallvec::SmallVec;

/// One argument of a call, borrowed.
///
/// ```
/// use keyway_dispatcher::op::Arg;
/// let number: Arg = 2.5.into();
/// assert!(matches!(number, Arg::Float(2.5)));
/// assert_eq!(number.describe(), "the number 2.5");
/// assert!(matches!(Arg::optional(None::<i64>), Arg::None));
/// ```
#[derive(Clone, Copy, Debug)]
pub enum Arg<'a> {
    /// An absent optional argument.
    None,
    /// A tensor.
    Tensor(&'a TensorRef),
    /// A list of tensors.
    Tensors(&'a [&'a TensorRef]),
    /// An integer, also as a scalar for a tensor parameter.
    Int(i64),
    /// A floating-point number, also as a scalar for a tensor parameter.
    Float(f64),
    /// A boolean, also as a scalar for a tensor parameter.
    Bool(bool),
    /// A list of integers.
    Ints(&'a [i64]),
    /// A list of floats.
    Floats(&'a [f64]),
    /// Text.
    Str(&'a str),
    /// An element type.
    DType(DType),
}

macro_rules! from_number {
    ($($type:ty => $variant:ident as $wide:ty),* $(,)?) => {$(
        impl From<$type> for Arg<'_> {
            fn from(value: $type) -> Self {
                Arg::$variant(<$wide>::from(value))
            }
        }
    )*};
}
from_number!(i64 => Int as i64, i32 => Int as i64, u32 => Int as i64, f64 => Float as f64, f32 => Float as f64);
from_number!(bool => Bool as bool);

macro_rules! from_size {
    ($($type:ty),*) => {$(
        impl From<$type> for Arg<'_> {
            /// Converts a number; one that does not fit i64 becomes a floating-point number.
            #[inline]
            fn from(value: $type) -> Self {
                i64::try_from(value).map_or(Arg::Float(value as f64), Arg::Int)
            }
        }
    )*};
}
from_size!(usize, isize, u64);

/// Converts `None` to an omitted argument. It is the only conversion from an `Option`, so that the type of `None` is
/// inferred; [`Arg::optional`] converts options of other types.
impl<'a> From<Option<Arg<'a>>> for Arg<'a> {
    fn from(value: Option<Arg<'a>>) -> Self {
        value.unwrap_or(Arg::None)
    }
}

impl<'a> From<&'a TensorRef> for Arg<'a> {
    fn from(tensor: &'a TensorRef) -> Self {
        Arg::Tensor(tensor)
    }
}

impl<'a> Arg<'a> {
    /// An optional argument, which may be absent.
    pub fn optional(value: Option<impl Into<Arg<'a>>>) -> Arg<'a> {
        value.map_or(Arg::None, Into::into)
    }

    /// A description of the value for messages.
    pub fn describe(&self) -> String {
        match self {
            Arg::None => "nothing".into(),
            Arg::Tensor(t) => format!("a tensor {:?}", t),
            Arg::Tensors(list) => format!("a list of {} tensors", list.len()),
            Arg::Int(v) => format!("the integer {}", shown(*v)),
            Arg::Float(v) => format!("the number {v}"),
            Arg::Bool(v) => format!("{v}"),
            Arg::Ints(v) => format!("the integers {}", shown_all(v)),
            Arg::Floats(v) => format!("the numbers {v:?}"),
            Arg::Str(v) => format!("the text `{v}`"),
            Arg::DType(v) => format!("the dtype {v}"),
        }
    }
}

/// The target of the results.
#[derive(Clone, Copy, Debug)]
pub enum Out<'a> {
    /// Into new tensors.
    New,
    /// Into these.
    Given(&'a [&'a TensorRef]),
    /// Into argument 0.
    InPlace,
}

/// The arguments of a call.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// Op and arguments.
    pub args: Args<'a>,
    /// The target of the results.
    pub out: Out<'a>,
}

/// The arguments of a call as a rule reads them.
#[derive(Clone, Copy, Debug)]
pub struct Args<'a> {
    /// The op.
    pub op: &'static OpEntry,
    /// The values, in schema order.
    pub values: &'a [Arg<'a>],
}

impl<'a> Args<'a> {
    /// The op's name, for errors.
    pub fn name(&self) -> &'static str {
        self.op.name
    }

    /// Argument `i`; `None` beyond the last.
    #[inline]
    pub fn get(&self, i: usize) -> Arg<'a> {
        self.values.get(i).copied().unwrap_or(Arg::None)
    }

    /// These arguments, with the schema's defaults appended for missing ones: a call by name that was written before the op
    /// got a further parameter stays correct.
    pub fn with_defaults(op: &OpEntry, values: &[Arg<'a>]) -> SmallVec<[Arg<'a>; 8]> {
        let missing = op.schema.params.get(values.len()..).unwrap_or_default();
        let defaults = missing.iter().map_while(|param| -> Option<Arg<'a>> { param.default_arg() });
        values.iter().copied().chain(defaults).collect()
    }

    /// The error of a part of the op, as an error of the op.
    #[cold]
    pub(crate) fn error_of_part(&self, error: Error) -> Error {
        let schema = &self.op.schema;
        let params: Vec<&str> = (0..schema.params.len()).map(|i| schema.param_name(i)).collect();
        error.within(self.op.name, &params)
    }

    /// Fails unless there is one argument for each parameter, of its kind. For boxed calls by name, which the compiler does
    /// not check: a plugin's kernel reads the number of arguments in its signature, each with the type of its letter.
    ///
    /// # Errors
    /// [`Error::Value`].
    pub fn check(&self) -> Result<()> {
        let schema = &self.op.schema;
        let most = schema.params.len();
        if self.values.len() != most {
            // Trailing arguments with a default may be omitted.
            let least = schema.params.iter().rposition(|p| p.default_arg().is_none()).map_or(0, |i| i + 1);
            let count = if least < most { format!("{least} to {most}") } else { most.to_string() };
            return Err(Error::Value {
                op: self.op.name,
                argument: "arguments",
                expected: format!("{count}, those of `{}`", schema.text),
                got: self.values.len().to_string(),
            });
        }
        let wrong =
            schema.params.iter().zip(self.values).position(|(param, value)| match (param.kind, value) {
                (_, Arg::None) => !param.optional && param.kind != Kind::OptionalTensor,
                (Kind::Tensor | Kind::OptionalTensor, Arg::Tensor(_))
                | (
                    Kind::Tensor | Kind::Scalar | Kind::Int | Kind::Float | Kind::Bool,
                    Arg::Int(_) | Arg::Float(_) | Arg::Bool(_),
                )
                | (Kind::Tensors, Arg::Tensors(_))
                | (Kind::Ints, Arg::Ints(_))
                | (Kind::Floats, Arg::Floats(_))
                | (Kind::Str, Arg::Str(_))
                | (Kind::DType, Arg::DType(_)) => false,
                _ => true,
            });
        wrong.map_or(Ok(()), |i| Err(self.wrong(i, schema.params[i].kind.name())))
    }

    #[cold]
    fn wrong(&self, i: usize, expected: &str) -> Error {
        Error::Value {
            op: self.op.name,
            argument: self.op.schema.param_name(i),
            expected: expected.to_string(),
            got: self.get(i).describe(),
        }
    }

    /// Argument `i` as a tensor.
    ///
    /// # Errors
    /// [`Error::Value`] if the argument is of another kind; the same for all methods below.
    #[inline]
    pub fn tensor(&self, i: usize) -> Result<&'a TensorRef> {
        match self.get(i) {
            Arg::Tensor(t) => Ok(t),
            _ => Err(self.wrong(i, "a tensor")),
        }
    }

    /// Argument `i` as a tensor, or `None` if it is absent.
    #[allow(missing_docs, clippy::missing_errors_doc)]
    pub fn optional_tensor(&self, i: usize) -> Result<Option<&'a TensorRef>> {
        match self.get(i) {
            Arg::Tensor(t) => Ok(Some(t)),
            Arg::None => Ok(None),
            _ => Err(self.wrong(i, "a tensor or nothing")),
        }
    }

    /// A list of tensors.
    #[allow(clippy::missing_errors_doc)]
    pub fn tensors(&self, i: usize) -> Result<&'a [&'a TensorRef]> {
        match self.get(i) {
            Arg::Tensors(t) => Ok(t),
            _ => Err(self.wrong(i, "a list of tensors")),
        }
    }

    /// An integer.
    #[allow(clippy::missing_errors_doc)]
    #[inline]
    pub fn int(&self, i: usize) -> Result<i64> {
        match self.get(i) {
            Arg::Int(v) => Ok(v),
            _ => Err(self.wrong(i, "an integer")),
        }
    }

    /// Argument `i` as an integer, or `None` if it is absent.
    #[allow(clippy::missing_errors_doc)]
    pub fn optional_int(&self, i: usize) -> Result<Option<i64>> {
        match self.get(i) {
            Arg::None => Ok(None),
            _ => self.int(i).map(Some),
        }
    }

    /// Argument `i`, a number, as f64.
    #[allow(clippy::missing_errors_doc)]
    pub fn float(&self, i: usize) -> Result<f64> {
        match self.get(i) {
            Arg::Float(v) => Ok(v),
            Arg::Int(v) => Ok(v as f64),
            Arg::Bool(v) => Ok(f64::from(u8::from(v))),
            _ => Err(self.wrong(i, "a number")),
        }
    }

    /// A truth value.
    #[allow(clippy::missing_errors_doc)]
    pub fn bool(&self, i: usize) -> Result<bool> {
        match self.get(i) {
            Arg::Bool(v) => Ok(v),
            _ => Err(self.wrong(i, "true or false")),
        }
    }

    /// A list of integers.
    #[allow(clippy::missing_errors_doc)]
    #[inline]
    pub fn ints(&self, i: usize) -> Result<&'a [i64]> {
        match self.get(i) {
            Arg::Ints(v) => Ok(v),
            _ => Err(self.wrong(i, "a list of integers")),
        }
    }

    /// Argument `i` as a list of integers, or `None` if it is absent.
    #[allow(clippy::missing_errors_doc)]
    pub fn optional_ints(&self, i: usize) -> Result<Option<&'a [i64]>> {
        match self.get(i) {
            Arg::None => Ok(None),
            _ => self.ints(i).map(Some),
        }
    }

    /// Text.
    #[allow(clippy::missing_errors_doc)]
    pub fn str(&self, i: usize) -> Result<&'a str> {
        match self.get(i) {
            Arg::Str(v) => Ok(v),
            _ => Err(self.wrong(i, "text")),
        }
    }

    /// Argument `i` as a dtype, or `None` if it is absent.
    #[allow(clippy::missing_errors_doc)]
    pub fn optional_dtype(&self, i: usize) -> Result<Option<DType>> {
        match self.get(i) {
            Arg::DType(v) => Ok(Some(v)),
            Arg::None => Ok(None),
            _ => Err(self.wrong(i, "a dtype")),
        }
    }

    /// Argument `i` as a dimension of `ndim`, normalised to a non-negative index.
    ///
    /// # Errors
    /// [`Error::Dim`] if out of range.
    #[inline]
    pub fn dim(&self, i: usize, ndim: usize) -> Result<usize> {
        wrap_dim(self.op.name, self.int(i)?, ndim)
    }

    /// The promoted dtype of the arguments whose bits are set in `mask`: tensors, 0-d tensors and scalars.
    ///
    /// # Errors
    /// [`Error::Promotion`] if no dtype holds all.
    #[inline]
    pub fn promote(&self, mask: u32) -> Result<DType> {
        match self.common_dtype(mask) {
            Some(dtype) => Ok(dtype),
            None => self.promote_all(mask),
        }
    }

    fn promote_all(&self, mask: u32) -> Result<DType> {
        let mut promotion = Promotion::default();
        for (i, arg) in self.values.iter().enumerate() {
            if mask & (1 << i) == 0 {
                continue;
            }
            match arg {
                Arg::Tensor(t) => promotion.tensor(t.dtype(), t.ndim()),
                Arg::Tensors(list) => list.iter().for_each(|t| promotion.tensor(t.dtype(), t.ndim())),
                Arg::Int(_) => promotion.number(DType::I64),
                Arg::Float(_) => promotion.number(DType::F64),
                Arg::Bool(_) => promotion.number(DType::BOOL),
                _ => {}
            }
        }
        promotion.result().map_err(|(left, right)| Error::Promotion { op: self.op.name, left, right })
    }

    /// The shape that the tensors whose bits are set in `mask` broadcast to.
    ///
    /// # Errors
    /// [`Error::Broadcast`].
    #[inline]
    pub fn broadcast(&self, mask: u32) -> Result<Dims> {
        match self.common_sizes(mask) {
            Some(sizes) => Ok(Dims::from_slice(sizes)),
            None => self.broadcast_all(mask),
        }
    }

    fn broadcast_all(&self, mask: u32) -> Result<Dims> {
        let mut shapes = self.values.iter().enumerate().filter_map(|(i, arg)| match arg {
            Arg::Tensor(t) if mask & (1 << i) != 0 => Some(t.sizes()),
            _ => None,
        });
        let first = shapes.next().unwrap_or(&[]);
        let Some(other) = shapes.find(|s| !dims::same(first, s)) else { return Ok(Dims::from_slice(first)) };
        let mut shape = dims::broadcast(self.op.name, first, other)?;
        for sizes in shapes {
            shape = dims::broadcast(self.op.name, &shape, sizes)?;
        }
        Ok(shape)
    }

    /// The shape that all tensors in `mask` have; `None` if they differ.
    #[inline]
    fn common_sizes(&self, mask: u32) -> Option<&'a [usize]> {
        let mut common: Option<&'a [usize]> = None;
        for (i, arg) in self.values.iter().enumerate() {
            if let (Arg::Tensor(t), true) = (arg, mask & (1 << i) != 0)
                && !dims::same(common.get_or_insert(t.sizes()), t.sizes())
            {
                return None;
            }
        }
        common
    }

    /// The dtype of the arguments in `mask` if all are tensors of it with at least one dimension.
    #[inline]
    fn common_dtype(&self, mask: u32) -> Option<DType> {
        let mut common = None;
        for (i, arg) in self.values.iter().enumerate() {
            match arg {
                _ if mask & (1 << i) == 0 => {}
                Arg::Tensor(t) if t.ndim() > 0 && *common.get_or_insert(t.dtype()) == t.dtype() => {}
                _ => return None,
            }
        }
        common
    }
}
