//! Damaged libraries: the files of thousands are read, and some dozens of those that pass the check are loaded, with every
//! command. None ends the command, and each has a verdict.
//!
//! `KEYWAY_TEST_DAMAGED=1000 cargo test -p keyway-cli --test damaged every_command -- --nocapture` damages a thousand; that
//! takes about a quarter of an hour.

mod support;

use keyway::dispatcher::loader::{HOST_ABI, precheck};
use std::fs::OpenOptions;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use support::{library, library_of, program, run};

/// A fixed sequence, so that a failure repeats.
struct Sequence(u64);

impl Sequence {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }
}

/// The parts of the file that the program headers of these kinds name: the code (1 with the flag 1), the dynamic table (2).
fn parts(bytes: &[u8], kind: u32, flag: u32) -> Vec<Range<usize>> {
    let u16_at = |at: usize| u16::from_le_bytes(bytes[at..at + 2].try_into().unwrap()) as usize;
    let u32_at = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    let u64_at = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as usize;
    let headers = (0..u16_at(56)).map(|i| u64_at(32) + i * u16_at(54));
    let wanted = headers.filter(|at| u32_at(*at) == kind && u32_at(at + 4) & flag == flag);
    wanted.map(|at| u64_at(at + 8)..u64_at(at + 8) + u64_at(at + 32)).collect()
}

