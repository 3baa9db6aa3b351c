//! The table of the measured cases, `cases.txt`, which describes its own syntax.

use keyway::DType;
use std::collections::BTreeMap;

/// One call that is measured.
#[derive(Clone, Debug)]
pub struct Case {
    /// `op/dtype/way/n/nth argument list of the op`, and `/gradients` or `/gradients-of-sum` with gradients.
    pub id: String,
    pub op: String,
    pub dtype: DType,
    pub args: Vec<Value>,
    /// The gradients of the results, if the call is recorded and the gradients of its tensors of the tested dtype are computed
    /// too.
    pub gradients: Option<Start>,
}

/// The gradient of each result: ones.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Start {
    /// With the strides of the result.
    Dense,
    /// One element for all, expanded, as after a sum or a mean.
    Expanded,
}

impl Start {
    /// The name in the listing, and the suffix of the case's id.
    pub fn names(self) -> (&'static str, &'static str) {
        match self {
            Start::Dense => ("dense", "gradients"),
            Start::Expanded => ("expanded", "gradients-of-sum"),
        }
    }
}

impl Case {
    /// The same call with its gradients, starting from these; `None` if no argument has a gradient.
    pub fn with_gradients(&self, start: Start) -> Option<Case> {
        let is_tested = |arg: &Value| match arg {
            Value::Tensor(spec) => spec.tested,
            Value::Tensors(list) => list.iter().any(|spec| spec.tested),
            _ => false,
        };
        (self.dtype.is_float() && self.args.iter().any(is_tested)).then(|| Case {
            id: format!("{}/{}", self.id, start.names().1),
            gradients: Some(start),
            ..self.clone()
        })
    }
}

/// An argument.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    Str(String),
    DType(DType),
    Ints(Vec<i64>),
    Floats(Vec<f64>),
    Tensor(Spec),
    Tensors(Vec<Spec>),
}

/// A tensor with elements uniform in a range, below `high`.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    pub dtype: DType,
    /// Whether the dtype is the tested one.
    pub tested: bool,
    pub sizes: Vec<usize>,
    pub range: (f64, f64),
    pub arrangement: Arrangement,
}

/// The strides of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrangement {
    Contiguous,
    /// With the last two dimensions transposed.
    Transposed,
    /// With one row that is expanded to all.
    Expanded,
    /// With the channels innermost, for images and kernels.
    ChannelsLast,
}

/// The table.
#[derive(Debug, Default)]
pub struct Table {
    pub cases: Vec<Case>,
    /// Ops that are not measured, with the reason.
    pub left_out: BTreeMap<String, String>,
}

/// Reads the table.
///
/// # Errors
/// The line with a syntax error, and the error.
pub fn table() -> Result<Table, String> {
    let mut table = Table::default();
    let mut lists = BTreeMap::<String, usize>::new();
    for (nth, line) in include_str!("cases.txt").lines().enumerate() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let wrong = |why: &str| format!("line {} of cases.txt: {why}: {line}", nth + 1);
        if let Some((ops, why)) = line.split_once(" ! ") {
            table.left_out.extend(ops.split(' ').map(|op| (op.to_string(), why.to_string())));
            continue;
        }
        let fields: Vec<&str> = line.split('|').map(str::trim).collect();
        let [ops, dtypes, sizes, ways, args] = fields[..] else { return Err(wrong("five fields")) };
        for op in ops.split(' ') {
            let list = lists.entry(op.to_string()).or_default();
            for dtype in dtypes_of(dtypes).ok_or_else(|| wrong("dtypes"))? {
                for n in sizes.split(' ') {
                    let n: usize = n.parse().map_err(|_| wrong("sizes"))?;
                    for way in ways.chars() {
                        let args = Parser { text: args, dtype, n }.all().ok_or_else(|| wrong("arguments"))?;
                        let Some(args) = laid(args, way) else { continue };
                        let id = format!("{op}/{}/{way}/{n}/{list}", dtype.name());
                        table.cases.push(Case { id, op: op.to_string(), dtype, args, gradients: None });
                    }
                }
            }
            *list += 1;
        }
    }
    Ok(table)
}

/// Sizes of the images, with 8 samples and 64 channels, on which elementwise ops are measured in both memory formats, in place
/// of matrices of 64 and 1000 rows.
const SIDES: [(usize, usize); 2] = [(64, 14), (1000, 56)];

impl Case {
    /// The same call in row-major order and in channels_last, if it has images; the matrices of an elementwise call
    /// become images.
    pub fn in_both_formats(&self) -> Option<[Case; 2]> {
        if self.id.split('/').nth(2) != Some("c") {
            return None;
        }
        let mut row_major = self.clone();
        let mut images = false;
        let elementwise = !self.args.iter().any(|arg| matches!(arg, Value::Int(_) | Value::Ints(_)));
        for spec in row_major.args.iter_mut().flat_map(Value::tensors_mut) {
            match (&spec.sizes[..], elementwise) {
                (&[_, _, _, _], _) => images = true,
                (&[n, m], true) if n == m => {
                    let side = SIDES.iter().find(|(rows, _)| *rows == n)?.1;
                    spec.sizes = vec![8, 64, side, side];
                    images = true;
                }
                _ => {}
            }
        }
        let mut last = row_major.clone();
        last.args = laid(last.args, 'l')?;
        images.then_some([row_major, last])
    }
}

impl Value {
    /// The case's tensors.
    fn tensors_mut(&mut self) -> &mut [Spec] {
        match self {
            Value::Tensor(spec) => std::slice::from_mut(spec),
            Value::Tensors(list) => list.as_mut_slice(),
            _ => &mut [],
        }
    }
}

