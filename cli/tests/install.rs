//! `keyway backend install`, `remove`, `enable` and `disable`, each in its own folder.

mod support;

use keyway::dispatcher::loader::CpuFeatures;
use keyway::dispatcher::loader::trust::sha256_file;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use support::{Ran, library, library_of, program, run};

/// A user with no backend installed.
struct Home(tempfile::TempDir);

impl Home {
    fn new() -> Home {
        Home(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The user's own folder of backends.
    fn backends(&self) -> PathBuf {
        self.path("data/keyway/backends")
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = program(Path::new("/nowhere/at/all"));
        for (variable, folder) in [("DATA", "data"), ("STATE", "state"), ("CONFIG", "config")] {
            command.env(format!("XDG_{variable}_HOME"), self.path(folder));
        }
        command.args(arguments);
        command
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        run(self.command(arguments))
    }

    fn install(&self, source: &Path) -> Ran {
        self.run(&["backend", "install", "--reserved-name", source.to_str().unwrap()])
    }

    /// The names of the files in the user's folder.
    fn files(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.backends()).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries.map(|e| e.file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn libraries(&self) -> Vec<String> {
        self.files().into_iter().filter(|name| name.ends_with(".so")).collect()
    }
}

/// The minimal plugin with parts of its manifest replaced; the description is emptied to make space.
fn minimal(changes: &[(&str, serde_json::Value)]) -> Vec<u8> {
    let mut bytes = std::fs::read(library_of("keyway_test_minimal")).unwrap();
    let mark = b"{\"name\":\"";
    let start = (0..bytes.len()).find(|at| bytes[*at..].starts_with(mark)).unwrap();
    let length = u32::from_le_bytes(bytes[start - 4..start].try_into().unwrap()) as usize;
    let mut manifest: serde_json::Value = serde_json::from_slice(&bytes[start..start + length]).unwrap();
    manifest["description"] = "".into();
    changes.iter().for_each(|(field, value)| manifest[*field] = value.clone());
    let text = serde_json::to_string(&manifest).unwrap();
    assert!(text.len() <= length, "no room for {text}");
    bytes[start..start + length].fill(b' ');
    bytes[start..start + text.len()].copy_from_slice(text.as_bytes());
    bytes
}

fn version(text: &str) -> Vec<u8> {
    minimal(&[("version", text.into())])
}

fn tar_gz(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let mut builder =
        tar::Builder::new(flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast()));
    for (path, bytes) in entries {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o777);
        builder.append_data(&mut header, path, *bytes).unwrap();
    }
    builder.into_inner().unwrap().finish().unwrap()
}

#[test]
fn a_library_is_installed_used_and_removed() {
    let home = Home::new();
    let ran = home.install(&library()).expect(0);
    assert!(ran.out.starts_with("installed keyway-cpu 0.1.0"), "{}", ran.out);
    let [name] = &home.libraries()[..] else { panic!("{:?}", home.files()) };
    assert!(name.starts_with("libkeyway-cpu-0.1.0-"), "{name}");
    let path = home.backends().join(name);
    let hash = sha256_file(&path).unwrap();
    let record = std::fs::read_to_string(home.backends().join(format!("{name}.sha256"))).unwrap();
    assert_eq!(record, format!("{hash}  {name}\n"));
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o644);
    assert!(home.files().contains(&"keyway-probe".to_string()), "{:?}", home.files());
    assert!(home.files().iter().all(|name| !name.starts_with('.')), "{:?}", home.files());
    let listed = home.run(&["backend", "list", "--json"]).expect(0).json();
    assert_eq!(listed["backends"][0]["outcome"]["verdict"], "chosen");
    assert!(home.install(&library()).expect(0).out.starts_with("installed already"));

    // A library that is changed afterwards is refused.
    let mut bytes = std::fs::read(&path).unwrap();
    let end = bytes.len() - 1;
    bytes[end] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    let ran = home.run(&["backend", "list"]).expect(1);
    assert!(ran.out.contains(&hash) && ran.out.contains("install the library again"), "{}", ran.out);
    assert!(home.install(&library()).expect(0).out.starts_with("replaced keyway-cpu"));
    assert!(home.run(&["backend", "list"]).expect(0).out.contains("used"));

