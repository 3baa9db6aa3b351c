//! Errors of modules and optimizers.

/// The error of a module or optimizer: what was expected, what was passed, and what to do.
///
/// ```
/// use keyway::{Error, nn::{Dropout, ModuleError}};
/// let error = Dropout::new(2.0).unwrap_err();
/// assert!(matches!(error, Error::Module(ModuleError::Option { option: "p", .. })));
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModuleError {
    /// A state dict that does not match its target. Nothing was loaded.
    #[error("{}", state_message(owner, missing, unexpected, mismatched))]
    State {
        /// The target of the load.
        owner: &'static str,
        /// Expected names that are missing, in order.
        missing: Vec<String>,
        /// Unexpected names, in order.
        unexpected: Vec<String>,
        /// Tensors with a shape other than the expected one.
        mismatched: Vec<Mismatch>,
    },
    /// A state dict of an optimizer with other groups or parameters. Nothing was loaded.
    #[error(
        "{owner}: expected the state of an optimiser with {expected} {what}, got one with {got}, and nothing was loaded: what it \
         remembers would go to other parameters; make the optimiser of the same parameters in the same order"
    )]
    StateCount {
        /// The optimizer.
        owner: &'static str,
        /// The unit of the counts.
        what: String,
        /// The count of the optimizer.
        expected: usize,
        /// The count of the state dict.
        got: usize,
    },
    /// An entry of a state dict that cannot be copied to its tensor.
    #[error("{owner}: entry `{entry}` of the state dict cannot be loaded ({loaded} others were): {source}")]
    Entry {
        /// The target of the load.
        owner: &'static str,
        /// The entry's name.
        entry: String,
        /// The number of entries that were loaded before; layouts and shapes are checked before the first.
        loaded: usize,
        /// The cause.
        source: Box<crate::Error>,
    },
    /// An unknown parameter name.
    #[error("{owner}: expected the name of a parameter, one of {}, got `{got}`", first(expected))]
    Name {
        /// The module.
        owner: &'static str,
        /// The names of the parameters.
        expected: Vec<String>,
        /// The requested name.
        got: String,
    },
    /// An option out of its range.
    #[error("{owner}: expected `{option}` to be {expected}, got {got}")]
    Option {
        /// The module, optimizer or schedule.
        owner: &'static str,
        /// The option.
        option: &'static str,
        /// The valid range.
        expected: &'static str,
        /// The given value.
        got: String,
    },
    /// An input whose shape a module does not accept.
    #[error("{owner}: expected an input {expected}, got shape {got:?}")]
    Input {
        /// The module.
        owner: &'static str,
        /// The accepted shape.
        expected: String,
        /// The shape of the input.
        got: Vec<usize>,
    },
    /// A container without a forward function.
    #[error(
        "{owner}: expected a module with a forward function, got one that only holds others; call those, or use `Sequential`"
    )]
    NoForward {
        /// The module.
        owner: &'static str,
    },
    /// A tensor that an optimizer cannot update.
    #[error("{owner}: expected parameter {index} to be a strided leaf that requires grad, got {got}; {hint}")]
    NotParameter {
        /// The optimizer.
        owner: &'static str,
        /// The index of the parameter, counted over all groups.
        index: usize,
        /// A description of the tensor.
        got: &'static str,
        /// The advice.
        hint: &'static str,
    },
    /// A gradient that an optimizer does not support.
    #[error("{owner}: expected the gradient of parameter {index} to be {expected}, got a {got} one; {hint}")]
    Gradient {
        /// The optimizer.
        owner: &'static str,
        /// The index of the parameter, counted over all groups.
        index: usize,
        /// The supported gradient.
        expected: &'static str,
        /// The gradient that was found.
        got: &'static str,
        /// The advice.
        hint: &'static str,
    },
    /// A parameter that occurs twice.
    #[error("{owner}: expected different parameters, got parameter {index} twice; put it in one group only")]
    Twice {
        /// The optimizer.
        owner: &'static str,
        /// The index of the second occurrence, counted over all groups.
        index: usize,
    },
}

/// A tensor with a shape other than the expected one.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Error, nn::{Linear, Module, ModuleError}};
/// let error = Linear::new(3, 2)?.load_state_dict(&Linear::new(4, 2)?.state_dict()).unwrap_err();
/// let Error::Module(ModuleError::State { mismatched, .. }) = error else { panic!("{error}") };
/// assert_eq!((mismatched[0].name.as_str(), &mismatched[0].got[..]), ("weight", &[2, 4][..]));
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The name of the tensor.
    pub name: String,
    /// The expected sizes.
    pub expected: Vec<usize>,
    /// The sizes that were found.
    pub got: Vec<usize>,
}

impl std::fmt::Display for Mismatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} (expected {:?}, got {:?})", self.name, self.expected, self.got)
    }
}

/// The number of names of each kind that a message lists.
const SHOWN: usize = 8;

fn state_message(owner: &str, missing: &[String], unexpected: &[String], mismatched: &[Mismatch]) -> String {
    let mut parts = Vec::new();
    let mut part = |what: &str, count: usize, names: String| {
        if count > 0 {
            parts.push(format!("{count} {what}: {names}"));
        }
    };
    part("missing", missing.len(), first(missing));
    part("unexpected", unexpected.len(), first(unexpected));
    part("of another shape", mismatched.len(), first(mismatched));
    format!(
        "{owner}: the state dict does not fit, and nothing was loaded: {}; load it into the module that it was saved from, or rename \
         its entries",
        parts.join("; ")
    )
}

/// The first [`SHOWN`] items and the number of the others.
fn first<T: ToString>(items: &[T]) -> String {
    let more = match items.len().checked_sub(SHOWN) {
        Some(more @ 1..) => format!(" and {more} more"),
        _ => String::new(),
    };
    let shown: Vec<String> = items.iter().take(SHOWN).map(ToString::to_string).collect();
    format!("{}{more}", shown.join(", "))
}
