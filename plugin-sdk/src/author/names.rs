//! Interned names of devices, layouts and dtypes.

use super::connection::{done, host_api, no_host};
use super::error::Error;
use crate::abi::RawStr;
use crate::abi::codes::name_kind;

/// The kind of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameKind {
    /// A device such as `cpu`.
    Device,
    /// A layout such as `strided`.
    Layout,
    /// A dtype such as `f32`.
    Dtype,
}

impl NameKind {
    fn code(self) -> u32 {
        match self {
            NameKind::Device => name_kind::DEVICE,
            NameKind::Layout => name_kind::LAYOUT,
            NameKind::Dtype => name_kind::DTYPE,
        }
    }
}

/// Interns a name and returns the host's number of it.
pub fn intern(kind: NameKind, name: &str) -> Result<u16, Error> {
    let host = host_api().ok_or_else(no_host)?;
    // SAFETY: the host copies the name before it returns.
    match unsafe { (host.intern)(kind.code(), RawStr::borrow(name)) } {
        u16::MAX => Err(Error::Failed {
            detail: format!("the host's table of names is full, so {name} has no number"),
        }),
        number => Ok(number),
    }
}

/// The name of an interned number.
pub fn name(kind: NameKind, number: u16) -> Result<&'static str, Error> {
    let host = host_api().ok_or_else(no_host)?;
    let mut out = RawStr::EMPTY;
    // SAFETY: `out` is valid for the write.
    done(unsafe { (host.name)(kind.code(), number, &mut out) })?;
    // SAFETY: the host passes a text that lives as long as the process.
    match unsafe { out.read() } {
        std::borrow::Cow::Borrowed(name) => Ok(name),
        std::borrow::Cow::Owned(_) => {
            Err(Error::Failed { detail: "the host gave a name that is not UTF-8".into() })
        }
    }
}
