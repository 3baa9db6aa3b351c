//! Tries one backend in its own process; see `keyway_dispatcher::loader::probe`. The program is installed beside `keyway`, or
//! beside the backends, and needs no other file.
#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    keyway::dispatcher::host::probe::main()
}
