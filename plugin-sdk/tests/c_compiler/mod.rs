//! The system's C and C++ compilers, for tests that need a plugin which is not Rust.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Without a compiler these tests fail, unless this variable is `1`.
const NONE_WANTED: &str = "KEYWAY_NO_CC";

/// A language and its compiler.
#[derive(Clone, Copy, Debug)]
#[allow(dead_code, reason = "each test program uses a part of it")]
pub enum Language {
    C,
    Cxx,
}

impl Language {
    fn command(self) -> Command {
        let (variable, usual) = match self {
            Language::C => ("CC", "cc"),
            Language::Cxx => ("CXX", "c++"),
        };
        let name = std::env::var(variable).unwrap_or_else(|_| usual.to_string());
        // The variable may hold flags as well, as make reads it.
        let mut words = name.split_whitespace();
        let mut command = Command::new(words.next().unwrap_or(usual));
        command.args(words);
        command
    }

    /// The standard that the header is written for, and every warning as an error.
    pub fn strict(self) -> [&'static str; 5] {
        let standard = match self {
            Language::C => "-std=c11",
            Language::Cxx => "-std=c++17",
        };
        [standard, "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
    }
}

/// Runs the compiler with these arguments and the folder of `keyway.h`. `false` if there is no compiler and none is
/// wanted.
pub fn compile(language: Language, arguments: &[&str]) -> bool {
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../plugin-sdk/include");
    let mut command = language.command();
    command.arg("-I").arg(&include).args(arguments);
    match command.output() {
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{command:?}\n{text}");
            true
        }
        Err(error) if std::env::var(NONE_WANTED).is_ok_and(|value| value == "1") => {
            eprintln!("not tested, as {NONE_WANTED} is 1: {command:?} cannot be started: {error}");
            false
        }
        Err(error) => panic!(
            "{command:?} cannot be started: {error}; install a C and a C++ compiler, name them by CC and CXX, or set \
             {NONE_WANTED}=1 to leave these tests out"
        ),
    }
}

/// Compiles a C plugin into a library of this name, as its author would. `None` as for [`compile`].
#[allow(dead_code, reason = "each test program uses a part of it")]
pub fn plugin(source: &Path, name: &str, flags: &[&str]) -> Option<PathBuf> {
    let library = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!(
        "{}{name}{}",
        std::env::consts::DLL_PREFIX,
        std::env::consts::DLL_SUFFIX
    ));
    // A new file each time: writing into one that is mapped would change running code.
    let _ = std::fs::remove_file(&library);
    let (source, out) = (source.to_str()?, library.to_str()?);
    let mut arguments = Language::C.strict().to_vec();
    arguments.extend(["-shared", "-fPIC", "-O1", "-o", out, source]);
    arguments.extend(flags);
    compile(Language::C, &arguments).then_some(library)
}
