//! Printing, by the rules of PyTorch: four digits, columns aligned, scientific notation if the range demands it, above
//! 1,000 elements only the edges, lines of at most 80 columns. A tensor with many dimensions, whose edges are millions of
//! elements, is summarised further, and only printed elements are read.

use super::Tensor;
use crate::DType;
use crate::error::Result;
use keyway_dispatcher::Device;
use keyway_dispatcher::dtype::Category;
use std::fmt;

/// Elements printed at each end of a summarised dimension.
const EDGE: usize = 3;
/// Tensors of more elements are cut short.
const MOST: usize = 1000;
/// Maximum number of printed elements, if the edges can be shortened enough.
const SHOWN: usize = 10_000;
/// Columns of a line.
const LINE: usize = 80;
/// Digits after the decimal point, unless the format has a precision: `{:.2}`.
const DIGITS: usize = 4;
const OPEN: &str = "tensor(";

/// The elements as in [`Display`](fmt::Display); with `{:#?}` the metadata of the tensor without reading it.
impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if f.alternate() { fmt::Debug::fmt(&self.inner, f) } else { fmt::Display::fmt(self, f) }
    }
}

/// The elements, or the reason if they cannot be read. A precision applies to the elements.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::Tensor;
/// let a = Tensor::from_vec(vec![1.0f32, 2.5, -3.25, 4.0], (2, 2))?;
/// assert_eq!(a.to_string(), "tensor([[ 1.0000,  2.5000],\n        [-3.2500,  4.0000]])");
/// assert_eq!(format!("{:.1}", a.narrow(0, 0, 1)?), "tensor([[1.0, 2.5]])");
/// # Ok(()) }
/// ```
impl fmt::Display for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = f.precision().unwrap_or(DIGITS);
        let body = if self.inner.is_strided() { strided(self, digits) } else { Ok(composite(self, digits)) };
        let body = body.unwrap_or_else(|error| format!("<cannot be read: {error}>"));
        f.write_str(&with_notes(format!("{OPEN}{body}"), &notes(self)))
    }
}

/// The notes after the elements.
fn notes(t: &Tensor) -> Vec<String> {
    let mut notes = Vec::new();
    if t.device() != Device::CPU {
        notes.push(format!("device={}", t.device()));
    }
    if (t.elem_count() == 0 && t.rank() != 1) || !t.inner.is_strided() {
        let sizes: Vec<String> = t.shape().iter().map(ToString::to_string).collect();
        notes.push(format!("size=({})", sizes.join(", ")));
    }
    let usual = if t.elem_count() == 0 { &[DType::F32][..] } else { &[DType::F32, DType::I64, DType::BOOL] };
    if !usual.contains(&t.dtype()) {
        notes.push(format!("dtype={}", t.dtype()));
    }
    if !t.inner.is_strided() {
        notes.push(format!("layout={}", t.layout()));
    }
    match t.grad_fn() {
        Some(node) => notes.push(format!("grad_fn=<{}>", node.name())),
        None if t.requires_grad() => notes.push("requires_grad=true".to_string()),
        None => {}
    }
    notes
}

fn with_notes(mut text: String, notes: &[String]) -> String {
    let mut column = text.rsplit('\n').next().map_or(0, str::len) + 2;
    for note in notes {
        if column + note.len() + 2 > LINE {
            text += &format!(",\n{:indent$}{note}", "", indent = OPEN.len());
            column = OPEN.len() + note.len();
        } else {
            text += &format!(", {note}");
            column += note.len() + 2;
        }
    }
    text + ")"
}

/// The components of a composite layout, each as a tensor, and its attributes, all with their names.
fn composite(t: &Tensor, digits: usize) -> String {
    let layout = keyway_dispatcher::table::current().layout(t.layout());
    let name = |names: Option<&Vec<String>>, i: usize| {
        names.and_then(|names| names.get(i)).map(|name| format!("{name}=")).unwrap_or_default()
    };
    let indent = " ".repeat(OPEN.len());
    let mut parts = Vec::new();
    for (i, component) in t.inner.components().iter().enumerate() {
        let head = name(layout.map(|l| &l.components), i);
        let under = format!("\n{indent}{}", " ".repeat(head.chars().count()));
        let component = format!("{:.digits$}", Tensor::from_ref(component.shallow_copy()));
        parts.push(head + &component.replace('\n', &under));
    }
    for (i, attr) in t.inner.attributes().iter().enumerate() {
        let name = name(layout.map(|l| &l.attrs), i);
        // A flag, which attributes store as a number.
        let flag = t.is_coordinates().then(|| (t.attrs()[i] != 0).to_string());
        let attr = flag.unwrap_or_else(|| attr.to_string());
        parts.push(name + &attr);
    }
    parts.join(&format!(",\n{indent}"))
}

/// One element.
#[derive(Clone)]
enum Value {
    Bool(bool),
    Integer(i128),
    Real(f64),
    /// Real and imaginary part.
    Complex(f64, f64),
    /// Text from the plugin.
    Text(String),
}

/// Number of elements printed at the beginning and the end of a dimension; `None` for all.
type Cut = Option<(usize, usize)>;

