//! Tries one backend in a process of its own; see `keyway_dispatcher::loader::probe`. It lies beside `keyway`, or beside
//! the backends, and needs nothing but itself.
#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    keyway::dispatcher::host::probe::main()
}
