//! What the dispatcher knows of an op: its schema, its rule, and how it may be composed of others. The ops
//! themselves are defined above; no op is named here.

use crate::dims::{self, Dims, wrap_dim};
use crate::dtype::{DType, Promotion};
use crate::error::{Error, Result};
use crate::schema::Schema;
use crate::tensor::TensorRef;
use keyway_sdk::abi::tensor::KernelFn;
use smallvec::SmallVec;
use std::any::Any;

/// The results of a call.
pub type Outputs = SmallVec<[TensorRef; 2]>;

/// One argument of a call, borrowed.
#[derive(Clone, Copy, Debug)]
pub enum Arg<'a> {
    /// Not given.
    None,
    /// A tensor.
    Tensor(&'a TensorRef),
    /// A list of tensors.
    Tensors(&'a [&'a TensorRef]),
    /// An integer, also as a number where a tensor is expected.
    Int(i64),
    /// A floating-point number, also where a tensor is expected.
    Float(f64),
    /// A truth value, also where a tensor is expected.
    Bool(bool),
    /// A list of integers.
    Ints(&'a [i64]),
    /// A list of floating-point numbers.
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
from_number!(i64 => Int as i64, i32 => Int as i64, f64 => Float as f64, f32 => Float as f64, bool => Bool as bool);

impl<'a> From<&'a TensorRef> for Arg<'a> {
    fn from(tensor: &'a TensorRef) -> Self {
        Arg::Tensor(tensor)
    }
}

impl<'a> Arg<'a> {
    /// An argument that may not be given.
    pub fn optional(value: Option<impl Into<Arg<'a>>>) -> Arg<'a> {
        value.map_or(Arg::None, Into::into)
    }

    /// What came, for messages.
    pub fn describe(&self) -> String {
        match self {
            Arg::None => "nothing".into(),
            Arg::Tensor(t) => format!("a tensor {:?}", t),
            Arg::Tensors(list) => format!("a list of {} tensors", list.len()),
            Arg::Int(v) => format!("the integer {v}"),
            Arg::Float(v) => format!("the number {v}"),
            Arg::Bool(v) => format!("{v}"),
            Arg::Ints(v) => format!("the integers {v:?}"),
            Arg::Floats(v) => format!("the numbers {v:?}"),
            Arg::Str(v) => format!("the text `{v}`"),
            Arg::DType(v) => format!("the dtype {v}"),
        }
    }
}

/// Where the results go.
#[derive(Clone, Copy, Debug)]
pub enum Out<'a> {
    /// Into new tensors.
    New,
    /// Into these.
    Given(&'a [&'a TensorRef]),
    /// Into argument 0.
    InPlace,
}

/// How an output's strides are chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Strides {
    /// From the arguments, as an element-wise op keeps their memory format.
    Preserve,
    /// As argument `i`, if that has the output's shape and is dense.
    Like(usize),
    /// Row-major.
    Contiguous,
    /// These. Rare, and kept apart so that a plan stays small.
    Exact(Box<Dims>),
}

impl Strides {
    /// These strides.
    pub fn exact(strides: Dims) -> Strides {
        Strides::Exact(Box::new(strides))
    }
}

/// The dtypes of an element-wise call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Typing {
    /// The dtype that the kernel is chosen by, and its inputs are cast to.
    pub compute: DType,
    /// The dtype of the result.
    pub result: DType,
}

impl Typing {
    /// One dtype for both.
    #[inline]
    pub fn of(dtype: DType) -> Typing {
        Typing { compute: dtype, result: dtype }
    }
}

/// One output, as the rule states it.
#[derive(Clone, Debug)]
pub struct OutSpec {
    /// Sizes.
    pub sizes: Dims,
    /// Element type.
    pub dtype: DType,
    /// Strides.
    pub strides: Strides,
}

/// What a rule says about a call. Masks have bit `i` for argument `i`.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The dtype that the kernel is chosen by.
    pub compute: DType,
    /// Tensor arguments that are cast to `compute` before the kernel sees them.
    pub cast: u32,
    /// Tensor arguments that are cast to i64: indices.
    pub cast_index: u32,
    /// Tensor arguments that the kernel sees in the shape of output 0, stride 0 where repeated.
    pub broadcast: u32,
    /// Tensor arguments that the kernel sees in row-major order without gaps.
    pub contiguous: u32,
    /// Whether an output may be exactly the memory of an input.
    pub alias: bool,
    /// The outputs.
    pub outputs: SmallVec<[OutSpec; 1]>,
}

