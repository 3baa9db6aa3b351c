//! Damaged libraries: by the thousand their files are read, and some dozens of those that look whole are loaded. None takes
//! the command down, and each has its verdict.

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
        let places: Vec<usize> = (0..count).map(|_| from + random.below(length)).collect();
        for at in &places {
            file.write_all_at(&[random.below(256) as u8], *at as u64).unwrap();
        }
        match precheck::check(&path, HOST_ABI) {
            Ok(_) => sound += 1,
            Err(error) => {
                refused += 1;
                assert!(error.to_string().contains("expected"), "{error}");
            }
        }
        for at in places {
            file.write_all_at(&whole[at..=at], at as u64).unwrap();
        }
    }
    assert!(sound > 300 && refused > 300, "{sound} look whole, {refused} are refused");
    assert!(precheck::check(&path, HOST_ABI).is_ok(), "the damage was undone");
}

#[test]
#[cfg(target_os = "linux")]
fn damaged_code_takes_nobody_down() {
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
            // An instruction that is none, over a part of the code.
            let length = (code.len() / 8).min(1 << (10 + random.below(10)));
            let at = code.start + random.below(code.len() - length);
            bytes[at..at + length].fill(0xcc);
        } else {
            // The value of an entry of the dynamic table: an address where nothing is.
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