    let ran = home.run(&["backend", "remove", "keyway-cpu"]).expect(0);
    assert!(ran.out.contains(name.as_str()), "{}", ran.out);
    assert_eq!(home.files(), ["keyway-probe"]);
    let gone = home.run(&["backend", "remove", "keyway-cpu"]).expect(2);
    assert!(gone.err.contains("no backend `keyway-cpu`; there: none is installed"), "{}", gone.err);
}

#[test]
fn versions_lie_side_by_side() {
    let home = Home::new();
    let source = home.path("liba.so");
    for text in ["0.2.0", "0.10.0"] {
        std::fs::write(&source, version(text)).unwrap();
        home.install(&source).expect(0);
    }
    assert_eq!(home.libraries().len(), 2);
    let ran = home.run(&["backend", "list"]).expect(0);
    assert!(ran.out.contains("version 0.10.0 is used"), "{}", ran.out);
    // The choice between them is not guessed.
    let ran = home.run(&["backend", "remove", "keyway.test/minimal"]).expect(2);
    assert!(
        ran.err.contains("there are 2 versions") && ran.err.contains("0.10.0, 0.2.0; choose one"),
        "{}",
        ran.err
    );
    home.run(&["backend", "remove", "keyway.test/minimal", "--version", "0.10.0"]).expect(0);
    let listed = home.run(&["backend", "list", "--json"]).expect(0).json();
    assert_eq!(listed["backends"].as_array().unwrap().len(), 1);
    assert_eq!(listed["backends"][0]["library"]["manifest"]["version"], "0.2.0");
}

#[test]
fn a_version_is_chosen_rolled_back_and_disabled() {
    let home = Home::new();
    let source = home.path("liba.so");
    for (text, said) in
        [("0.2.0", ""), ("0.10.0", ""), ("0.1.5", "0.1.5 v is not used: version 0.10.0 is used")]
    {
        let bytes = minimal(&[("version", text.into()), ("variant", "v".into())]);
        std::fs::write(&source, bytes).unwrap();
        let ran = home.install(&source).expect(0);
        assert!(ran.err.contains(said) && ran.err.is_empty() == said.is_empty(), "{text}: {}", ran.err);
    }
    let used = || {
        let listed = home.run(&["backend", "list", "--json"]).expect(0).json();
        let all = listed["backends"].as_array().unwrap().clone();
        let chosen = all.iter().find(|b| b["outcome"]["verdict"] == "chosen").unwrap();
        chosen["library"]["manifest"]["version"].as_str().unwrap().to_string()
    };
    let name = "keyway.test/minimal";
    let said = |arguments: &[&str], code| {
        let ran = home.run(&[&["backend"], arguments].concat()).expect(code);
        ran.out + &ran.err
    };
    assert!(said(&["use", name, "0.2.0"], 0).contains("version 0.2.0 is used from the next run on"));
    assert_eq!(used(), "0.2.0");
    assert!(said(&["list"], 0).contains("as you chose with `keyway backend use`"));
    assert!(said(&["use", name, "7.0.0"], 2).contains("there: 0.10.0, 0.2.0, 0.1.5"));
    assert!(said(&["rollback", name], 0).contains("version 0.1.5 is used instead of 0.2.0"));
    assert_eq!(used(), "0.1.5");
    assert!(said(&["rollback", name], 2).contains("no version of `keyway.test/minimal` below 0.1.5"));
    assert!(said(&["use", name, "--not"], 0).contains("no version is chosen"));
    assert_eq!(used(), "0.10.0");
    assert!(said(&["disable", name, "--version", "0.10.0"], 0).contains("0.10.0: disabled from"));
    assert_eq!(used(), "0.2.0");
    assert!(said(&["disable", name, "--version", "3.0.0"], 2).contains("there is no version 3.0.0"));
    said(&["disable", name], 0);
    assert!(
        said(&["enable", name, "--version", "0.10.0"], 2)
            .contains("all of `keyway.test/minimal` is disabled")
    );
    said(&["enable", name], 0);
    assert_eq!(used(), "0.10.0");
    assert!(said(&["use", "no.such/plugin", "1"], 2).contains("there is no backend `no.such/plugin`"));
    said(&["remove", name, "--all"], 0);
    assert_eq!(home.libraries().len(), 0);
}

