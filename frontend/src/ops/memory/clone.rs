//! `clone`
//!
//! Arguments:
//! - `memory_format`: `preserve`, `contiguous` or `channels_last`.

use crate::error::{Result, called};
use crate::ops::def::{Derivative, OpDef, OpFlags};
use crate::ops::rules::check_images;
use crate::ops::sample::{SampleArg, error, plain, sample};
use crate::{MemoryFormat, Tensor};
use keyway_dispatcher::dims::{Dims, channels_last_strides};
use keyway_dispatcher::error::{Error, Result as RuleResult};
use keyway_dispatcher::op::{Arg, Args, Plan, Rule, Strides};

impl Tensor {
    /// Copies the tensor to new memory, in the same memory format.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::new([1.0f32])?;
    /// let b = a.copy()?;
    /// b.add_(1.0)?;
    /// assert_eq!(a.to_vec::<f32>()?, [1.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Errors of the backend.
    #[doc(alias = "clone")]
    pub fn copy(&self) -> Result<Tensor> {
        called("copy", &["self"], || DEF.run(&[self.into(), Arg::Str("preserve")]))
    }

    /// [`Tensor::copy`] in a memory format.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::prelude::*;
    /// let x = Tensor::zeros((2, 3, 4))?.copy_with(MemoryFormat::ChannelsLast)?;
    /// assert_eq!(x.strides(), [12, 1, 3]);
    /// let error = x.select(0, 0)?.copy_with(MemoryFormat::ChannelsLast).unwrap_err();
    /// assert!(error.to_string().contains("of 3, 4 or 5 dimensions for channels_last"));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// channels_last on a tensor of fewer than 3 or more than 5 dimensions, or on a composite one.
    pub fn copy_with(&self, format: MemoryFormat) -> Result<Tensor> {
        called("copy", &["self", "format"], || DEF.run(&[self.into(), Arg::Str(format.name())]))
    }
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let t = args.tensor(0)?;
    let sizes = Dims::from_slice(t.sizes());
    let strides = match args.str(1)? {
        "preserve" => Strides::Like(0),
        "contiguous" => Strides::Contiguous,
        "channels_last" => {
            if !t.is_strided() {
                return Err(Error::Value {
                    op: args.name(),
                    argument: "memory_format",
                    expected: "`preserve` or `contiguous`, as a composite tensor has no strides; `to_strided` makes one that has"
                        .to_string(),
                    got: "`channels_last`".to_string(),
                });
            }
            check_images(args.name(), "self", t.sizes())?;
            Strides::exact(channels_last_strides(t.sizes()))
        }
        other => {
            return Err(Error::Value {
                op: args.name(),
                argument: "memory_format",
                expected: "`preserve`, `contiguous` or `channels_last`".to_string(),
                got: format!("`{other}`"),
            });
        }
    };
    Ok(Plan::one(t.dtype(), sizes, t.dtype(), strides))
}

/// `clone`: a copy of `self` in new memory, in the memory format of this name; `preserve` is that of `self`.
pub static DEF: OpDef = OpDef::new(
    "clone(Tensor self, *, str memory_format=preserve) -> Tensor",
    Rule::Structured(rule),
    Derivative::of_grad(|b, g| g.set(0, || Ok(b.grad(0)?.clone()))),
    || {
        vec![
            sample([plain(&[2, 3]), SampleArg::Str("preserve")]),
            sample([plain(&[]), SampleArg::Str("contiguous")]),
            sample([plain(&[2, 3, 4, 5]), SampleArg::Str("channels_last")]),
            sample([plain(&[5]), SampleArg::Str("preserve")]),
            sample([plain(&[2, 3, 4]), SampleArg::Str("channels_last")]),
            sample([plain(&[2, 3, 2, 1, 2]), SampleArg::Str("channels_last")]),
            sample([plain(&[0, 3]), SampleArg::Str("contiguous")]),
        ]
    },
)
.errors(|| {
    vec![
        error([plain(&[2]), SampleArg::Str("channels_last")], "3, 4 or 5 dimensions"),
        error([plain(&[2]), SampleArg::Str("nhwc")], "channels_last"),
    ]
})
.with(OpFlags::EXACT.and(OpFlags::SETS_FORMAT))
.with(OpFlags::COMPLEX);
