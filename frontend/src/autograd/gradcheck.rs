//! Checking derivatives against differences, in f64.

use super::engine::{BackwardOptions, grad};
use crate::error::Result;
use crate::{DType, Tensor};
use keyway_dispatcher::Error as DispatchError;

/// A function from tensors to tensors.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, autograd::gradcheck::{GradcheckFn, Tolerance, gradcheck}};
/// let product: &GradcheckFn<'_> = &|inputs| Ok(vec![inputs[0].mul(&inputs[1])?]);
/// let inputs = [Tensor::new([1.5f64, -2.0])?, Tensor::new([0.5f64, 3.0])?];
/// let inputs = [inputs[0].requires_grad_(true)?, inputs[1].requires_grad_(true)?];
/// assert!(gradcheck(product, &inputs, Tolerance::default())?.is_none());
/// # Ok(()) }
/// ```
pub type GradcheckFn<'a> = dyn Fn(&[Tensor]) -> Result<Vec<Tensor>> + 'a;

/// Tolerance of the comparison: |analytic - numeric| <= atol + rtol * |numeric|.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, autograd::gradcheck::{Tolerance, gradcheck}};
/// let x = Tensor::new([1.0f64])?.requires_grad_(true)?;
/// let strict = Tolerance { atol: 0.0, rtol: 1e-15, ..Tolerance::default() };
/// assert!(gradcheck(&|inputs| Ok(vec![inputs[0].exp()?]), &[x.clone()], strict)?.is_some());
/// assert!(gradcheck(&|inputs| Ok(vec![inputs[0].exp()?]), &[x], Tolerance::default())?.is_none());
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Tolerance {
    /// Half the distance between the two points of a difference.
    pub eps: f64,
    /// Absolute tolerance.
    pub atol: f64,
    /// Relative tolerance.
    pub rtol: f64,
}

impl Default for Tolerance {
    fn default() -> Tolerance {
        Tolerance { eps: 1e-6, atol: 1e-5, rtol: 1e-3 }
    }
}

/// The element at which a derivative is wrong.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, autograd::gradcheck::{Tolerance, gradcheck}};
/// // The detached factor has no part in the derivative: x instead of 2 x.
/// let wrong = |inputs: &[Tensor]| Ok(vec![inputs[0].mul(&inputs[0].detach())?]);
/// let x = Tensor::new([3.0f64])?.requires_grad_(true)?;
/// let found = gradcheck(&wrong, &[x], Tolerance::default())?.unwrap();
/// assert!(found.analytic == 3.0 && (found.numeric - 6.0).abs() < 1e-3);
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, thiserror::Error)]
#[error(
    "d output {output}[{output_element}] / d input {input}[{input_element}]: the derivative is {analytic}, \
     finite differences are {numeric}"
)]
pub struct Mismatch {
    /// Index of the output.
    pub output: usize,
    /// Row-major index of its element.
    pub output_element: usize,
    /// Index of the input.
    pub input: usize,
    /// Row-major index of its element.
    pub input_element: usize,
    /// The derivative that autograd computed.
    pub analytic: f64,
    /// The derivative by central differences.
    pub numeric: f64,
}

/// Whether a tensor is c128.
fn has_complex(tensors: &[Tensor]) -> bool {
    tensors.iter().any(|t| t.dtype() == DType::C128)
}

/// The inputs with each complex tensor as its real and imaginary parts, in a last dimension of size 2.
fn in_parts(inputs: &[Tensor]) -> Result<Vec<Tensor>> {
    let split = |t: &Tensor| match t.dtype().is_complex() {
        true => t.detach().view_as_real()?.copy()?.requires_grad_(t.requires_grad()),
        false => Ok(t.clone()),
    };
    inputs.iter().map(split).collect()
}

