//! `from_components`
//!
//! Arguments:
//! - `components`: the component tensors, in the layout's order.
//! - `sizes`: the sizes of the tensor.
//! - `attrs`: the integer attributes of the layout.
//! - `check`: whether the layout's plugin checks the components.
//! - `typed_attrs`: attributes of other types as text; empty if all are integers.

use super::component::holds_values;
use crate::error::Result;
use crate::ops::def::{Derivative, OpDef, OpFlags};
use crate::ops::sample::{Fill, Role, SampleArg, TensorSample, error};
use crate::{DType, Layout, Tensor};
use keyway_dispatcher::error::{Error, Result as RuleResult};
use keyway_dispatcher::layouts;
use keyway_dispatcher::op::{Arg, Args, LayoutOptions, LayoutValue, Outputs, Rule};
use keyway_dispatcher::tensor::{Attrs, TensorRef};

impl Tensor {
    /// A tensor of a composite layout over these components, in the layout's order, without copying. The layout's plugin checks
    /// that they are consistent. Gradients flow to the components if the layout can project a gradient on its pattern.
    ///
    /// ```no_run
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::prelude::*;
    /// let parts = [Tensor::new([[0i64, 2]])?, Tensor::new([3.0f32, 4.0])?];
    /// let layout = Layout::from_name("sparse_coo").unwrap();
    /// // The attribute of `sparse_coo` says that the entries are coalesced.
    /// let a = Tensor::from_components(layout, &[3], DType::F32, &parts, &[1])?;
    /// assert_eq!(a.to_dense()?.to_vec::<f32>()?, [3.0, 0.0, 4.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A layout that no backend provides, or not for this device; a shape that it cannot represent; inconsistent components or
    /// attributes.
    pub fn from_components(
        layout: Layout,
        sizes: &[usize],
        dtype: DType,
        components: &[Tensor],
        attrs: &[i64],
    ) -> Result<Tensor> {
        run(layout, sizes, dtype, components, &attrs.to_vec().into(), true)
    }

    /// [`Tensor::from_components`] with attributes of any type that the layout declares: integers, floats, bools, texts and
    /// lists.
    ///
    /// ```no_run
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::prelude::*;
    /// let int8 = Layout::from_name("example.org/int8_per_tensor").expect("the plugin is loaded");
    /// let codes = Tensor::new([-127i8, 0, 64])?;
    /// // Its attributes: a scale and a zero point.
    /// let q = Tensor::from_components_with(int8, &[3], DType::F32, &[codes], &[0.5.into(), 0.into()])?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of [`Tensor::from_components`].
    pub fn from_components_with(
        layout: Layout,
        sizes: &[usize],
        dtype: DType,
        components: &[Tensor],
        attrs: &[LayoutValue],
    ) -> Result<Tensor> {
        run(layout, sizes, dtype, components, &attrs.to_vec().into(), true)
    }
}

/// The text of attributes that are not all integers, by their indices.
fn typed(attrs: &Attrs) -> String {
    if attrs.are_ints() {
        return String::new();
    }
    let named = |made: LayoutOptions, (i, value): (usize, LayoutValue)| made.set(&i.to_string(), value);
    attrs.iter().enumerate().fold(LayoutOptions::new(), named).to_string()
}

fn run(
    layout: Layout,
    sizes: &[usize],
    dtype: DType,
    components: &[Tensor],
    attrs: &Attrs,
    check: bool,
) -> Result<Tensor> {
    let components: Vec<&TensorRef> = components.iter().map(Tensor::as_ref).collect();
    let wrong = |size: &usize| Error::Value {
        op: "from_components",
        argument: "sizes",
        expected: format!("sizes of at most {}", i64::MAX),
        got: size.to_string(),
    };
    let sizes =
        sizes.iter().map(|s| i64::try_from(*s).map_err(|_| wrong(s))).collect::<RuleResult<Vec<i64>>>()?;
    DEF.run(&[
        Arg::Str(layout.name()),
        Arg::Tensors(&components),
        Arg::Ints(&sizes),
        Arg::DType(dtype),
        Arg::Ints(attrs.ints()),
        Arg::Bool(check),
        Arg::Str(&typed(attrs)),
    ])
}

/// Tensors by their components, which are consistent by construction.
impl Tensor {
    /// A tensor like this one with other components.
    pub(crate) fn with_components(&self, components: &[Tensor]) -> Result<Tensor> {
        run(self.layout(), self.shape(), self.dtype(), components, &self.as_ref().attributes(), false)
    }