#[test]
fn thousands_of_damaged_files_have_an_answer() {
    let whole = std::fs::read(library_of("keyway_test_minimal")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.so");
    std::fs::write(&path, &whole).unwrap();
    let file = OpenOptions::new().write(true).open(&path).unwrap();
    let sections = u64::from_le_bytes(whole[40..48].try_into().unwrap()) as usize;
    let mut random = Sequence(1);
    let (mut sound, mut refused) = (0, 0);
    for round in 0..3000 {
        // The headers, the table of sections at the end, the small tables in front, and anywhere.
        let (from, length) =
            [(0, 1024), (sections, whole.len() - sections), (0, 1 << 16), (0, whole.len())][round % 4];
        let count = 1 + random.below(4);
        let offsets: Vec<usize> = (0..count).map(|_| from + random.below(length)).collect();
        for at in &offsets {
            file.write_all_at(&[random.below(256) as u8], *at as u64).unwrap();
        }
        match precheck::check(&path, HOST_ABI) {
            Ok(_) => sound += 1,
            Err(error) => {
                refused += 1;
                assert!(error.to_string().contains("expected"), "{error}");
            }
        }
        for at in offsets {
            file.write_all_at(&whole[at..=at], at as u64).unwrap();
        }
    }
    assert!(sound > 300 && refused > 300, "{sound} look whole, {refused} are refused");
    assert!(precheck::check(&path, HOST_ABI).is_ok(), "the damage was undone");
}

/// The file offset of the section header with this name.
fn section(bytes: &[u8], name: &str) -> usize {
    let number = |at: usize, length: usize| {
        bytes[at..at + length].iter().rev().fold(0_usize, |all, byte| all << 8 | usize::from(*byte))
    };
    let header = |index: usize| number(40, 8) + index * number(58, 2);
    let names = number(header(number(62, 2)) + 24, 8);
    let is_named = |at: usize| bytes[names + number(at, 4)..].starts_with(format!("{name}\0").as_bytes());
    (0..number(60, 2)).map(header).find(|at| is_named(*at)).expect("the library has the section")
}

/// Damage that the system's loader does not check, so that a trial may survive it and the program does not.
#[test]
#[cfg(target_os = "linux")]
fn damage_that_a_trial_may_outlive_is_found_in_the_file() {
    let whole = std::fs::read(library_of("keyway_test_minimal")).unwrap();
    let number = |at: usize| u64::from_le_bytes(whole[at..at + 8].try_into().unwrap()) as usize;
    let versions = section(&whole, ".gnu.version");
    let (start, length) = (number(versions + 24), number(versions + 32));
    let segments: Vec<usize> = (0..usize::from(whole[56]))
        .map(|index| number(32) + index * usize::from(whole[54]))
        .filter(|at| whole[*at..*at + 4] == 1_u32.to_le_bytes())
        .collect();
    let (first, second) = (segments[0], segments[1]);
    let overlap = number(second + 16) - number(first + 16) + 1;
    let patch = |at: usize, bytes: &[u8]| (at, bytes.to_vec());
    let cases = [
        ("index", patch(start + length - 2, &0x7ff0_u16.to_le_bytes()), "has version 32752 of"),
        ("hidden", patch(start + 2, &0xfff1_u16.to_le_bytes()), "has version 32753 of"),
        ("short", patch(versions + 32, &(length as u64 - 2).to_le_bytes()), "versions"),
        ("overlap", patch(first + 40, &(overlap as u64).to_le_bytes()), "where the one before it ends"),
        ("endless", patch(second + 40, &u64::MAX.to_le_bytes()), "bytes in memory"),
        ("file", patch(first + 40, &1_u64.to_le_bytes()), "bytes in memory of 1"),
    ];
    for (name, (at, bytes), part) in cases {
        let folder = tempfile::tempdir().unwrap();
        let mut damaged = whole.clone();
        damaged[at..at + bytes.len()].copy_from_slice(&bytes);
        std::fs::write(folder.path().join("liba.so"), damaged).unwrap();
        let mut command = program(folder.path());
        command.args(["backend", "list"]);
        let ran = run(command).expect(1);
        for part in ["rejected", "a damaged one", part, "copy or build it again"] {
            assert!(ran.out.contains(part), "{name}: `{part}` is missing in: {}", ran.out);
        }
    }
}

#[test]
#[cfg(target_os = "linux")]
fn damaged_code_does_not_end_the_program() {
    let whole = std::fs::read(library_of("keyway_test_minimal")).unwrap();
    let (folder, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let name = b"keyway.test/minimal";
    let names: Vec<usize> =
        (0..whole.len() - name.len()).filter(|at| whole[*at..].starts_with(name)).collect();
    let code = parts(&whole, 1, 1).pop().expect("a library has code");
    let table = parts(&whole, 2, 0).pop().expect("a library has a dynamic table");
    let mut random = Sequence(2);
    const COUNT: usize = 40;
    for index in 0..COUNT {
        let mut bytes = whole.clone();
        let own = format!("keyway.test/min-{index:03}");
        names.iter().for_each(|at| bytes[*at..at + name.len()].copy_from_slice(own.as_bytes()));
        if index % 2 == 0 {
            // An invalid instruction, over a part of the code.
            let length = (code.len() / 8).min(1 << (10 + random.below(10)));
            let at = code.start + random.below(code.len() - length);
            bytes[at..at + length].fill(0xcc);
        } else {
            // The value of an entry of the dynamic table: an unmapped address.
            let at = table.start + 16 * random.below(table.len() / 16) + 8;
            bytes[at..at + 8].copy_from_slice(&0x0000_4141_4141_4000u64.to_le_bytes());
        }
        std::fs::write(folder.path().join(format!("libdamaged{index:03}.so")), bytes).unwrap();
    }
    std::fs::copy(library(), folder.path().join("libsound.so")).unwrap();
    let report = |arguments: &[&str]| {
        let mut command = program(folder.path());
        command.args(arguments).env("XDG_STATE_HOME", state.path());
        // Damage may also make a loop.
        command.env("KEYWAY_PROBE_SECONDS", "10");
        let ran = run(command);
        assert!(matches!(ran.code, Some(0 | 1)), "{:?}\n{}", ran.code, ran.err);
        ran
    };
    let json = report(&["doctor", "--json"]).json();
    let all = json["discovery"]["candidates"].as_array().unwrap();
    assert_eq!(all.len(), COUNT + 1, "each is named");
    let verdict = |c: &serde_json::Value| c["outcome"]["verdict"].as_str().unwrap().to_string();
    let sound = all.iter().find(|c| c["found_as"].as_str().unwrap().ends_with("libsound.so")).unwrap();
    assert_eq!(verdict(sound), "chosen");
    let rejected: Vec<_> = all.iter().filter(|c| verdict(c) == "rejected").collect();
    assert!(rejected.len() > COUNT / 4, "only {} of {COUNT} were found damaged", rejected.len());
    assert!(rejected.iter().all(|c| !c["message"].as_str().unwrap().is_empty()));
    for arguments in [["backend", "list"].as_slice(), &["ops"], &["explain", "add"]] {
        assert!(report(arguments).out.contains("keyway-cpu"));
    }
}

/// Damaged libraries in one folder.
const IN_FOLDER: usize = 20;
/// A command that takes longer hangs.
const LONGEST: &str = "180";

/// A copy of the library with its own name and a few wrong bytes: half of the time in the tables that it passes to the host,
/// else in its code, in the data that its loading reads, or anywhere.
fn damaged(whole: &[u8], name: &[u8], index: usize, random: &mut Sequence) -> Vec<u8> {
    let mut bytes = whole.to_vec();
    let own = format!("keyway.test/{index:0width$}", width = name.len() - "keyway.test/".len());
    let names: Vec<usize> =
        (0..whole.len() - name.len()).filter(|at| whole[*at..].starts_with(name)).collect();
    assert!(!names.is_empty());
    names.iter().for_each(|at| bytes[*at..at + name.len()].copy_from_slice(own.as_bytes()));
    let (writable, executable, dynamic) = (parts(whole, 1, 2), parts(whole, 1, 1), parts(whole, 2, 0));
    let anywhere = vec![0..whole.len(); 1];
    let ranges = match random.below(8) {
        0..4 => &writable[..],
        4..6 => &executable,
        6 => &dynamic,
        _ => &anywhere,
    };
    for _ in 0..1 + random.below(3) {
        let part = &ranges[random.below(ranges.len())];
        bytes[part.start + random.below(part.len())] = random.below(256) as u8;
    }
    bytes
}

/// The commands that examine every library, as they are typed; `FILE` is a file to write.
const COMMANDS: [&[&str]; 8] = [
    &["train", "digits", "--model", "mlp", "--epochs", "1", "--json", "FILE"],
    &["bench", "--size", "33", "--rounds", "1", "--threads=1", "--json", "FILE"],
    &["conformance", "cpu", "--quick", "--op", "abs", "--json", "FILE"],
    &["backend", "verify"],
    &["backend", "list"],
    &["doctor"],
    &["ops"],
    &["explain", "add"],
];

#[test]
#[cfg(target_os = "linux")]
fn every_command_outlives_every_damaged_library() {
    let count = std::env::var("KEYWAY_TEST_DAMAGED").map_or(IN_FOLDER, |count| count.parse().unwrap());
    let kinds =
        [("keyway_test_minimal", "keyway.test/minimal"), ("keyway_test_unruly", "keyway.test/unruly-000")];
    let wholes = kinds.map(|(library, name)| (std::fs::read(library_of(library)).unwrap(), name.as_bytes()));
    let mut random = Sequence(3);
    let mut fallen = Vec::new();
    for first in (0..count).step_by(IN_FOLDER) {
        let (folder, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let mut files = Vec::new();
        for index in first..count.min(first + IN_FOLDER) {
            let (whole, name) = &wholes[index % wholes.len()];
            let path = folder.path().join(format!("libdamaged{index:05}.so"));
            std::fs::write(&path, damaged(whole, name, index, &mut random)).unwrap();
            files.push(path);
        }
        std::fs::copy(library(), folder.path().join("libsound.so")).unwrap();
        let mut outlived = |arguments: &[&str]| {
            let file = state.path().join("report.json");
            let _ = std::fs::remove_file(&file);
            let of_program = program(folder.path());
            let mut command = std::process::Command::new("timeout");
            command.args(["-s", "KILL", LONGEST]).arg(of_program.get_program());
            command.args(
                arguments.iter().map(|word| if *word == "FILE" { file.to_str().unwrap() } else { word }),
            );
            for (name, value) in of_program.get_envs() {
                match value {
                    Some(value) => command.env(name, value),
                    None => command.env_remove(name),
                };
            }
            command.env("XDG_STATE_HOME", state.path().join("state")).env("KEYWAY_PROBE_SECONDS", "10");
            command.env("XDG_DATA_HOME", state.path().join("data")).stdin(std::process::Stdio::null());
            let ran = run(command);
            let has_written = !arguments.contains(&"FILE") || ran.code != Some(0) || file.exists();
            if !matches!(ran.code, Some(0..=2)) || !has_written {
                let folder_of_failure = std::env::temp_dir().join(format!("keyway-damaged-{first}"));
                fallen.push(format!(
                    "{arguments:?} with {}: {:?}\n{}",
                    folder_of_failure.display(),
                    ran.code,
                    ran.err
                ));
                std::fs::create_dir_all(&folder_of_failure).unwrap();
                for file in &files {
                    std::fs::copy(file, folder_of_failure.join(file.file_name().unwrap())).unwrap();
                }
            }
            ran
        };
        for arguments in COMMANDS {
            let ran = outlived(arguments);
            // Commands that work without the damaged libraries also work with them.
            if !["doctor", "backend"].contains(&arguments[0]) {
                assert_eq!(ran.code, Some(0), "{arguments:?}: {}", ran.err);
            }
        }
        let home = state.path().join("home");
        for file in &files {
            outlived(&["backend", "install", file.to_str().unwrap(), "--dir", home.to_str().unwrap()]);
        }
        eprintln!("{} of {count} damaged libraries", first + files.len());
    }
    assert!(fallen.is_empty(), "{} fell:\n{}", fallen.len(), fallen.join("\n"));
}
