//! A backend whose kernels are registered, and whose device is not on this machine.
#![cfg(target_os = "linux")]

mod support;

use keyway_conformance::certificate::Certificate;
use keyway_test_cuda_driver::{Reason, blas, build, dnn};
use serde_json::Value;
use std::path::Path;
use support::{Ran, library, library_of, program, run};

/// Runs the program with the backend of `cuda` where there is no driver.
fn without_driver(library: &Path, arguments: &[&str]) -> Ran {
    let mut command = program(library);
    command.env("KEYWAY_CUDA_DRIVER", "/nowhere/libcuda.so.1").args(arguments);
    run(command)
}

#[test]
fn nothing_is_judged_on_a_device_that_is_not_there() {
    let folder = tempfile::tempdir().unwrap();
    let built = library_of("keyway_backend_cuda");
    let library = folder.path().join(built.file_name().unwrap());
    std::fs::copy(&built, &library).unwrap();
    let path = library.to_str().unwrap();
    for which in [&["cuda"][..], &["keyway-cuda"], &["--library", path]] {
        let ran = without_driver(&library, &[&["conformance"], which].concat()).expect(1);
        assert!(ran.out.is_empty(), "{which:?}: {}", ran.out);
        let line = ran.err.lines().last().unwrap();
        assert!(
            line.contains("cuda: 0 devices: ") && line.contains("/nowhere/libcuda.so.1"),
            "{which:?}: {}",
            ran.err
        );
        assert!(line.ends_with("Nothing was judged"), "{which:?}: {}", ran.err);
    }
    assert!(!Certificate::beside(&library).exists());
}

#[test]
fn what_serves_an_op_depends_on_the_kind_of_device() {
    let cuda = library_of("keyway_backend_cuda");
    let ran = without_driver(&cuda, &["ops", "--device", "cuda"]).expect(0);
    assert!(ran.out.contains("Ops for (cuda, strided)") && ran.out.contains("A keyway-cuda"), "{}", ran.out);
    let ran = without_driver(&cuda, &["ops", "--device", "cuda", "--missing-for", "train"]).expect(0);
    assert!(ran.out.starts_with("cuda "), "{}", ran.out);
    let ran = without_driver(&cuda, &["explain", "add", "--device", "cuda"]).expect(0);
    assert!(ran.out.contains("served by kernel of `keyway-cuda`"), "{}", ran.out);
    let line = ran.out.lines().find(|line| line.contains("cuda: 0 devices: "));
    assert!(line.is_some_and(|line| line.contains("/nowhere/libcuda.so.1")), "{}", ran.out);
}

#[test]
fn a_part_of_the_cpu_is_not_judged_alone() {
    let folder = tempfile::tempdir().unwrap();
    let built = library_of("keyway_backend_channels_last");
    let images = folder.path().join(built.file_name().unwrap());
    std::fs::copy(&built, &images).unwrap();
    let judged = |others: &Path| {
        let mut command = program(others);
        command.args(["conformance", "--op", "channel_shuffle", "--quick", "--library"]).arg(&images);
        run(command)
    };
    let ran = judged(folder.path()).expect(1);
    let text = "`keyway-channels-last` serves a part of what `cpu` does, and no backend is there that serves the rest";
    assert!(ran.out.is_empty() && ran.err.contains(text) && ran.err.contains("--backends"), "{}", ran.err);
    assert!(!Certificate::beside(&images).exists());
    judged(&library()).expect(0);
}

#[test]
fn the_list_tells_of_devices_and_why_there_are_none() {
    let cuda = library_of("keyway_backend_cuda");
    let listed = without_driver(&cuda, &["backend", "list", "--json"]).expect(0).json();
    assert_eq!(listed["devices"][0]["device"], "cuda");
    assert_eq!(listed["devices"][0]["served_by"], "keyway-cuda");
    assert!(listed["devices"][0]["trouble"].as_str().unwrap().contains("/nowhere/libcuda.so.1"), "{listed}");
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("libcuda.so.1");
    std::fs::write(&text, "no library").unwrap();
    let mut command = program(&cuda);
    command.env("KEYWAY_CUDA_DRIVER", &text).args(["backend", "list"]);
    let ran = run(command).expect(0);
    assert!(ran.out.contains("which cannot be loaded: ") && !ran.out.contains("not found"), "{}", ran.out);
}