    /// The component of a composite tensor that holds its values.
    pub(crate) fn stored(&self) -> Result<Tensor> {
        let numbers = self.components()?.into_iter().enumerate().find(|(nth, _)| holds_values(self, *nth));
        let reason = "has no component that holds its numbers";
        let missing = || Error::Layout { op: DEF.name(), layout: self.layout(), reason };
        Ok(numbers.map(|(_, part)| part).ok_or_else(missing)?)
    }

    /// A tensor like this one with other values in the component of [`Tensor::stored`].
    pub(crate) fn with_stored(&self, numbers: &Tensor) -> Result<Tensor> {
        self.map_stored(|_| Ok(numbers.clone()))
    }

    /// A tensor like this one with the values that `map` returns for its values.
    pub(crate) fn map_stored(&self, map: impl FnMut(Tensor) -> Result<Tensor>) -> Result<Tensor> {
        self.map_stored_as(self.dtype(), map)
    }

    /// [`Tensor::map_stored`] for a `map` whose result has this dtype.
    pub(crate) fn map_stored_as(
        &self,
        dtype: DType,
        mut map: impl FnMut(Tensor) -> Result<Tensor>,
    ) -> Result<Tensor> {
        let one = |(nth, part): (usize, Tensor)| if holds_values(self, nth) { map(part) } else { Ok(part) };
        let parts = self.components()?.into_iter().enumerate().map(one).collect::<Result<Vec<_>>>()?;
        run(self.layout(), self.shape(), dtype, &parts, &self.as_ref().attributes(), false)
    }
}

fn compose(args: &Args<'_>) -> RuleResult<Outputs> {
    let name = args.str(0)?;
    let wrong = |argument, expected: &str, got: String| Error::Value {
        op: args.name(),
        argument,
        expected: expected.to_string(),
        got,
    };
    let composite = |layout: &Layout| *layout != Layout::STRIDED && *layout != Layout::CHANNELS_LAST;
    let layout = Layout::from_name(name).filter(composite).ok_or_else(|| {
        wrong("layout", "the name of a composite layout that a backend brings", format!("`{name}`"))
    })?;
    let sizes = args.ints(2)?;
    let sizes: Vec<usize> = sizes
        .iter()
        .map(|&s| {
            usize::try_from(s).map_err(|_| wrong("sizes", "numbers of 0 or more", format!("{sizes:?}")))
        })
        .collect::<RuleResult<_>>()?;
    let dtype = args.optional_dtype(3)?.ok_or_else(|| wrong("dtype", "a dtype", "none".to_string()))?;
    let attrs = match args.str(6)? {
        "" => args.ints(4)?.to_vec().into(),
        text => {
            text.parse::<LayoutOptions>()?.iter().map(|(_, value)| value.clone()).collect::<Vec<_>>().into()
        }
    };
    let (parts, check) = (args.tensors(1)?, args.bool(5)?);
    let made = layouts::from_components(args.name(), layout, dtype, &sizes, parts, attrs, check)?;
    Ok(Outputs::from_iter([made]))
}

/// `from_components`
pub static DEF: OpDef = OpDef::new(
    "from_components(str layout, Tensor[] components, int[] sizes, dtype dtype, int[] attrs, *, \
             bool check=True, str typed_attrs=\"\") -> Tensor",
    Rule::Host(compose),
    Derivative::Formula {
        saves: 0,
        saves_outputs: 0b1,
        formula: |b, g| {
            if !g.needs(1) {
                return Ok(());
            }
            let parts = b.grad(0)?.sparse_mask_like(&b.output(0)?.detach())?.components()?;
            parts.into_iter().enumerate().try_for_each(|(k, part)| g.set_list_item(1, k, || Ok(part)))
        },
    },
    // Only plugins define composite layouts.
    Vec::new,
)
.errors(|| {
    let part = TensorSample { sizes: vec![2], fill: Fill::Uniform(-2.0, 2.0), role: Role::Tested };
    let call = |layout, size| {
        let parts = SampleArg::Tensors(vec![part.clone()]);
        let (sizes, attrs) = (SampleArg::Ints(vec![size]), SampleArg::Ints(vec![]));
        let (check, typed) = (SampleArg::Bool(true), SampleArg::Str(""));
        [SampleArg::Str(layout), parts, sizes, SampleArg::DType(DType::F32), attrs, check, typed]
    };
    vec![
        error(call("strided", 2), "a composite layout that a backend brings"),
        error(call("nothing.example/none", 2), "a composite layout that a backend brings"),
    ]
})
.with(OpFlags::SETS_FORMAT)
.with(OpFlags::UNCOALESCED);
