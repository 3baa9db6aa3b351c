//! The inputs of a call as the oracle reads them.

use super::Unknown;
use super::promotion::{self, Operand};
use crate::array::{Array, Number};
use keyway::DType;

/// One argument.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Value {
    None,
    Array(Array),
    Arrays(Vec<Array>),
    Int(i64),
    Float(f64),
    Bool(bool),
    Ints(Vec<i64>),
    Floats(Vec<f64>),
    Str(String),
    DType(DType),
}

/// The arguments of a call, in the order of the op's schema. Reading an argument as another kind returns [`Unknown`].
#[derive(Clone, Debug, PartialEq)]
pub struct Inputs(pub Vec<Value>);

impl Inputs {
    fn wrong(&self, i: usize, expected: &str) -> Unknown {
        Unknown(format!("argument {i} is {:?}, not {expected}", self.0.get(i)))
    }

    /// Argument `i`; `None` beyond the last.
    pub fn get(&self, i: usize) -> &Value {
        self.0.get(i).unwrap_or(&Value::None)
    }

    /// Whether the argument is `None`.
    pub fn is_none(&self, i: usize) -> bool {
        matches!(self.get(i), Value::None)
    }

    /// A tensor.
    #[allow(clippy::missing_errors_doc)]
    pub fn array(&self, i: usize) -> Result<&Array, Unknown> {
        match self.get(i) {
            Value::Array(a) => Ok(a),
            _ => Err(self.wrong(i, "a tensor")),
        }
    }

    /// Argument `i` as a tensor, or `None`.
    #[allow(clippy::missing_errors_doc)]
    pub fn optional_array(&self, i: usize) -> Result<Option<&Array>, Unknown> {
        if self.is_none(i) { Ok(None) } else { self.array(i).map(Some) }
    }

    /// A list of tensors.
    #[allow(clippy::missing_errors_doc)]
    pub fn arrays(&self, i: usize) -> Result<&[Array], Unknown> {
        match self.get(i) {
            Value::Arrays(a) => Ok(a),
            _ => Err(self.wrong(i, "a list of tensors")),
        }
    }

    /// Argument `i` as a tensor; a scalar is a 0-d array (i64, f64 or bool).
    #[allow(clippy::missing_errors_doc)]
    pub fn operand(&self, i: usize) -> Result<Array, Unknown> {
        match self.get(i) {
            Value::Array(a) => Ok(a.clone()),
            Value::Int(v) => Ok(Array::scalar(DType::I64, Number::Int(i128::from(*v)))),
            Value::Float(v) => Ok(Array::scalar(DType::F64, Number::Float(*v))),
            Value::Bool(v) => Ok(Array::scalar(DType::BOOL, Number::Bool(*v))),
            _ => Err(self.wrong(i, "a tensor or a number")),
        }
    }

    /// As [`Inputs::operand`], in the compute dtype. A scalar is not rounded to f16 or bf16, but to f32, in which these are
    /// computed.
    #[allow(clippy::missing_errors_doc)]
    pub fn operand_in(&self, i: usize, dtype: DType) -> Result<Array, Unknown> {
        let operand = self.operand(i)?;
        let narrow = matches!(dtype, DType::F16 | DType::BF16);
        let number = !matches!(self.get(i), Value::Array(_));
        Ok(operand.cast(if narrow && number { DType::F32 } else { dtype }))
    }

    /// Argument `i` as a number.
    #[allow(clippy::missing_errors_doc)]
    pub fn number(&self, i: usize) -> Result<Number, Unknown> {
        match self.get(i) {
            Value::Int(v) => Ok(Number::Int(i128::from(*v))),
            Value::Float(v) => Ok(Number::Float(*v)),
            Value::Bool(v) => Ok(Number::Bool(*v)),
            _ => Err(self.wrong(i, "a number")),
        }
    }

    /// Argument `i`, a number, as f64.
    #[allow(clippy::missing_errors_doc)]
    pub fn float(&self, i: usize) -> Result<f64, Unknown> {
        self.number(i).map(Number::float)
    }