impl Plan {
    /// A plan of one output, with everything else off.
    #[inline]
    pub fn one(compute: DType, sizes: Dims, dtype: DType, strides: Strides) -> Plan {
        let outputs = SmallVec::from_buf([OutSpec { sizes, dtype, strides }]);
        Plan { compute, cast: 0, cast_index: 0, broadcast: 0, contiguous: 0, alias: false, outputs }
    }

    /// The plan of an element-wise op: the arguments in `inputs` are cast to the dtype of the computation and broadcast
    /// together, and the result may lie where one of them does.
    ///
    /// # Errors
    /// [`Error::Broadcast`].
    pub fn elementwise(args: &Args<'_>, inputs: u32, typing: Typing) -> Result<Plan> {
        let plan = Plan::one(typing.compute, args.broadcast(inputs)?, typing.result, Strides::Preserve);
        Ok(Plan { cast: inputs, broadcast: inputs, alias: true, ..plan })
    }

    /// Adds an output.
    #[must_use]
    pub fn and(mut self, sizes: Dims, dtype: DType, strides: Strides) -> Plan {
        self.outputs.push(OutSpec { sizes, dtype, strides });
        self
    }
}

/// The geometry of a view.
#[derive(Clone, Debug)]
pub struct ViewSpec {
    /// First element, in elements from the storage's start.
    pub offset: usize,
    /// Sizes.
    pub sizes: Dims,
    /// Strides in elements; `None` is row-major.
    pub strides: Option<Dims>,
}

/// The arguments of a call as a rule reads them.
#[derive(Clone, Copy, Debug)]
pub struct Args<'a> {
    /// The op.
    pub op: &'static OpEntry,
    /// In schema order.
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

    #[cold]
    fn wrong(&self, i: usize, expected: &str) -> Error {
        Error::Value {
            op: self.op.name,
            argument: self.op.schema.param_name(i),
            expected: expected.to_string(),
            got: self.get(i).describe(),
        }
    }

    /// A tensor.
    ///
    /// # Errors
    /// [`Error::Value`] when something else came; so for all below.
    #[inline]
    pub fn tensor(&self, i: usize) -> Result<&'a TensorRef> {
        match self.get(i) {
            Arg::Tensor(t) => Ok(t),
            _ => Err(self.wrong(i, "a tensor")),
        }
    }

    /// A tensor, or `None` if it was not given.
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

    /// An integer, or `None` if it was not given.
    #[allow(clippy::missing_errors_doc)]
    pub fn optional_int(&self, i: usize) -> Result<Option<i64>> {
        match self.get(i) {
            Arg::None => Ok(None),
            _ => self.int(i).map(Some),
        }
    }

    /// A number as f64.
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

    /// A list of integers, or `None` if it was not given.
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

    /// A dtype, or `None` if it was not given.
    #[allow(clippy::missing_errors_doc)]
    pub fn optional_dtype(&self, i: usize) -> Result<Option<DType>> {
        match self.get(i) {
            Arg::DType(v) => Ok(Some(v)),
            Arg::None => Ok(None),
            _ => Err(self.wrong(i, "a dtype")),
        }
    }

    /// A dimension of `ndim`, counted from the front.
    ///
    /// # Errors
    /// [`Error::Dim`] when out of range.
    #[inline]
    pub fn dim(&self, i: usize, ndim: usize) -> Result<usize> {
        wrap_dim(self.op.name, self.int(i)?, ndim)
    }

    /// The promoted dtype of the arguments whose bits are set in `mask`: tensors, 0-d tensors and numbers.
    ///
    /// # Errors
    /// [`Error::Promotion`] where no dtype holds all.
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

    /// The one shape of the tensors in `mask`, if there is one.
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

    /// The one dtype of the arguments in `mask`, if all are tensors of it with dimensions.
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