#[test]
fn a_name_of_the_project_is_installed_from_its_installation_or_on_request() {
    let home = Home::new();
    let refused = |ran: Ran| {
        let ran = ran.expect(1);
        for part in ["got `keyway-cpu`, which belongs to the Keyway project", "`--reserved-name`"] {
            assert!(ran.err.contains(part), "`{part}` is missing in: {}", ran.err);
        }
    };
    refused(home.run(&["backend", "install", library().to_str().unwrap()]));
    assert_eq!(home.libraries().len(), 0);
    // A library that was copied into the folder is not used either.
    let copied = home.backends().join("libfast.so");
    std::fs::create_dir_all(home.backends()).unwrap();
    std::fs::copy(library(), &copied).unwrap();
    let ran = home.run(&["backend", "list"]).expect(1);
    assert!(ran.out.contains("rejected") && ran.out.contains("belongs to the Keyway project"), "{}", ran.out);
    std::fs::remove_file(copied).unwrap();
    // As `keyway backend install dist` does, with the program of `dist`.
    let dist = home.path("dist");
    for part in ["bin", "backends"] {
        std::fs::create_dir_all(dist.join(part)).unwrap();
    }
    for name in ["keyway", "keyway-probe"] {
        let built = Path::new(env!("CARGO_BIN_EXE_keyway")).with_file_name(name);
        std::fs::hard_link(&built, dist.join("bin").join(name))
            .or_else(|_| std::fs::copy(&built, dist.join("bin").join(name)).map(drop))
            .unwrap();
    }
    std::fs::copy(library(), dist.join("backends/libcpu.so")).unwrap();
    let usual = home.command(&["backend", "install", dist.to_str().unwrap()]);
    let mut command = Command::new(dist.join("bin/keyway"));
    command.args(usual.get_args());
    usual.get_envs().for_each(|(name, value)| {
        command.env(name, value.unwrap_or_default());
    });
    assert!(run(command).expect(0).out.starts_with("installed keyway-cpu"));
    assert!(home.run(&["explain", "add"]).expect(0).out.contains("keyway-cpu"));
}

#[test]
fn of_an_archive_only_the_build_for_this_processor_is_taken() {
    let home = Home::new();
    let of = |variant: &str, features: serde_json::Value| {
        minimal(&[("variant", variant.into()), ("cpu_features", features)])
    };
    let have: Vec<String> = CpuFeatures::detect().names().take(1).map(str::to_string).collect();
    let (base, better, other) =
        (of("v1", [""; 0].into()), of("v2", have.into()), of("v9", ["avx999"].into()));
    let archive = home.path("all.tar.gz");
    let entries: [(&str, &[u8]); 4] = [
        ("x/backends/liba-v1.so", &base),
        ("x/backends/liba-v2.so", &better),
        ("x/backends/liba-v9.so", &other),
        ("x/README", b"nothing"),
    ];
    std::fs::write(&archive, tar_gz(&entries)).unwrap();
    let ran = home.install(&archive).expect(0);
    assert!(ran.out.contains("keyway.test/minimal 0.1.0 v2"), "{}", ran.out);
    assert_eq!(home.libraries(), ["libkeyway.test_minimal-0.1.0-v2.so"]);
    home.run(&["backend", "install", "--all-variants", archive.to_str().unwrap()]).expect(0);
    assert_eq!(home.libraries().len(), 3);
    // A folder with the same files, laid out like `dist`.
    let folder = home.path("dist/backends");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("liba-v9.so"), &other).unwrap();
    let again = Home::new();
    let ran = again.install(&home.path("dist")).expect(1);
    assert!(ran.err.contains("is not installed") && ran.err.contains("avx999"), "{}", ran.err);
    assert_eq!(again.libraries().len(), 0);
    std::fs::write(folder.join("liba-v1.so"), &base).unwrap();
    again.install(&home.path("dist")).expect(0);
    assert_eq!(again.libraries(), ["libkeyway.test_minimal-0.1.0-v1.so"]);
}