    /// An integer.
    #[allow(clippy::missing_errors_doc)]
    pub fn int(&self, i: usize) -> Result<i64, Unknown> {
        match self.get(i) {
            Value::Int(v) => Ok(*v),
            _ => Err(self.wrong(i, "an integer")),
        }
    }

    /// Argument `i` as an integer, or `None`.
    #[allow(clippy::missing_errors_doc)]
    pub fn optional_int(&self, i: usize) -> Result<Option<i64>, Unknown> {
        if self.is_none(i) { Ok(None) } else { self.int(i).map(Some) }
    }

    /// A truth value.
    #[allow(clippy::missing_errors_doc)]
    pub fn bool(&self, i: usize) -> Result<bool, Unknown> {
        match self.get(i) {
            Value::Bool(v) => Ok(*v),
            _ => Err(self.wrong(i, "true or false")),
        }
    }

    /// A list of integers.
    #[allow(clippy::missing_errors_doc)]
    pub fn ints(&self, i: usize) -> Result<&[i64], Unknown> {
        match self.get(i) {
            Value::Ints(v) => Ok(v),
            _ => Err(self.wrong(i, "a list of integers")),
        }
    }

    /// Argument `i` as a list of integers, or `None`.
    #[allow(clippy::missing_errors_doc)]
    pub fn optional_ints(&self, i: usize) -> Result<Option<&[i64]>, Unknown> {
        if self.is_none(i) { Ok(None) } else { self.ints(i).map(Some) }
    }

    /// Text.
    #[allow(clippy::missing_errors_doc)]
    pub fn str(&self, i: usize) -> Result<&str, Unknown> {
        match self.get(i) {
            Value::Str(v) => Ok(v),
            _ => Err(self.wrong(i, "text")),
        }
    }

    /// Argument `i` as text, or `None`.
    #[allow(clippy::missing_errors_doc)]
    pub fn optional_str(&self, i: usize) -> Result<Option<&str>, Unknown> {
        if self.is_none(i) { Ok(None) } else { self.str(i).map(Some) }
    }

    /// Argument `i` as a dtype, or `None`.
    #[allow(clippy::missing_errors_doc)]
    pub fn optional_dtype(&self, i: usize) -> Result<Option<DType>, Unknown> {
        match self.get(i) {
            Value::DType(v) => Ok(Some(*v)),
            Value::None => Ok(None),
            _ => Err(self.wrong(i, "a dtype")),
        }
    }

    /// Argument `i` as a dimension of `ndim`, normalised to a non-negative index.
    #[allow(clippy::missing_errors_doc)]
    pub fn dim(&self, i: usize, ndim: usize) -> Result<usize, Unknown> {
        wrap(self.int(i)?, ndim).ok_or_else(|| self.wrong(i, "a dimension"))
    }

    /// The promoted dtype of these arguments: tensors, 0-d tensors and scalars.
    #[allow(clippy::missing_errors_doc)]
    pub fn promote(&self, which: &[usize]) -> Result<DType, Unknown> {
        let mut operands = Vec::new();
        for &i in which {
            match self.get(i) {
                Value::Array(a) => operands.push(Operand::of(a)),
                Value::Arrays(list) => operands.extend(list.iter().map(Operand::of)),
                Value::Int(_) => operands.push(Operand::Number(DType::I64)),
                Value::Float(_) => operands.push(Operand::Number(DType::F64)),
                Value::Bool(_) => operands.push(Operand::Number(DType::BOOL)),
                Value::None => {}
                _ => return Err(self.wrong(i, "a tensor or a number")),
            }
        }
        promotion::result(&operands).ok_or_else(|| Unknown("no dtype holds all arguments".into()))
    }
}

/// Normalises a dimension, which counts from the end if negative, to a non-negative index. A 0-d tensor has dimensions 0
/// and -1.
pub fn wrap(dim: i64, ndim: usize) -> Option<usize> {
    let n = ndim.max(1) as i64;
    (-n..n).contains(&dim).then(|| dim.rem_euclid(n) as usize)
}