/// The summary of each dimension of a large tensor: shorter edges if the normal ones have too many elements, and of the
/// outermost dimensions only the first element.
fn cuts(sizes: &[usize]) -> Vec<Cut> {
    let all = |edge: usize| sizes.iter().map(|&n| (n > 2 * edge).then_some((edge, edge))).collect::<Vec<_>>();
    let fits = |cuts: &[Cut]| {
        let shown = |(&size, cut): (&usize, &Cut)| cut.map_or(size, |(front, back)| front + back);
        sizes.iter().zip(cuts).map(shown).fold(1, usize::saturating_mul) <= SHOWN
    };
    let mut cuts = (1..=EDGE).rev().map(all).find(|cuts| fits(cuts)).unwrap_or_else(|| all(1));
    for d in 0..sizes.len() - 1 {
        if fits(&cuts) {
            break;
        }
        if sizes[d] > 1 {
            cuts[d] = Some((1, 0));
        }
    }
    cuts
}

/// The printed elements; a summarised list has both ends and the position of the gap.
enum Shown {
    Values(Vec<Value>, Option<usize>),
    Lists(Vec<Shown>, Option<usize>),
}

fn strided(t: &Tensor, digits: usize) -> Result<String> {
    if t.elem_count() == 0 {
        return Ok("[]".to_string());
    }
    // Outside the graph, whatever the modes of this thread are.
    let t = t.detach();
    if t.rank() == 0 {
        let values = decode(&t)?;
        let style = Style::of(&values, digits);
        return Ok(values.first().map_or_else(String::new, |v| style.text(v)));
    }
    let cuts = if t.elem_count() > MOST { cuts(t.shape()) } else { vec![None; t.rank()] };
    let shown = collect(&t, &cuts)?;
    let mut values = Vec::new();
    shown.visit(&mut values);
    let style = Style::of(&values, digits);
    Ok(shown.text(&style, OPEN.len(), t.rank()))
}

fn collect(t: &Tensor, cuts: &[Cut]) -> Result<Shown> {
    let (size, cut) = (t.shape()[0], cuts[0]);
    let gap = cut.map(|(front, _)| front);
    let (front, back) = cut.unwrap_or((size, 0));
    if t.rank() == 1 {
        let mut values = decode(&t.narrow(0, 0, front)?)?;
        if back > 0 {
            values.extend(decode(&t.narrow(0, (size - back) as i64, back)?)?);
        }
        return Ok(Shown::Values(values, gap));
    }
    let chosen = (0..front).chain(size - back..size);
    let lists = chosen.map(|i| collect(&t.select(0, i)?, &cuts[1..])).collect::<Result<_>>()?;
    Ok(Shown::Lists(lists, gap))
}

fn decode(t: &Tensor) -> Result<Vec<Value>> {
    let bytes = t.to_bytes()?;
    macro_rules! read {
        ($t:ty, $make:expr) => {
            bytes
                .as_chunks::<{ size_of::<$t>() }>()
                .0
                .iter()
                .map(|b| $make(<$t>::from_ne_bytes(*b)))
                .collect()
        };
    }
    Ok(match t.dtype() {
        DType::BOOL => bytes.iter().map(|&b| Value::Bool(b != 0)).collect(),
        DType::U8 => read!(u8, |v| Value::Integer(i128::from(v))),
        DType::I8 => read!(i8, |v| Value::Integer(i128::from(v))),
        DType::I16 => read!(i16, |v| Value::Integer(i128::from(v))),
        DType::U16 => read!(u16, |v| Value::Integer(i128::from(v))),
        DType::I32 => read!(i32, |v| Value::Integer(i128::from(v))),
        DType::U32 => read!(u32, |v| Value::Integer(i128::from(v))),
        DType::I64 => read!(i64, |v| Value::Integer(i128::from(v))),
        DType::U64 => read!(u64, |v| Value::Integer(i128::from(v))),
        DType::C64 | DType::C128 => complex(&bytes, t.dtype()),
        dtype if dtype.is_built_in() => t.to_vec_f64()?.into_iter().map(Value::Real).collect(),
        dtype => decode_by_plugin(t, dtype, &bytes)?,
    })
}

/// Complex elements, stored as pairs of real and imaginary part.
fn complex(bytes: &[u8], dtype: DType) -> Vec<Value> {
    let parts: Vec<f64> = match dtype {
        DType::C64 => bytes.as_chunks().0.iter().map(|b| f32::from_ne_bytes(*b).into()).collect(),
        _ => bytes.as_chunks().0.iter().map(|b| f64::from_ne_bytes(*b)).collect(),
    };
    parts.as_chunks().0.iter().map(|&[real, imaginary]| Value::Complex(real, imaginary)).collect()
}

/// The elements of a plugin's dtype: text from the plugin, otherwise values of their category.
fn decode_by_plugin(t: &Tensor, dtype: DType, bytes: &[u8]) -> Result<Vec<Value>> {
    let texts: Option<Vec<_>> = bytes.chunks_exact(dtype.size()).map(|e| dtype.format_element(e)).collect();
    if let Some(texts) = texts {
        return texts.into_iter().map(|text| Ok(Value::Text(text?))).collect();
    }
    let number = |x: f64| match dtype.category() {
        Category::Bool => Value::Bool(x != 0.0),
        Category::Integer => Value::Integer(x as i128),
        _ => Value::Real(x),
    };
    Ok(t.to_vec_f64()?.into_iter().map(number).collect())
}