/// A function of [`in_parts`] of these inputs, whose complex results are given as parts, too.
fn of_parts(function: &GradcheckFn<'_>, inputs: &[Tensor]) -> impl Fn(&[Tensor]) -> Result<Vec<Tensor>> {
    let complex: Vec<bool> = inputs.iter().map(|t| t.dtype().is_complex()).collect();
    move |parts: &[Tensor]| {
        let join = |(part, complex): (&Tensor, &bool)| {
            if *complex { part.view_as_complex() } else { Ok(part.clone()) }
        };
        let inputs = parts.iter().zip(&complex).map(join).collect::<Result<Vec<_>>>()?;
        let split = |t: Tensor| if t.dtype().is_complex() { t.view_as_real() } else { Ok(t) };
        function(&inputs)?.into_iter().map(split).collect()
    }
}

fn flat(outputs: &[Tensor]) -> Result<Vec<f64>> {
    let mut all = Vec::new();
    for output in outputs.iter().filter(|o| o.dtype().is_float()) {
        all.extend(output.to_strided()?.to_vec_f64()?);
    }
    Ok(all)
}

/// Compares the derivative of `function` at `inputs` (f64 or c128; those that require grad are checked) with central
/// differences, element by element. `None` means that all agree. Complex tensors are checked by their real and imaginary parts,
/// which count as two elements.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, autograd::gradcheck::{Tolerance, gradcheck}};
/// let x = Tensor::new([0.5f64, 2.0])?.requires_grad_(true)?;
/// assert!(gradcheck(&|inputs| Ok(vec![inputs[0].log()?]), &[x], Tolerance::default())?.is_none());
/// # Ok(()) }
/// ```
///
/// # Errors
/// Errors of the function or of autograd.
pub fn gradcheck(
    function: &GradcheckFn<'_>,
    inputs: &[Tensor],
    tolerance: Tolerance,
) -> Result<Option<Mismatch>> {
    let made = function(inputs)?;
    if has_complex(inputs) || has_complex(&made) {
        return gradcheck(&of_parts(function, inputs), &in_parts(inputs)?, tolerance);
    }
    if let Some(input) = inputs.iter().find(|t| t.requires_grad() && t.dtype() != DType::F64) {
        return Err(DispatchError::Value {
            op: "gradcheck",
            argument: "inputs",
            expected: "f64 or c128 where a gradient is checked, since finite differences need its digits; convert with `to_dtype`"
                .to_string(),
            got: input.dtype().to_string(),
        }
        .into());
    }
    let outputs: Vec<Tensor> = made.into_iter().filter(|o| o.dtype().is_float()).collect();
    // Offset of each output's first element among the elements of all outputs.
    let mut starts = vec![0usize];
    outputs.iter().for_each(|o| starts.push(starts.last().copied().unwrap_or(0) + o.elem_count()));
    let total = starts.last().copied().unwrap_or(0);
    let checked: Vec<usize> = (0..inputs.len()).filter(|&i| inputs[i].requires_grad()).collect();

    let mut numeric: Vec<Vec<Vec<f64>>> = Vec::new();
    for &i in &checked {
        let values = inputs[i].to_vec::<f64>()?;
        let mut columns = Vec::new();
        for element in 0..values.len() {
            let at = |shift: f64| -> Result<Vec<f64>> {
                let mut moved = values.clone();
                moved[element] += shift;
                let mut all = inputs.to_vec();
                all[i] = Tensor::from_vec(moved, inputs[i].shape())?;
                let _off = super::no_grad();
                flat(&function(&all)?)
            };
            let (plus, minus) = (at(tolerance.eps)?, at(-tolerance.eps)?);
            columns.push(plus.iter().zip(&minus).map(|(p, m)| (p - m) / (2.0 * tolerance.eps)).collect());
        }
        numeric.push(columns);
    }

    let wanted: Vec<Tensor> = checked.iter().map(|&i| inputs[i].clone()).collect();
    for place in 0..total {
        let output = starts.partition_point(|&s| s <= place) - 1;
        let element = place - starts[output];
        let gradients = if outputs[output].requires_grad() {
            let mut one = vec![0.0f64; outputs[output].elem_count()];
            one[element] = 1.0;
            let one = Tensor::from_vec(one, outputs[output].shape())?;
            let options = BackwardOptions {
                gradients: Some(vec![one]),
                retain_graph: true,
                allow_unused: true,
                ..BackwardOptions::default()
            };
            grad(&outputs[output..=output], &wanted, options)?
        } else {
            vec![None; wanted.len()]
        };
        for ((gradient, &input), columns) in gradients.iter().zip(&checked).zip(&numeric) {
            let analytic = match gradient {
                Some(g) => g.to_strided()?.to_vec_f64()?,
                None => vec![0.0; columns.len()],
            };
            for (input_element, column) in columns.iter().enumerate() {
                let (a, n) = (analytic[input_element], column[place]);
                let close = (a - n).abs() <= tolerance.atol + tolerance.rtol * n.abs();
                let both_nan = a.is_nan() && n.is_nan();
                if !(close || both_nan) {
                    return Ok(Some(Mismatch {
                        output,
                        output_element: element,
                        input,
                        input_element,
                        analytic: a,
                        numeric: n,
                    }));
                }
            }
        }
    }
    Ok(None)
}

