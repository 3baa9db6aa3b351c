//! Exceptions: errors of the Rust side as the classes of `keyway._errors`, each a subclass of a built-in exception.

use keyway::Error;
use keyway::dispatcher::Error as DispatchError;
use pyo3::prelude::*;
use pyo3::types::PyType;

/// The class of `keyway._errors` for an error of the dispatcher.
fn dispatch_class(error: &DispatchError) -> &'static str {
    match error {
        DispatchError::Index { .. } | DispatchError::Dim { .. } => "IndexError",
        DispatchError::Broadcast { .. }
        | DispatchError::Shape { .. }
        | DispatchError::SizeOverflow { .. }
        | DispatchError::Value { .. }
        | DispatchError::Overlap { .. } => "ShapeError",
        DispatchError::DType { .. } | DispatchError::Promotion { .. } | DispatchError::Undescribed { .. } => {
            "DTypeError"
        }
        DispatchError::Rejected { .. } => "ElementError",
        DispatchError::MissingKernel(_) => "MissingKernelError",
        DispatchError::OutOfMemory { .. } => "OutOfMemoryError",
        DispatchError::ReadOnly { .. } => "ReadOnlyError",
        DispatchError::Mapping { .. } => "FileError",
        DispatchError::UnknownOp { .. } => "AttributeError",
        DispatchError::Part { inner, .. } => dispatch_class(inner),
        _ => "BackendError",
    }
}

/// The class of `keyway._errors` for an error.
fn class_name(error: &Error) -> &'static str {
    match error {
        Error::Dispatch(error) => dispatch_class(error),
        Error::Length { .. } | Error::NotOneElement { .. } => "ShapeError",
        Error::HostType { .. } => "DTypeError",
        Error::Autograd(_) => "AutogradError",
        Error::File { .. } | Error::Safetensors(_) | Error::Npy(_) => "FileError",
        _ => "BackendError",
    }
}

/// The Python exception for an error, with its message. An exception that a Python function raised inside a call comes out as
/// it was.
pub fn exception(error: Error) -> PyErr {
    let error = match error {
        Error::Other(inner) => match inner.downcast::<PyErr>() {
            Ok(raised) => return *raised,
            Err(inner) => Error::Other(inner),
        },
        error => error,
    };
    raise(class_name(&error), error.to_string())
}

/// An exception of a class of `keyway._errors`.
pub fn raise(class: &str, message: String) -> PyErr {
    Python::attach(|py| {
        let class = py
            .import("keyway._errors")
            .and_then(|module| module.getattr(class))
            .and_then(|class| class.cast_into::<PyType>().map_err(PyErr::from));
        match class {
            Ok(class) => PyErr::from_type(class, message),
            Err(missing) => missing,
        }
    })
}

/// The result of a Rust call as that of a Python function.
pub trait OrRaise<T> {
    /// Converts the error to an exception.
    fn or_raise(self) -> PyResult<T>;
}

impl<T> OrRaise<T> for keyway::Result<T> {
    fn or_raise(self) -> PyResult<T> {
        self.map_err(exception)
    }
}