#[test]
fn what_cannot_be_used_is_not_installed() {
    let home = Home::new();
    let put = |name: &str, bytes: &[u8]| {
        let path = home.path(name);
        std::fs::write(&path, bytes).unwrap();
        path
    };
    let whole = std::fs::read(library_of("keyway_test_minimal")).unwrap();
    let evil = tar_gz(&[("liba.so", &whole)]);
    // The name of the entry is changed after the builder's own check.
    let mut plain = Vec::new();
    std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(&evil[..]), &mut plain).unwrap();
    plain[..7].copy_from_slice(b"../a.so");
    let sum: u32 = plain[..512]
        .iter()
        .enumerate()
        .map(|(i, b)| if (148..156).contains(&i) { 32 } else { u32::from(*b) })
        .sum();
    plain[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(&plain).unwrap();
    let unruly = {
        let mut bytes = std::fs::read(library_of("keyway_test_unruly")).unwrap();
        let mark = b"keyway-unruly-how=never:nothing";
        let at = (0..bytes.len()).find(|at| bytes[*at..].starts_with(mark)).unwrap();
        bytes[at..at + mark.len()].copy_from_slice(b"keyway-unruly-how=setup:abort  ");
        bytes
    };
    std::fs::create_dir(home.path("empty")).unwrap();
    let cases = [
        (put("text.so", b"text"), 1, "a text file"),
        (put("cut.so", &whole[..whole.len() / 2]), 1, "truncated"),
        (put("evil.tar.gz", &packed.finish().unwrap()), 1, "leads out of the archive"),
        (put("unruly.so", &unruly), 1, "ended by SIGABRT"),
        (home.path("empty"), 1, "there is no backend to install: expected a library"),
        (
            put("none.tar", &[0; 10240]),
            1,
            "expected an archive of libraries (.tar, .tar.gz), got an empty one",
        ),
        (put("empty.tar.gz", b""), 1, "got an empty one"),
        (put("text.tar", b"text"), 1, "got a file that is none"),
        (PathBuf::from("/dev/null"), 1, "expected a library, a folder or an archive"),
        (home.path("not-there"), 2, "no such library"),
        (PathBuf::from("cuda"), 2, "the backend `keyway-cuda` would serve `cuda`"),
        (PathBuf::from("sparse_coo"), 2, "the backend `keyway-sparse`"),
    ];
    for (source, code, part) in cases {
        let ran = home.install(&source).expect(code);
        assert!(ran.err.contains(part), "{}: {}", source.display(), ran.err);
        assert!(home.libraries().is_empty() && !home.path("a.so").exists(), "{:?}", home.files());
        assert!(home.files().iter().all(|name| !name.starts_with(".install")), "{:?}", home.files());
    }
    // A record of another hash beside the source.
    let source = put("liba.so", &whole);
    std::fs::write(home.path("liba.so.sha256"), "0".repeat(64)).unwrap();
    assert!(home.install(&source).expect(1).err.contains("expected SHA-256 000"));
    // A folder that other users may write.
    let open = home.path("open");
    std::fs::create_dir(&open).unwrap();
    std::fs::set_permissions(&open, std::fs::Permissions::from_mode(0o777)).unwrap();
    std::fs::remove_file(home.path("liba.so.sha256")).unwrap();
    let to = ["backend", "install", source.to_str().unwrap(), "--dir", open.to_str().unwrap()];
    assert!(home.run(&to).expect(1).err.contains("chmod o-w"));
    // A folder that `--dir` names, and that no search visits.
    let own = home.path("own/backends");
    let to = ["backend", "install", source.to_str().unwrap(), "--dir", own.to_str().unwrap()];
    let ran = home.run(&to).expect(0);
    assert!(
        ran.err.contains("KEYWAY_BACKEND_PATH=")
            && own.join("libkeyway.test_minimal-0.1.0-x86-64.so").exists()
            || !cfg!(target_arch = "x86_64"),
        "{}",
        ran.err
    );
}