fn dtypes_of(text: &str) -> Option<Vec<DType>> {
    const FLOAT: [DType; 4] = [DType::F32, DType::F64, DType::F16, DType::BF16];
    const INT: [DType; 3] = [DType::I64, DType::I32, DType::U8];
    let group = |name: &str| -> Option<Vec<DType>> {
        Some(match name {
            "float" => FLOAT.to_vec(),
            "int" => INT.to_vec(),
            "signed" => INT[..2].to_vec(),
            "real" => [&FLOAT[..], &INT].concat(),
            "any" => [&FLOAT[..], &INT, &[DType::BOOL]].concat(),
            name => vec![dtype_of(name)?],
        })
    };
    Some(text.split(' ').map(group).collect::<Option<Vec<_>>>()?.concat())
}

/// The arguments with these strides for their tensors; `None` where the strides make no difference.
fn laid(mut args: Vec<Value>, way: char) -> Option<Vec<Value>> {
    let mut tensors: Vec<&mut Spec> =
        args.iter_mut().flat_map(Value::tensors_mut).filter(|spec| spec.sizes.len() >= 2).collect();
    match way {
        'c' => {}
        't' => tensors.iter_mut().for_each(|spec| spec.arrangement = Arrangement::Transposed),
        'l' => {
            tensors.retain(|spec| spec.sizes.len() == 4);
            tensors.iter_mut().for_each(|spec| spec.arrangement = Arrangement::ChannelsLast);
        }
        _ => tensors.iter_mut().rfind(|spec| spec.tested)?.arrangement = Arrangement::Expanded,
    }
    (way == 'c' || !tensors.is_empty()).then_some(args)
}

/// Reads the arguments of a line for one dtype and size.
struct Parser<'a> {
    text: &'a str,
    dtype: DType,
    n: usize,
}

impl Parser<'_> {
    fn all(mut self) -> Option<Vec<Value>> {
        let mut args = Vec::new();
        while !self.text.is_empty() {
            args.push(self.value()?);
            self.text = self.text.trim_start();
        }
        Some(args)
    }

    /// The text before the character; both are consumed.
    fn until(&mut self, end: char) -> Option<&str> {
        let (before, after) = self.text.split_once(end)?;
        self.text = after;
        Some(before)
    }

    fn skip(&mut self, begin: char) -> bool {
        let rest = self.text.strip_prefix(begin);
        self.text = rest.unwrap_or(self.text);
        rest.is_some()
    }

    fn value(&mut self) -> Option<Value> {
        if self.skip('\'') {
            return Some(Value::Str(self.until('\'')?.to_string()));
        }
        if self.skip('(') {
            let n = self.n;
            let numbers = self.until(')')?.split(',');
            return numbers.map(|v| number(v, n)).collect::<Option<_>>().map(Value::Ints);
        }
        if self.skip('<') {
            let numbers = self.until('>')?.split(',').filter(|v| !v.is_empty());
            return numbers.map(|v| v.parse().ok()).collect::<Option<_>>().map(Value::Floats);
        }
        if self.skip('{') {
            let mut list = Vec::new();
            while !self.skip('}') {
                list.push(self.tensor()?);
                self.text = self.text.trim_start();
            }
            return Some(Value::Tensors(list));
        }
        let end = self.text.find(' ').unwrap_or(self.text.len());
        let word = &self.text[..end];
        let value = match word {
            "none" => Value::None,
            "true" | "false" => Value::Bool(word == "true"),
            _ => match word.strip_prefix(':') {
                Some(dtype) => Value::DType(dtype_of(dtype)?),
                None if word.contains('[') => return self.tensor().map(Value::Tensor),
                None => match number(word, self.n) {
                    Some(whole) => Value::Int(whole),
                    None => Value::Float(word.parse().ok()?),
                },
            },
        };
        self.text = &self.text[end..];
        Some(value)
    }

    fn tensor(&mut self) -> Option<Spec> {
        let end = self.text.find(['(', '['])?;
        let name = &self.text[..end];
        let tested = name == "T";
        let dtype = if tested { self.dtype } else { dtype_of(name)? };
        self.text = &self.text[end..];
        let n = self.n;
        let mut range = match dtype {
            dtype if dtype.is_float() => (0.1, 0.9),
            DType::BOOL => (0.0, 2.0),
            _ => (1.0, 9.0),
        };
        if self.skip('(') {
            let (low, high) = self.until(')')?.split_once(',')?;
            let bound = |text| number(text, n).map(|v| v as f64).or_else(|| text.parse().ok());
            range = (bound(low)?, bound(high)?);
        }
        self.skip('[').then_some(())?;
        let sizes = self.until(']')?;
        let sizes = sizes.split(',').filter(|size| !size.is_empty());
        let sizes = sizes.map(|size| usize::try_from(number(size, n)?).ok()).collect::<Option<_>>()?;
        Some(Spec { dtype, tested, sizes, range, arrangement: Arrangement::Contiguous })
    }
}

/// An integer, `n` or a multiple of it.
fn number(text: &str, n: usize) -> Option<i64> {
    match text.strip_suffix('n') {
        Some("") => Some(n as i64),
        Some(factor) => Some(factor.parse::<i64>().ok()? * n as i64),
        None => text.parse().ok(),
    }
}

fn dtype_of(name: &str) -> Option<DType> {
    DType::REAL.into_iter().find(|dtype| dtype.name() == name)
}