/// The doctor's fact about a kind of device, by the fact's name.
fn fact_of(findings: &Value, fact: &str) -> String {
    let of = findings["device_facts"].as_array().unwrap().iter().find(|fact_of| fact_of["device"] == "cuda");
    let of = of.unwrap_or_else(|| panic!("{findings}"));
    assert_eq!(of["served_by"], "keyway-cuda");
    let fact = of["facts"].as_array().unwrap().iter().find(|own| own["name"] == fact);
    fact.unwrap_or_else(|| panic!("{of}"))["text"].as_str().unwrap().to_string()
}

#[test]
fn the_doctor_says_where_libraries_of_the_system_are_looked_for() {
    let cuda = library_of("keyway_backend_cuda");
    let findings = without_driver(&cuda, &["doctor", "--json"]).expect(0).json();
    let driver = fact_of(&findings, "driver");
    assert!(driver.starts_with("none") && driver.contains("KEYWAY_CUDA_DRIVER: /nowhere/"), "{driver}");
    for (library, file) in [("cuBLASLt", "libcublasLt.so.12"), ("cuDNN", "libcudnn.so.9")] {
        let text = fact_of(&findings, library);
        for part in ["not looked for without a driver", file, "/usr/local/cuda/lib64"] {
            assert!(text.contains(part), "{text}");
        }
    }
    let shown = without_driver(&cuda, &["doctor"]).expect(0).out;
    assert!(shown.contains("\nOf cuda, by keyway-cuda\n  driver     none that works; "), "{shown}");
    // The backend of host memory has no such facts.
    assert!(!support::keyway(&["doctor"]).expect(0).out.contains("\nOf "), "{shown}");
}

#[test]
fn the_doctor_names_the_libraries_that_were_found_and_what_goes_without_the_others() {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let target = std::env::current_exe().unwrap().ancestors().nth(3).unwrap().to_path_buf();
    let driver = match build(repository, &target) {
        Err(reason @ Reason::NoCompiler { .. }) => return eprintln!("skipped: {reason}"),
        other => other.unwrap(),
    };
    let cuda = library_of("keyway_backend_cuda");
    let doctor = |variable: &str, library: Option<&Path>| {
        let mut command = program(&cuda);
        command.env("KEYWAY_CUDA_DRIVER", &driver).args(["doctor", "--json"]);
        command.env_remove("KEYWAY_CUDA_BLAS").env_remove("KEYWAY_CUDA_DNN");
        command.envs(library.map(|library| (variable, library)));
        run(command).expect(0)
    };
    let ran = doctor("KEYWAY_CUDA_BLAS", Some(&blas(&driver)));
    assert!(
        ran.err.is_empty(),
        "a report is no use of the library, so the log has nothing to say: {}",
        ran.err
    );
    let findings = ran.json();
    let own = |path: &Path| path.canonicalize().unwrap().display().to_string();
    let text = fact_of(&findings, "driver");
    assert!(text.starts_with("for CUDA 1") && text.contains(&own(&driver)), "{text}");
    for (library, file, variable, version, makes) in [
        ("cuBLASLt", blas(&driver), "KEYWAY_CUDA_BLAS", "12.", "products of matrices"),
        ("cuDNN", dnn(&driver), "KEYWAY_CUDA_DNN", "9.", "convolutions"),
    ] {
        let said = |named| fact_of(&doctor(variable, named).json(), library);
        let text = said(Some(&file));
        assert!(text.starts_with(version) && text.contains(&own(&file)) && text.contains(makes), "{text}");
        for (named, beginning) in [
            (Some(Path::new("off")), format!("off, by {variable}")),
            (Some(Path::new("/nowhere/lib")), "none: ".to_string()),
            (None, "none: ".to_string()),
        ] {
            let text = said(named);
            assert!(text.starts_with(&beginning), "{text}");
            assert!(text.contains(&format!("{makes} are computed without it")), "{text}");
        }
    }
}
