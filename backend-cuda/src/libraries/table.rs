//! A library's functions, resolved once, with their names for error messages.

/// Defines `Library`, a table of functions. Functions in `answers` return a status, 0 for success, and are called with the
/// listed arguments; codes and attributes are integers, since a newer library has more of them than the enums. Functions in
/// `raw` are fields. The module defines `Library::failure(&self, call, code)`.
macro_rules! table {
    (
        version: $version:ident;
        raw { $($raw:ident: $raw_type:ty;)+ }
        answers { $($name:ident($($argument:ident: $type:ty),* $(,)?);)+ }
    ) => {
        #[allow(non_snake_case)]
        pub struct Library {
            $($name: unsafe extern "C" fn($($type),*) -> std::ffi::c_uint,)+
            $($raw: $raw_type,)+
            version: usize,
            _file: libloading::Library,
        }

        impl Library {
            /// Opens a library by its path, or by a name for the system's loader, and resolves every function; `serves`
            /// checks its version, or returns the reason why it is unsupported.
            fn resolve(
                path: &std::path::Path,
                serves: impl Fn(usize) -> Result<(), String>,
            ) -> Result<Library, String> {
                // SAFETY: the library is one that the system's loader finds, or a file that only its owner may write; its
                // initialisers are its own.
                let file = unsafe { libloading::Library::new(path) }
                    .map_err(|error| format!("cannot be loaded ({})", crate::driver::reason(&error)))?;
                macro_rules! find {
                    ($symbol:expr) => {
                        // SAFETY: the types are those of the library's interface, as `cudarc` declares it.
                        *unsafe { file.get($symbol) }.map_err(|_| format!("has no {}", $symbol))?
                    };
                }
                let version: unsafe extern "C" fn() -> usize = find!(stringify!($version));
                // SAFETY: the function takes no arguments, and may be called before all others.
                let version = unsafe { version() };
                serves(version)?;
                Ok(Library {
                    $($name: find!(stringify!($name)),)+
                    $($raw: find!(stringify!($raw)),)+
                    version,
                    _file: file,
                })
            }

            $(
                /// # Safety
                /// As documented by the library for the function of this name; the caller upholds it.
                #[allow(non_snake_case, clippy::too_many_arguments, reason = "the library's functions as they are")]
                pub unsafe fn $name(&self, $($argument: $type),*) -> Result<(), $crate::driver::Failure> {
                    // SAFETY: the caller's.
                    let code = unsafe { (self.$name)($($argument),*) };
                    if code == 0 { Ok(()) } else { Err(self.failure(stringify!($name), code)) }
                }
            )+
        }

        // SAFETY: the functions may be called from any thread, each handle and descriptor by one at a time.
        unsafe impl Send for Library {}
        // SAFETY: as for Send.
        unsafe impl Sync for Library {}
    };
}
pub(crate) use table;