#[test]
fn preferences_that_cannot_be_read_are_reported_and_not_changed() {
    let home = Home::new();
    home.install(&library()).expect(0);
    home.run(&["backend", "disable", "keyway-cpu"]).expect(0);
    let file = home.path("config/keyway/preferences.json");
    std::fs::write(&file, "{ damaged").expect("written");
    let expected_text = format!("{} is not used", file.display());
    for command in [&["explain", "add"][..], &["doctor"], &["backend", "list"]] {
        let ran = home.run(command).expect(0);
        let said = format!("{}{}", ran.out, ran.err).replace(['\n', ' '], "");
        assert!(said.contains(&expected_text.replace(' ', "")), "{command:?}: {}{}", ran.out, ran.err);
    }
    let ran = home.run(&["backend", "disable", "keyway-cpu"]);
    assert!(ran.expect(1).err.contains("mend or remove it"));
    assert_eq!(std::fs::read_to_string(&file).expect("there"), "{ damaged");
}

#[test]
fn a_disabled_backend_is_passed_over_until_it_is_enabled() {
    let home = Home::new();
    home.install(&library()).expect(0);
    assert!(
        home.run(&["backend", "disable", "keyway-cpu"]).expect(0).out.contains("disabled from the next run")
    );
    let ran = home.run(&["backend", "list"]).expect(0);
    assert!(
        ran.out.contains("passed over") && ran.out.contains("keyway backend enable keyway-cpu"),
        "{}",
        ran.out
    );
    assert!(home.run(&["explain", "add"]).expect(0).out.contains("nothing serves"));
    // A disabled backend that is named for one run is used.
    let named = ["--backends", home.backends().to_str().unwrap(), "explain", "add"].map(str::to_string);
    let named: Vec<&str> = named.iter().map(String::as_str).collect();
    assert!(home.run(&named).expect(0).out.contains("keyway-cpu"));
    assert!(home.run(&["backend", "enable", "keyway-cpu"]).expect(0).out.contains("enabled from"));
    assert!(home.run(&["backend", "enable", "keyway-cpu"]).expect(0).out.contains("as before"));
    assert!(home.run(&["explain", "add"]).expect(0).out.contains("keyway-cpu"));
    // By the names of the methods as well.
    for (method, op) in [
        ("conv2d", "conv"),
        ("max_pool3d_with_indices", "max_pool"),
        ("max_pool2d", "max_pool_values"),
        ("conv_transpose1d", "conv_input_grad"),
    ] {
        assert_eq!(home.run(&["explain", method]).expect(0).out, home.run(&["explain", op]).expect(0).out);
    }
    for command in ["disable", "enable", "verify"] {
        let ran = home.run(&["backend", command, "keyway-cuda"]).expect(2);
        assert!(
            ran.err.contains("there: keyway-cpu") && ran.err.contains("would serve `cuda`"),
            "{}",
            ran.err
        );
    }
    assert!(home.run(&["explain", "add", "--device", "cuda"]).expect(2).err.contains("keyway-cuda"));
}

#[test]
#[cfg(target_os = "linux")]
fn names_that_are_no_text_and_pipes_beside_libraries_break_no_report() {
    use std::os::unix::ffi::OsStrExt;
    let home = Home::new();
    let folder = home.path("x").join(std::ffi::OsStr::from_bytes(b"f\xff\x1b[31m"));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("libcpu.so");
    std::fs::copy(library(), &file).unwrap();
    for side in ["libcpu.so.certificate.json", "libcpu.known-failures.toml"] {
        assert!(Command::new("mkfifo").arg(folder.join(side)).status().unwrap().success());
    }
    let mut arguments =
        vec![vec!["doctor"], vec!["backend", "list"], vec!["backend", "paths"], vec!["backend", "verify"]];
    for command in &mut arguments {
        let said = |json: bool| {
            let mut command = home.command(command);
            command.env("KEYWAY_BACKEND_PATH", &folder).args(json.then_some("--json"));
            run(command).expect(0)
        };
        assert!(said(true).json().to_string().contains('\u{fffd}'));
        assert!(!said(false).out.contains('\u{1b}'));
    }
    assert!(Command::new("mkfifo").arg(folder.join("libcpu.so.sha256")).status().unwrap().success());
    let mut command = home.command(&["backend", "list"]);
    command.env("KEYWAY_BACKEND_PATH", &folder);
    assert!(run(command).expect(1).out.contains("it is no regular file"));
}

