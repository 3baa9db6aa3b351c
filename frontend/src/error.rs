//! The errors of the frontend.

pub(crate) mod autograd;
pub(crate) mod data;
pub(crate) mod layouts;
pub(crate) mod module;
pub(crate) mod npy;
pub(crate) mod safetensors;
pub(crate) mod trace;

use keyway_dispatcher::Error as DispatchError;
use keyway_dispatcher::dtype::DType;
use std::fmt;

/// The result of everything here.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::Tensor;
/// fn norm(x: &Tensor) -> keyway::Result<f32> {
///     x.square()?.sum_all()?.sqrt()?.item()
/// }
/// assert_eq!(norm(&Tensor::new([3.0f32, 4.0])?)?, 5.0);
/// assert!(norm(&Tensor::new([3.0f64, 4.0])?).is_err(), "an element of another dtype");
/// # Ok(()) }
/// ```
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The error type: what was expected, what was passed, and what to do next. A mistake in a call of a tensor function begins with
/// that function's name, without the suffix of a form (`_`, `_with`, `_out`, `_keepdim`, `_all`); another one with the name of
/// the type or function that detected it.
///
/// `{:?}` prints the message too, so that `fn main() -> keyway::Result<()>` and `unwrap` are readable; `{:#?}` prints the
/// structure.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::Tensor;
/// let error = Tensor::from_vec(vec![1.0f32, 2.0], 3).unwrap_err();
/// assert_eq!(format!("{error:?}"), "from_vec: shape [3] has 3 elements, but 2 values came");
/// assert!(format!("{error:#?}").starts_with("Length {"));
/// # Ok(()) }
/// ```
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A call could not be carried out: the caller's mistake, or the backend's trouble.
    #[error(transparent)]
    Dispatch(DispatchError),
    /// An error of autograd.
    #[error(transparent)]
    Autograd(#[from] autograd::AutogradError),
    /// A layout that no loaded backend implements.
    #[error(
        "{op}: `{layout}` is served by `{served_by}`, which {}",
        absent(refused.as_deref())
    )]
    NoLayout {
        /// The op.
        op: &'static str,
        /// The layout.
        layout: &'static str,
        /// The backend of this project that implements it.
        served_by: &'static str,
        /// The reason why its library was refused, if it was.
        refused: Option<String>,
    },
    /// Work that cannot be captured, see [`graph`](crate::graph).
    #[error("{op} cannot be captured: {reason}; {instead}")]
    Captured {
        /// The op, or other function.
        op: &'static str,
        /// The reason why a replay would be wrong.
        reason: &'static str,
        /// The alternative.
        instead: &'static str,
    },
    /// A vector whose length does not fit the shape.
    #[error("{op}: shape {sizes:?} has {expected} elements, but {got} values came")]
    Length {
        /// The op.
        op: &'static str,
        /// The shape.
        sizes: Vec<usize>,
        /// Elements of the shape.
        expected: usize,
        /// Number of values passed.
        got: usize,
    },
    /// A tensor with more or fewer elements than one, where one is required.
    #[error(
        "{op}: expected a tensor of one element, got {got} of shape {sizes:?}; index one, or read all with `to_vec`"
    )]
    NotOneElement {
        /// The op.
        op: &'static str,
        /// The tensor's shape.
        sizes: Vec<usize>,
        /// Number of elements.
        got: usize,
    },
    /// A host type that does not match the tensor's dtype.
    #[error("{op}: the tensor is {got}, but {expected} was asked for; convert it with `to_dtype` first")]
    HostType {
        /// The op.
        op: &'static str,
        /// The dtype of the host type.
        expected: DType,
        /// The dtype of the tensor.
        got: DType,
    },
    /// A backend could not be loaded.
    #[error(transparent)]
    Load(#[from] Box<keyway_dispatcher::loader::LoadError>),
    /// A file could not be read or written.
    #[error("{action} {path}: {source}")]
    File {
        /// `reading` or `writing`.
        action: &'static str,
        /// The file.
        path: std::path::PathBuf,
        /// The system's own words.
        source: std::io::Error,
    },
    /// A child of a fork at a moment at which another thread of the parent was loading the backends.
    #[error(
        "the process was forked while another of its threads was loading the backends, which no thread here will end; \
         call `keyway::runtime::start` before the fork, or fork before the first use of tensors"
    )]
    Forked,
    /// A safetensors file that is damaged or does not fit.
    #[error(transparent)]
    Safetensors(#[from] safetensors::SafetensorsError),
    /// A file of NumPy's that is damaged or does not fit.
    #[error(transparent)]
    Npy(#[from] npy::NpyError),
    /// A data set that is damaged.
    #[error(transparent)]
    Data(#[from] data::DataError),
    /// An invalid argument of a module or optimiser.
    #[error(transparent)]
    Module(#[from] module::ModuleError),
    /// A file that is not a trace, or a damaged one.
    #[error(transparent)]
    Trace(#[from] trace::TraceError),
    /// An error of a function, hook or handler of the program, see [`Error::other`].
    #[error(transparent)]
    Other(Box<dyn std::error::Error + Send + Sync>),
}

impl Error {
    /// Wraps an error of the program, for functions, hooks and handlers that it passes to this library.
    ///
    /// ```
    /// let error = keyway::Error::other("the table has no such column");
    /// assert_eq!(error.to_string(), "the table has no such column");
    /// fn size(path: &str) -> keyway::Result<u64> {
    ///     // Errors of the standard library's input and output become one by `?`.
    ///     Ok(std::fs::metadata(path)?.len())
    /// }
    /// assert!(size("/no/such/file").is_err());
    /// ```
    pub fn other(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
        Error::Other(error.into())
    }
}

/// Runs the parts of the composite function `name`. An error in them is reported as one of `name`: the caller knows that
/// function, not its parts. If the faulty argument is one of `params`, the function's parameters, the error names it;
/// otherwise the part's name is retained.
#[inline(always)]
pub(crate) fn called<T>(name: &'static str, params: &[&str], run: impl FnOnce() -> Result<T>) -> Result<T> {
    let mut made = run();
    if let Err(error) = &mut made {
        rename(error, name, params);
    }
    made
}

/// Like [`called`], for a function whose arguments have other names than those of its op: pairs of the op's name and the
/// function's.
#[inline(always)]
pub(crate) fn called_as<T>(
    name: &'static str,
    params: &[&str],
    names: &[(&str, &'static str)],
    run: impl FnOnce() -> Result<T>,
) -> Result<T> {
    called(name, params, || {
        run().map_err(|error| match error {
            Error::Dispatch(inner) => Error::Dispatch(inner.with_arguments(names)),
            error => error,
        })
    })
}

#[cold]
#[inline(never)]
fn rename(error: &mut Error, name: &'static str, params: &[&str]) {
    match error {
        Error::Autograd(error) => error.rename(name),
        Error::NoLayout { op, .. }
        | Error::Captured { op, .. }
        | Error::Length { op, .. }
        | Error::NotOneElement { op, .. }
        | Error::HostType { op, .. } => *op = name,
        Error::Dispatch(_) => {
            if let Error::Dispatch(inner) = std::mem::replace(error, Error::Forked) {
                *error = Error::Dispatch(inner.within(name, params));
            }
        }
        // These name a file, a module or no function.
        _ => {}
    }
}

/// Describes a required backend that was not loaded.
fn absent(refused: Option<&str>) -> String {
    match refused {
        Some(why) => format!("was found and refused: {why}"),
        None => "is not installed: put its library into a folder of `KEYWAY_BACKEND_PATH` or one that `keyway backend paths` \
                 lists, or run `keyway backend install` with it"
            .to_string(),
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !f.alternate() {
            return fmt::Display::fmt(self, f);
        }
        match self {
            Error::Dispatch(error) => f.debug_tuple("Dispatch").field(error).finish(),
            Error::Autograd(error) => f.debug_tuple("Autograd").field(error).finish(),
            Error::Length { op, sizes, expected, got } => f
                .debug_struct("Length")
                .field("op", op)
                .field("sizes", sizes)
                .field("expected", expected)
                .field("got", got)
                .finish(),
            Error::NotOneElement { op, sizes, got } => f
                .debug_struct("NotOneElement")
                .field("op", op)
                .field("sizes", sizes)
                .field("got", got)
                .finish(),
            Error::Captured { op, reason, instead } => f
                .debug_struct("Captured")
                .field("op", op)
                .field("reason", reason)
                .field("instead", instead)
                .finish(),
            Error::NoLayout { op, layout, served_by, refused } => f
                .debug_struct("NoLayout")
                .field("op", op)
                .field("layout", layout)
                .field("served_by", served_by)
                .field("refused", refused)
                .finish(),
            Error::HostType { op, expected, got } => f
                .debug_struct("HostType")
                .field("op", op)
                .field("expected", expected)
                .field("got", got)
                .finish(),
            Error::Load(error) => f.debug_tuple("Load").field(error).finish(),
            Error::File { action, path, source } => f
                .debug_struct("File")
                .field("action", action)
                .field("path", path)
                .field("source", source)
                .finish(),
            Error::Forked => f.write_str("Forked"),
            Error::Safetensors(error) => f.debug_tuple("Safetensors").field(error).finish(),
            Error::Npy(error) => f.debug_tuple("Npy").field(error).finish(),
            Error::Data(error) => f.debug_tuple("Data").field(error).finish(),
            Error::Module(error) => f.debug_tuple("Module").field(error).finish(),
            Error::Trace(error) => f.debug_tuple("Trace").field(error).finish(),
            Error::Other(error) => f.debug_tuple("Other").field(error).finish(),
        }
    }
}

/// Converts I/O errors, so that programs can use `?` for both.
impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Error {
        Error::other(error)
    }
}

impl From<DispatchError> for Error {
    fn from(error: DispatchError) -> Error {
        match error {
            DispatchError::Layer(inner) => match inner.downcast::<Error>() {
                Ok(own) => *own,
                Err(other) => Error::Dispatch(DispatchError::Layer(other)),
            },
            other => Error::Dispatch(other),
        }
    }
}

/// Converts an error of this crate to pass it through the dispatcher.
impl From<Error> for DispatchError {
    fn from(error: Error) -> DispatchError {
        match error {
            Error::Dispatch(inner) => inner,
            other => DispatchError::Layer(Box::new(other)),
        }
    }
}
