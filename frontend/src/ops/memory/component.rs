//! `component`
//!
//! Arguments:
//! - `name`: the name of the component, such as `values`.

use crate::Tensor;
use crate::error::{Result, called};
use crate::ops::def::{Derivative, OpDef, OpFlags};
use crate::ops::sample::{SampleArg, error, plain};
use keyway_dispatcher::error::{Error, Result as RuleResult};
use keyway_dispatcher::op::{Arg, Args, Outputs, Rule};
use keyway_dispatcher::table::current;
use keyway_dispatcher::tensor::TensorRef;

impl Tensor {
    /// The component of a composite tensor with this name, such as the `values` of a sparse matrix. It shares memory with the
    /// composite tensor, and its gradient flows there as a tensor of that layout that is zero in the other components.
    ///
    /// Changing the component in place changes the composite tensor without updating its autograd history; using the composite
    /// tensor in the graph afterwards is an error.
    ///
    /// ```no_run
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::new([[0.0f32, 3.0], [4.0, 0.0]])?.to_sparse()?;
    /// assert_eq!(a.component("values")?.to_vec::<f32>()?, [3.0, 4.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A strided tensor; a name that the layout does not declare.
    pub fn component(&self, name: &str) -> Result<Tensor> {
        DEF.run(&[self.into(), Arg::Str(name)])
    }

    /// All components of a composite tensor in the order of its layout, as in [`Tensor::component`]; empty for a strided
    /// tensor.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert!(Tensor::zeros(3)?.components()?.is_empty());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A layout whose backend was removed.
    pub fn components(&self) -> Result<Vec<Tensor>> {
        called("components", &["self"], || {
            if self.as_ref().is_strided() {
                return Ok(Vec::new());
            }
            let reason = "has no owner: install the backend that brings it";
            let layout = self.layout();
            let entry = current().layout(layout).ok_or(Error::Layout { op: "components", layout, reason })?;
            entry.components.iter().map(|name| self.component(name)).collect()
        })
    }
}

/// Whether the `nth` component holds values: the one named `values`, or in a layout without that name, those of the tensor's
/// dtype.
pub(crate) fn holds_values(t: &Tensor, nth: usize) -> bool {
    let names = current().layout(t.layout()).map_or(&[][..], |entry| &entry.components);
    match names.iter().position(|name| name == "values") {
        Some(values) => nth == values,
        None => t.as_ref().components().get(nth).is_some_and(|part| part.dtype() == t.dtype()),
    }
}

/// The index of a component.
fn place(op: &'static str, t: &TensorRef, name: &str) -> RuleResult<usize> {
    let known = current().layout(t.layout()).map_or(&[][..], |entry| &entry.components);
    let found = known.iter().position(|known| known == name).filter(|&at| at < t.components().len());
    found.ok_or_else(|| Error::Value {
        op,
        argument: "name",
        expected: match known {
            [] => "the component of a composite tensor; a strided one has none".to_string(),
            known => format!("a component of layout `{}`: {}", t.layout(), known.join(", ")),
        },
        got: format!("`{name}`"),
    })
}

fn compose(args: &Args<'_>) -> RuleResult<Outputs> {
    let t = args.tensor(0)?;
    let at = place(args.name(), t, args.str(1)?)?;
    Ok(Outputs::from_iter([t.components()[at].shallow_copy()]))
}

/// The gradient of the composite tensor: zero in all but one component.
fn whole(like: &Tensor, name: &str, grad: &Tensor) -> Result<Tensor> {
    let t = like.as_ref();
    let at = place(DEF.name(), t, name)?;
    let part = |(i, part): (usize, &TensorRef)| -> Result<Tensor> {
        let part = Tensor::from_ref(part.shallow_copy());
        match i == at {
            true => Ok(grad.clone()),
            false if part.dtype().is_differentiable() => part.uninit_like(())?.fill_(0.0),
            false => Ok(part),
        }
    };
    let parts = t.components().iter().enumerate().map(part).collect::<Result<Vec<_>>>()?;
    like.with_components(&parts)
}

/// `component`
pub static DEF: OpDef = OpDef::new(
    "component(Tensor self, str name) -> Tensor",
    Rule::Host(compose),
    Derivative::Formula {
        saves: 0b1,
        saves_outputs: 0,
        formula: |b, g| g.set(0, || whole(&b.input(0)?, b.str(1)?, b.grad(0)?)),
    },
    // Only plugins define composite layouts.
    Vec::new,
)
.errors(|| vec![error([plain(&[2]), SampleArg::Str("values")], "a strided one has none")])
.with(OpFlags::SETS_FORMAT)
.with(OpFlags::UNCOALESCED);