#[test]
fn of_two_builds_installed_at_once_one_is_whole() {
    let home = Home::new();
    let sources: Vec<PathBuf> = ["one", "two"]
        .iter()
        .map(|text| {
            let source = home.path(&format!("lib{text}.so"));
            std::fs::write(&source, minimal(&[("description", (*text).into())])).unwrap();
            source
        })
        .collect();
    for _ in 0..4 {
        std::thread::scope(|scope| {
            for source in sources.iter().chain(&sources) {
                scope.spawn(|| home.install(source).expect(0));
            }
        });
        let listed = home.run(&["backend", "list", "--json"]).expect(0).json();
        assert_eq!(listed["backends"][0]["outcome"]["verdict"], "chosen", "{listed}");
    }
    assert_eq!(home.libraries().len(), 1);
    assert!(home.files().iter().all(|name| !name.starts_with('.')), "{:?}", home.files());
}

#[test]
fn a_limit_on_the_size_of_files_is_reported_and_leaves_nothing() {
    let home = Home::new();
    let plain = home.command(&["backend", "install", "--reserved-name", library().to_str().unwrap()]);
    let mut limited = Command::new("sh");
    limited.args(["-c", "ulimit -f 8 && exec \"$0\" \"$@\""]).arg(plain.get_program()).args(plain.get_args());
    limited.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let ran = run(limited).expect(1);
    assert!(ran.err.contains("cannot be copied to") && ran.err.contains("File too large"), "{}", ran.err);
    assert!(home.files().is_empty(), "{:?}", home.files());
}

#[test]
fn the_probe_is_installed_beside_a_backend() {
    let home = Home::new();
    std::fs::create_dir(home.path("all")).unwrap();
    std::fs::copy(library_of("keyway_test_minimal"), home.path("all/liba.so")).unwrap();
    std::fs::write(home.path("all/libb.so"), "text").unwrap();
    let ran = home.install(&home.path("all")).expect(1);
    assert!(ran.out.contains("installed keyway.test/minimal") && ran.err.contains("libb.so"), "{}", ran.err);
    assert!(home.files().contains(&"keyway-probe".to_string()), "{:?}", home.files());
}

#[test]
fn preferences_that_cannot_be_saved_are_a_failure_with_the_path() {
    let home = Home::new();
    home.install(&library()).expect(0);
    std::fs::write(home.path("config"), "a file where a folder is expected").unwrap();
    for command in ["prefer", "disable"] {
        let ran = home.run(&["backend", command, "keyway-cpu"]).expect(1);
        assert!(ran.err.contains("cannot write") && ran.err.contains("preferences.json"), "{}", ran.err);
        let mut homeless = home.command(&["backend", command, "keyway-cpu"]);
        homeless.env_remove("HOME").env_remove("XDG_CONFIG_HOME");
        let ran = run(homeless).expect(1);
        assert!(ran.err.contains("HOME is not set"), "{}", ran.err);
    }
}

#[test]
fn advice_changes_nothing_but_what_is_the_users() {
    let home = Home::new();
    for named in ["/dev/zero", "/dev/null"] {
        let ran = home.run(&["--backends", named, "backend", "list"]).expect(1);
        assert!(ran.out.contains("a pipe, socket or device") && !ran.out.contains("chmod"), "{}", ran.out);
    }
    let shared = home.path("shared");
    std::fs::create_dir(&shared).unwrap();
    std::fs::copy(library_of("keyway_test_minimal"), shared.join("liba.so")).unwrap();
    std::fs::set_permissions(&shared, std::fs::Permissions::from_mode(0o1777)).unwrap();
    let ran = home.run(&["--backends", shared.to_str().unwrap(), "backend", "list"]).expect(1);
    assert!(ran.out.contains("move the library into") && !ran.out.contains("chmod"), "{}", ran.out);
    let ran = home.run(&["conformance", "--library", shared.to_str().unwrap()]).expect(2);
    assert!(ran.err.contains("expected a library, got a folder"), "{}", ran.err);
}

