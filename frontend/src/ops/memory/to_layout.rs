//! `to_layout`
//!
//! Arguments:
//! - `options`: the options of the conversion as text; empty for none.

use crate::error::{Result, called};
use crate::ops::def::{Derivative, OpDef, OpFlags};
use crate::ops::sample::{SampleArg, error, plain, sample};
use crate::tensor::{COO, CSR};
use crate::{Layout, Tensor};
use keyway_dispatcher::error::{Error, Result as RuleResult};
use keyway_dispatcher::layouts::{from_strided, to_strided};
use keyway_dispatcher::op::{Arg, Args, LayoutOptions, Outputs, Rule};

impl Tensor {
    /// Converts the tensor to another layout; returns this tensor if it already has that layout.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::prelude::*;
    /// let x = Tensor::zeros(3)?;
    /// assert!(x.to_layout(Layout::STRIDED)?.ptr_eq(&x));
    /// # Ok(()) }
    /// ```
    ///
    /// A lossy layout, such as a quantized one, declares a tolerance for the conversion and how gradients pass through it:
    /// unchanged (straight-through), or projected on the stored entries.
    ///
    /// # Errors
    /// A layout that no backend provides; a shape, or values, that it cannot represent; a layout that requires options.
    #[doc(alias = "quantize_per_tensor")]
    pub fn to_layout(&self, layout: Layout) -> Result<Tensor> {
        called("to_layout", &["self", "layout"], || {
            if self.layout() == layout {
                return Ok(self.clone());
            }
            // Conversions between sparse layouts are direct, without a strided intermediate.
            match (self.layout().name(), layout.name()) {
                (COO, CSR) => return self.to_sparse_csr(),
                (CSR, COO) => return self.to_sparse_with(2),
                _ => {}
            }
            DEF.run(&[self.into(), Arg::Str(layout.name()), Arg::Str("")])
        })
    }

    /// [`Tensor::to_layout`] with options: a block size, scales, an axis, or others that the layout's plugin declares. A tensor
    /// that already has the layout is converted to strided and back, unless `options` is empty.
    ///
    /// ```no_run
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::prelude::*;
    /// use keyway::LayoutOptions;
    /// let int8 = Layout::from_name("example.org/int8").expect("the plugin is loaded");
    /// let w = Tensor::zeros((64, 64))?;
    /// let q = w.to_layout_with(int8, &LayoutOptions::new().set("block", 16))?;
    /// assert_eq!(q.component("scales")?.shape(), [64 * 64 / 16]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of [`Tensor::to_layout`]; an option that the layout does not declare, or of another type.
    #[doc(alias("to_sparse_bsr", "quantize_per_channel"))]
    pub fn to_layout_with(&self, layout: Layout, options: &LayoutOptions) -> Result<Tensor> {
        if options.is_empty() {
            return self.to_layout(layout);
        }
        called("to_layout", &["self", "layout", "options"], || {
            DEF.run(&[self.into(), Arg::Str(layout.name()), Arg::Str(&options.to_string())])
        })
    }

    /// Converts the tensor to strided; returns this tensor if it already is.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::zeros(3)?;
    /// assert!(x.to_strided()?.ptr_eq(&x));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A layout that cannot be converted to strided.
    pub fn to_strided(&self) -> Result<Tensor> {
        called("to_strided", &["self"], || self.to_layout(Layout::STRIDED))
    }
}

fn compose(args: &Args<'_>) -> RuleResult<Outputs> {
    let name = args.str(1)?;
    let layout = Layout::from_name(name).ok_or_else(|| Error::Value {
        op: args.name(),
        argument: "layout",
        expected: "the name of a layout that a backend brings, or `strided`".to_string(),
        got: format!("`{name}`"),
    })?;
    // A call by the dispatcher itself has no options.
    let options: LayoutOptions =
        if let Arg::Str(text) = args.get(2) { text.parse()? } else { Default::default() };
    let strided = to_strided(args.tensor(0)?)?;
    let made = match layout == Layout::STRIDED {
        true if options.is_empty() => strided,
        true => {
            return Err(Error::Value {
                op: args.name(),
                argument: "options",
                expected: "empty for the layout `strided`, which has none".to_string(),
                got: format!("`{options}`"),
            });
        }
        false => from_strided(&strided, layout, &options)?,
    };
    Ok(Outputs::from_iter([made]))
}

/// `to_layout`
pub static DEF: OpDef = OpDef::new(
    "to_layout(Tensor self, str layout, *, str options=\"\") -> Tensor",
    Rule::Host(compose),
    Derivative::Formula {
        saves: 0,
        saves_outputs: 0,
        // Straight-through. If the layout declares projected gradients, this one has already been projected.
        formula: |b, g| g.set(0, || b.grad(0)?.to_strided()),
    },
    || vec![sample([plain(&[2, 3]), SampleArg::Str("strided"), SampleArg::Str("")])],
)
.errors(|| {
    let call = |layout, options| [plain(&[2]), SampleArg::Str(layout), SampleArg::Str(options)];
    vec![
        error(call("nothing.example/none", ""), "a layout that a backend brings"),
        error(call("strided", "block=16"), "empty for the layout `strided`"),
        error(call("strided", "block"), "options such as"),
    ]
})
.with(OpFlags::SETS_FORMAT);