/// How the outputs of an op come about.
#[derive(Clone, Copy)]
pub enum Rule {
    /// Each element of the output comes from those at its place in the arguments of the mask, which has bit `i` for
    /// argument `i`. They are cast to one dtype and broadcast together; the function states the dtypes.
    Elementwise(u32, fn(&Args<'_>) -> Result<Typing>),
    /// The host allocates what the function states, a kernel fills it.
    Structured(fn(&Args<'_>) -> Result<Plan>),
    /// On strided tensors a view of argument 0, made by the host; other layouts need a kernel.
    View(fn(&Args<'_>) -> Result<ViewSpec>),
    /// As `View`, with several outputs.
    Views(fn(&Args<'_>) -> Result<Vec<ViewSpec>>),
    /// The output's size depends on the data: the kernel makes it. The plan's outputs are ignored.
    Allocates(fn(&Args<'_>) -> Result<Plan>),
    /// The host computes the outputs itself; no backend is asked.
    Host(fn(&Args<'_>) -> Result<Outputs>),
    /// A plugin states the outputs; `None` means one output like argument 0.
    Foreign(Option<KernelFn>),
}

impl Rule {
    /// Whether results on strided tensors are views.
    pub fn is_view(&self) -> bool {
        matches!(self, Rule::View(_) | Rule::Views(_))
    }
}

/// How an op is written with other ops: the last candidate of each of its keys.
#[derive(Clone, Copy)]
pub struct Decomposition {
    /// Calls the other ops.
    pub run: fn(&Args<'_>) -> Result<Outputs>,
    /// Every op that `run` may call and that needs a kernel: the op counts as served for a dtype only where all of
    /// these are.
    pub parts: &'static [Part],
}

/// An op that a decomposition calls.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Part {
    /// Its name.
    pub op: &'static str,
    /// The dtype that its kernel is chosen by.
    pub dtype: PartDtype,
}

/// The dtype of a part of a decomposition, given that of the whole call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PartDtype {
    /// The compute dtype of the call.
    Compute,
    /// f32 for f16 and bf16, so that several steps are rounded once; else the compute dtype of the call.
    Widened,
    /// This one, whatever that of the call.
    Fixed(DType),
}

impl Part {
    /// A part in the compute dtype of the call.
    pub const fn new(op: &'static str) -> Part {
        Part { op, dtype: PartDtype::Compute }
    }

    /// A part that computes f16 and bf16 in f32.
    pub const fn widened(op: &'static str) -> Part {
        Part { op, dtype: PartDtype::Widened }
    }

    /// A part in one dtype.
    pub const fn fixed(op: &'static str, dtype: DType) -> Part {
        Part { op, dtype: PartDtype::Fixed(dtype) }
    }

    /// The dtype that the part's kernel is chosen by, for a call computed in `compute`.
    pub fn dtype_for(&self, compute: DType) -> DType {
        match self.dtype {
            PartDtype::Widened if matches!(compute, DType::F16 | DType::BF16) => DType::F32,
            PartDtype::Compute | PartDtype::Widened => compute,
            PartDtype::Fixed(dtype) => dtype,
        }
    }
}

/// An op as it is registered.
#[derive(Clone, Copy)]
pub struct OpSpec {
    /// See [`Schema::parse`].
    pub schema: &'static str,
    /// How the outputs come about.
    pub rule: Rule,
    /// How to do without a kernel of its own.
    pub decomposition: Option<Decomposition>,
    /// What the layer that defined the op keeps with it.
    pub extra: Option<&'static (dyn Any + Send + Sync)>,
    /// The op that is this one's backward; for ops of plugins.
    pub backward: Option<&'static str>,
    /// Who defined it.
    pub owner: &'static str,
}

/// A registered op.
pub struct OpEntry {
    /// Its place in the table.
    pub id: usize,
    /// Its name.
    pub name: &'static str,
    /// Its schema.
    pub schema: Schema,
    /// As it was registered.
    pub spec: OpSpec,
    /// Parameters where a bare number may stand for a tensor; bit `i` for parameter `i`.
    pub number_slots: u32,
}

impl std::fmt::Debug for OpEntry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.schema.text)
    }
}