#[test]
fn a_library_that_was_truncated_can_be_removed() {
    for by_path in [false, true] {
        let home = Home::new();
        home.install(&library()).expect(0);
        let [name] = &home.libraries()[..] else { panic!("{:?}", home.files()) };
        let path = home.backends().join(name);
        std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(4096).unwrap();
        home.run(&["backend", "list"]).expect(1);
        let ran = home.run(&["backend", "verify", "keyway-cpu"]).expect(1);
        assert!(ran.out.contains(name.as_str()), "{}{}", ran.out, ran.err);
        for other in ["keyway", "keyway-cp", "keyway-cpu-0.1.0"] {
            home.run(&["backend", "remove", other]).expect(2);
        }
        home.run(&["backend", "remove", "keyway-cpu", "--version", "9.9.9"]).expect(2);
        let given = if by_path { path.to_str().unwrap() } else { "keyway-cpu" };
        let ran = home.run(&["backend", "remove", given]).expect(0);
        assert!(ran.out.contains(name.as_str()), "{}", ran.out);
        assert_eq!(home.files(), ["keyway-probe"]);
        home.run(&["backend", "list"]).expect(0);
    }
    // A file elsewhere is not an installed backend, and so is not removed.
    let home = Home::new();
    let elsewhere = home.path("liba.so");
    std::fs::copy(library(), &elsewhere).unwrap();
    let ran = home.run(&["backend", "remove", elsewhere.to_str().unwrap()]).expect(2);
    assert!(ran.err.contains("name its folder with `--dir`") && elsewhere.exists(), "{}", ran.err);
}

#[test]
fn what_is_installed_again_says_that_it_stays_disabled() {
    let home = Home::new();
    assert!(!home.install(&library()).expect(0).err.contains("disabled"));
    home.run(&["backend", "disable", "keyway-cpu"]).expect(0);
    home.run(&["backend", "remove", "keyway-cpu"]).expect(0);
    let ran = home.install(&library()).expect(0);
    let said = "keyway-cpu is disabled, and stays so; use it with `keyway backend enable keyway-cpu`";
    assert!(ran.err.contains(said), "{}", ran.err);
}

#[test]
fn two_builds_in_one_folder_are_a_failure_and_two_copies_are_not() {
    let folder = tempfile::tempdir().unwrap();
    let put = |name: &str, bytes: &[u8]| std::fs::write(folder.path().join(name), bytes).unwrap();
    let run = |arguments: &[&str]| {
        let mut command = program(folder.path());
        command.args(["backend"]).args(arguments);
        run(command)
    };
    let commands = [["list"].as_slice(), &["list", "--json"], &["verify", "keyway.test/minimal"]];
    put("liba.so", &version("0.2.0"));
    put("libb.so", &version("0.2.0"));
    for arguments in commands {
        run(arguments).expect(0);
    }
    put("libb.so", &minimal(&[("version", "0.2.0".into()), ("description", "x".into())]));
    for arguments in commands {
        let ran = run(arguments).expect(1);
        assert!(ran.out.contains("another build of the same plugin"), "{}{}", ran.out, ran.err);
    }
}

#[test]
fn a_folder_that_is_not_there_is_reported() {
    let said = "expected a plugin library or a folder of such, got a path where nothing is: /nowhere/at/all";
    let with = |arguments: &[&str]| {
        let mut command = program(&library());
        command.args(arguments).args(["--backends", "/nowhere/at/all"]);
        run(command)
    };
    assert!(with(&["explain", "add"]).expect(0).err.contains(said));
    assert!(with(&["backend", "list"]).expect(1).out.contains(said));
}
