//! The errors of the frontend.

use keyway_dispatcher::Error as DispatchError;
use keyway_dispatcher::dtype::DType;

/// The result of everything here.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong, with what was expected, what came, and what to do next.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A call could not be carried out: the caller's mistake, or the backend's trouble.
    #[error(transparent)]
    Dispatch(DispatchError),
    /// Autograd cannot do what was asked.
    #[error(transparent)]
    Autograd(#[from] crate::autograd::AutogradError),
    /// A vector whose length does not fit the shape.
    #[error("{op}: shape {sizes:?} has {expected} elements, but {got} values came")]
    Length {
        /// The op.
        op: &'static str,
        /// The shape.
        sizes: Vec<usize>,
        /// Elements of the shape.
        expected: usize,
        /// Values that came.
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
    Safetensors(#[from] crate::io::safetensors::SafetensorsError),
    /// A data set that is damaged.
    #[error(transparent)]
    Data(#[from] crate::data::DataError),
    /// A module or optimiser was given something that does not fit.
    #[error(transparent)]
    Module(#[from] crate::nn::ModuleError),
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

/// Hands an error of this crate through the dispatcher.
impl From<Error> for DispatchError {
    fn from(error: Error) -> DispatchError {
        match error {
            Error::Dispatch(inner) => inner,
            other => DispatchError::Layer(Box::new(other)),
        }
    }
}