/// Real and imaginary parts, if all values are complex.
fn complex_parts(values: &[Value]) -> Option<Vec<Value>> {
    let parts = values.iter().map(|value| match *value {
        Value::Complex(real, imaginary) => Some([Value::Real(real), Value::Real(imaginary)]),
        _ => None,
    });
    parts
        .collect::<Option<Vec<_>>>()
        .filter(|parts| !parts.is_empty())
        .map(|parts| parts.into_iter().flatten().collect())
}

/// The number format of the elements of one tensor.
struct Style {
    whole: bool,
    scientific: bool,
    width: usize,
    /// Digits after the decimal point.
    digits: usize,
}

impl Style {
    fn of(values: &[Value], digits: usize) -> Style {
        let mut style = Style { whole: true, scientific: false, width: 1, digits };
        if let Some(parts) = complex_parts(values) {
            style = Style::of(&parts, digits);
            style.whole = false;
            style.width = values.iter().map(|v| style.plain(v).chars().count()).max().unwrap_or(1);
            return style;
        }
        if !values.iter().any(|v| matches!(v, Value::Real(_))) {
            style.width = values.iter().map(|v| style.plain(v).chars().count()).max().unwrap_or(1);
            return style;
        }
        // Zeros, infinities and NaN do not affect the style.
        let finite = |v: &Value| matches!(v, Value::Real(x) if x.is_finite() && *x != 0.0);
        let numbers: Vec<f64> = values
            .iter()
            .filter(|v| finite(v))
            .filter_map(|v| if let Value::Real(x) = v { Some(*x) } else { None })
            .collect();
        let (least, most) =
            numbers.iter().fold((f64::INFINITY, 0.0f64), |(a, b), x| (a.min(x.abs()), b.max(x.abs())));
        style.whole = numbers.iter().all(|x| x.fract() == 0.0);
        style.scientific =
            !numbers.is_empty() && (most / least > 1000.0 || most > 1e8 || (!style.whole && least < 1e-4));
        style.width = numbers.iter().map(|x| style.plain(&Value::Real(*x)).len()).max().unwrap_or(1);
        style
    }

    /// Without padding.
    fn plain(&self, value: &Value) -> String {
        match *value {
            Value::Bool(v) => if v { "True" } else { "False" }.to_string(),
            Value::Integer(v) => v.to_string(),
            Value::Real(v) if v.is_nan() => "nan".to_string(),
            Value::Real(v) if v.is_infinite() => if v > 0.0 { "inf" } else { "-inf" }.to_string(),
            Value::Real(v) if self.scientific => {
                let text = format!("{v:.*e}", self.digits);
                let (digits, power) = text.split_once('e').unwrap_or((&text, "0"));
                let (sign, power) = power.strip_prefix('-').map_or(('+', power), |p| ('-', p));
                format!("{digits}e{sign}{power:0>2}")
            }
            Value::Real(v) if self.whole => format!("{v:.0}."),
            Value::Real(v) => format!("{v:.*}", self.digits),
            Value::Complex(real, imaginary) => {
                let sign = if imaginary.is_sign_negative() && !imaginary.is_nan() { "-" } else { "+" };
                format!(
                    "{}{sign}{}j",
                    self.plain(&Value::Real(real)),
                    self.plain(&Value::Real(imaginary.abs()))
                )
            }
            Value::Text(ref text) => text.clone(),
        }
    }

    fn text(&self, value: &Value) -> String {
        format!("{:>width$}", self.plain(value), width = self.width)
    }
}

impl Shown {
    fn visit(&self, into: &mut Vec<Value>) {
        match self {
            Shown::Values(values, _) => into.extend_from_slice(values),
            Shown::Lists(lists, _) => lists.iter().for_each(|l| l.visit(into)),
        }
    }

    fn text(&self, style: &Style, indent: usize, ndim: usize) -> String {
        let indented = " ".repeat(indent + 1);
        match self {
            Shown::Values(values, gap) => {
                let mut items: Vec<String> = values.iter().map(|v| style.text(v)).collect();
                if let Some(at) = *gap {
                    items.insert(at, " ...".to_string());
                }
                let per_line = ((LINE - indent.min(LINE)) / (style.width + 2)).max(1);
                let lines: Vec<String> = items.chunks(per_line).map(|line| line.join(", ")).collect();
                format!("[{}]", lines.join(&format!(",\n{indented}")))
            }
            Shown::Lists(lists, gap) => {
                let mut items: Vec<String> =
                    lists.iter().map(|l| l.text(style, indent + 1, ndim - 1)).collect();
                if let Some(at) = *gap {
                    items.insert(at, "...".to_string());
                }
                format!("[{}]", items.join(&format!(",{}{indented}", "\n".repeat(ndim - 1))))
            }
        }
    }
}