/// [`gradcheck`] of the derivative itself, with respect to the inputs and to the incoming gradients.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, autograd::gradcheck::{Tolerance, gradgradcheck}};
/// let x = Tensor::new([0.5f64, 2.0])?.requires_grad_(true)?;
/// assert!(gradgradcheck(&|inputs| Ok(vec![inputs[0].sin()?]), &[x], Tolerance::default())?.is_none());
/// # Ok(()) }
/// ```
///
/// # Errors
/// Like [`gradcheck`].
pub fn gradgradcheck(
    function: &GradcheckFn<'_>,
    inputs: &[Tensor],
    tolerance: Tolerance,
) -> Result<Option<Mismatch>> {
    let made = function(inputs)?;
    if has_complex(inputs) || has_complex(&made) {
        return gradgradcheck(&of_parts(function, inputs), &in_parts(inputs)?, tolerance);
    }
    let outputs: Vec<Tensor> = made.into_iter().filter(Tensor::requires_grad).collect();
    let mut all = inputs.to_vec();
    for (k, output) in outputs.iter().enumerate() {
        let values = (0..output.elem_count())
            .map(|i| 0.5 + ((i * 7 + k * 3) % 11) as f64 / 10.0)
            .collect::<Vec<f64>>();
        all.push(Tensor::from_vec(values, output.shape())?.requires_grad_(true)?);
    }
    let count = inputs.len();
    let wants: Vec<bool> = inputs.iter().map(Tensor::requires_grad).collect();
    let derivative = |all: &[Tensor]| -> Result<Vec<Tensor>> {
        let _on = super::enable_grad();
        let (inputs, starts) = all.split_at(count);
        let inputs: Vec<Tensor> =
            inputs
                .iter()
                .zip(&wants)
                // A perturbed input is a fresh leaf; it must enter the graph for the inner derivative.
                .map(|(t, &wants)| {
                    if wants && !t.requires_grad() { t.detach().requires_grad_(true) } else { Ok(t.clone()) }
                })
                .collect::<Result<_>>()?;
        let outputs: Vec<Tensor> = function(&inputs)?.into_iter().filter(Tensor::requires_grad).collect();
        let wanted: Vec<Tensor> = inputs.iter().filter(|t| t.requires_grad()).cloned().collect();
        let options = BackwardOptions {
            gradients: Some(starts.to_vec()),
            create_graph: true,
            allow_unused: true,
            ..BackwardOptions::default()
        };
        let grads = grad(&outputs, &wanted, options)?;
        grads
            .into_iter()
            .zip(&wanted)
            .map(|(g, w)| match g {
                Some(g) => g.to_strided(),
                None => w.detach().zeros_like(),
            })
            .collect()
    };
    gradcheck(&derivative, &all, tolerance)
}
