//! Saving and loading tensors: every dtype, damaged files, and saves that fail.
use keyway::MemoryFormat;
use keyway::io::safetensors::{
    SafetensorsError, list, load, load_file, load_only, open, save, save_with_metadata,
};
use keyway::nn::StateDict;
use keyway::{DType, Error, Tensor};
use std::path::Path;

fn dict(entries: impl IntoIterator<Item = (&'static str, Tensor)>) -> StateDict {
    entries.into_iter().map(|(name, tensor)| (name.to_string(), tensor)).collect()
}

fn floats(values: &[f32], sizes: &[usize]) -> Tensor {
    Tensor::from_vec(values.to_vec(), sizes).unwrap()
}

#[test]
fn every_dtype_and_shape_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("all.safetensors");
    let mut tensors = StateDict::new();
    let values = floats(&[0.0, 1.0, 2.0, 100.0, 3.0, 7.0], &[2, 3]);
    for dtype in DType::REAL {
        tensors.insert(format!("plain.{dtype}"), values.to_dtype(dtype).unwrap());
        tensors.insert(format!("turned.{dtype}"), values.to_dtype(dtype).unwrap().t().unwrap());
    }
    tensors.insert("nothing".into(), Tensor::empty([0, 4]).unwrap());
    tensors.insert("scalar \"é\"".into(), Tensor::new(5i64).unwrap());
    let notes = [("b".to_string(), "2".to_string()), ("a".to_string(), "\"1\"\n".to_string())].into();
    save_with_metadata(&path, &tensors, &notes).unwrap();
    let first = std::fs::read(&path).unwrap();
    save_with_metadata(&path, &tensors, &notes).unwrap();
    assert_eq!(first, std::fs::read(&path).unwrap(), "the same bytes again");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "no temporary file stays");

    let file = load_file(&path).unwrap();
    assert_eq!(file.metadata, notes);
    assert_eq!(file.tensors.len(), tensors.len());
    for (name, expected) in &tensors {
        let got = &file.tensors[name];
        assert_eq!((got.dtype(), got.shape()), (expected.dtype(), expected.shape()), "{name}");
        assert_eq!(got.to_bytes().unwrap(), expected.to_bytes().unwrap(), "{name}");
        assert!(got.is_contiguous());
    }
    // The crate of the format's authors reads the same.
    let theirs = safetensors::SafeTensors::deserialize(&first).unwrap();
    let expected = tensors["turned.i32"].to_bytes().unwrap();
    assert_eq!(theirs.tensor("turned.i32").unwrap().data(), expected);
}

/// A file of this header and this many bytes of data.
fn file_of(header: &str, data: usize) -> Vec<u8> {
    [&(header.len() as u64).to_le_bytes(), header.as_bytes(), &vec![0u8; data]].concat()
}

fn fault(path: &Path, bytes: &[u8]) -> (SafetensorsError, String) {
    std::fs::write(path, bytes).unwrap();
    let opened = open(path)
        .and_then(|file| file.list().iter().try_for_each(|entry| file.tensor(&entry.name).map(drop)));
    assert!(opened.is_err(), "a mapped file is not checked as a loaded one");
    match load(path) {
        Err(Error::Safetensors(error)) => {
            let text = error.to_string();
            assert!(text.contains(&*path.to_string_lossy()), "{text}");
            (error, text)
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn tensors_of_a_mapped_file_are_those_of_a_load() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("all.safetensors");
    let mut tensors = StateDict::new();
    let values = floats(&[0.0, 1.0, 1.0, 0.0, 1.0, 0.0, 0.0, 1.0], &[1, 2, 2, 2]);
    for dtype in DType::REAL.into_iter().chain([DType::C64]) {
        tensors.insert(format!("plain.{dtype}"), values.to_dtype(dtype).unwrap());
        let last = values.to_dtype(dtype).unwrap().to(MemoryFormat::ChannelsLast).unwrap();
        tensors.insert(format!("last.{dtype}"), last);
    }
    tensors.insert("nothing".into(), Tensor::empty([0, 4]).unwrap());
    save(&path, &tensors).unwrap();
    let (file, loaded) = (open(&path).unwrap(), load(&path).unwrap());
    assert_eq!(file.list(), list(&path).unwrap());
    for (name, expected) in &loaded {
        let got = file.tensor(name).unwrap();
        assert_eq!((got.dtype(), got.shape()), (expected.dtype(), expected.shape()), "{name}");
        assert_eq!(
            (got.strides(), got.to_bytes().unwrap()),
            (expected.strides(), expected.to_bytes().unwrap()),
            "{name}"
        );
        #[cfg(target_os = "linux")]
        {
            let is_view = name.starts_with("plain") && expected.dtype().is_inexact() || name == "nothing";
            assert_eq!(got.storage().unwrap().is_mapped(), is_view, "{name}");
        }
    }
    // Views outlive the file, its name and its entry in the folder; writes to one are seen by another one and not by the file.
    let mut weight = file.tensor("plain.f32").unwrap();
    weight.i((0, 0, 0, 0)).unwrap().fill_(9.0).unwrap();
    let same = file.tensor("plain.f32").unwrap();
    drop(file);
    std::fs::remove_file(&path).unwrap();
    let expected: Vec<f32> = [&[9.0][..], &values.to_vec::<f32>().unwrap()[1..]].concat();
    assert_eq!(weight.to_vec::<f32>().unwrap(), expected);
    #[cfg(target_os = "linux")]
    {
        assert_eq!(same.to_vec::<f32>().unwrap(), expected);
        assert!(weight.as_slice::<f32>().unwrap_err().to_string().contains("other processes"));
    }
    assert_eq!(weight.mul(2.0).unwrap().to_vec::<f32>().unwrap()[0], 18.0);
}

#[test]
fn entries_of_a_mapped_file_without_alignment_are_copied() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("odd.safetensors");
    // `a` and `c` are 5 bytes apart, so one of them is not aligned.
    let header = r#"{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"I8","shape":[1],"data_offsets":[4,5]},"c":{"dtype":"F32","shape":[1],"data_offsets":[5,9]},"d":{"dtype":"F8_E4M3","shape":[1],"data_offsets":[9,10]}}"#;
    let data = [&1.5f32.to_le_bytes()[..], &[7], &2.5f32.to_le_bytes(), &[0]].concat();
    std::fs::write(&path, [&file_of(header, 0)[..], &data].concat()).unwrap();
    let file = open(&path).unwrap();
    let value =
        |name: &str| file.tensor(name).unwrap().to_dtype(DType::F32).unwrap().to_vec::<f32>().unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..100 {
                    assert_eq!((value("a"), value("b"), value("c")), (vec![1.5], vec![7.0], vec![2.5]));
                }
            });
        }
    });
    let message = |name: &str| file.tensor(name).unwrap_err().to_string();
    assert!(message("d").contains("F8_E4M3"), "{}", message("d"));
    assert!(message("e").contains("`a`, `b`, `c`, `d`"), "{}", message("e"));
    assert!(open(folder.path()).is_err() && open(folder.path().join("absent")).is_err());
}

#[test]
fn damaged_files_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("damaged.safetensors");
    let entry = |name: &str, dtype: &str, shape: &str, from: usize, to: usize| {
        format!(r#""{name}":{{"dtype":"{dtype}","shape":{shape},"data_offsets":[{from},{to}]}}"#)
    };
    let one = |dtype: &str, shape: &str, from, to| format!("{{{}}}", entry("w", dtype, shape, from, to));
    let two = |a: (usize, usize), b: (usize, usize)| {
        format!("{{{},{}}}", entry("a", "F32", "[2]", a.0, a.1), entry("b", "F32", "[2]", b.0, b.1))
    };
    for (bytes, part) in [
        (vec![], "at least 8 bytes for the header's length, got 0"),
        (vec![1, 2, 3], "got 3"),
        (vec![0xff; 100], "a header of at most 92 bytes, got a header length of 18446744073709551615"),
        (file_of("{}", 0)[..9].to_vec(), "a header of at most 1 bytes, got a header length of 2"),
        (file_of("", 0), "JSON"),
        (file_of("not json", 0), "line 1 column"),
        (file_of("[1]", 0), "got a list"),
        (file_of("{\"w\":1}", 0), "`entry` to be an object, got 1"),
        (file_of("{\"__metadata__\":{\"a\":1}}", 0), "no object of texts"),
        (file_of(&one("F32", "[2]", 0, 8), 7), "expected 8 bytes of data after the header, got 7"),
        (file_of(&one("F32", "[2]", 0, 8), 9), "expected 8 bytes of data after the header, got 9"),
        (file_of(&one("F32", "[3]", 0, 8), 8), "expected 12 bytes for f32 of shape [3], got 8"),
        (file_of(&one("F99", "[2]", 0, 8), 8), "F32, F64, U16"),
        (file_of(&one("F8_E4M3", "[8]", 0, 8), 8), "got \"F8_E4M3\""),
        (file_of(&one("F32", "[-2]", 0, 8), 8), "`shape` to be a list of integers of 0 or more, got [-2]"),
        (file_of(&one("F32", "2", 0, 8), 8), "`shape`"),
        (file_of(&one("F32", "[2]", 8, 0), 8), "`data_offsets` to be two integers"),
        (file_of(&one("F32", "[4294967296,4294967296,4]", 0, 8), 8), "more than 2^64"),
        (file_of(&two((0, 8), (4, 12)), 12), "tensor `b`: expected its data to begin at byte 8"),
        (file_of(&two((0, 8), (12, 20)), 20), "got byte 12"),
        ([file_of(&one("BOOL", "[2]", 0, 2), 0), vec![1, 7]].concat(), "got 7 at element 1"),
    ] {
        let (_, text) = fault(&path, &bytes);
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(matches!(
        fault(&path, &file_of(&one("F99", "[2]", 0, 8), 8)).0,
        SafetensorsError::UnknownDtype { .. }
    ));
    assert!(load(folder.path().join("absent")).unwrap_err().to_string().contains("check the path"));
}

#[test]
fn tensors_beside_those_of_dtypes_that_are_not_known() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mixed.safetensors");
    let entry = |name: &str, dtype: &str, shape: &str, from: usize, to: usize| {
        format!(r#""{name}":{{"dtype":"{dtype}","shape":{shape},"data_offsets":[{from},{to}]}}"#)
    };
    let header = [
        entry("first", "F32", "[2]", 0, 8),
        entry("packed", "F4", "[4]", 8, 10),
        entry("scaled", "F8_E4M3", "[2,3]", 10, 16),
        entry("new", "F99", "[1]", 16, 21),
        entry("last", "I16", "[2]", 21, 25),
    ];
    let mut bytes = file_of(&format!("{{{}}}", header.join(",")), 25);
    let end = bytes.len();
    bytes[end - 4..].copy_from_slice(&[1, 0, 2, 0]);
    std::fs::write(&path, &bytes).unwrap();
    let listed = list(&path).unwrap();
    let facts: Vec<_> = listed.iter().map(|l| (l.name.as_str(), l.dtype.as_str(), l.loads)).collect();
    assert_eq!(
        facts,
        [
            ("first", "F32", Some(DType::F32)),
            ("last", "I16", Some(DType::I16)),
            ("new", "F99", None),
            ("packed", "F4", None),
            ("scaled", "F8_E4M3", None),
        ]
    );
    assert_eq!(listed[4].shape, [2, 3]);
    let made = load_only(&path, &["last", "first"]).unwrap();
    assert_eq!((made.len(), made["last"].to_vec::<i16>().unwrap()), (2, vec![1, 2]));
    assert_eq!(made["first"].shape(), [2]);
    let refused = |names: &[&str]| load_only(&path, names).unwrap_err().to_string();
    assert!(refused(&["first", "scaled"]).contains("tensor `scaled`"));
    assert!(
        refused(&["absent"]).contains("a tensor `absent`, got `first`, `last`, `new`"),
        "{}",
        refused(&["absent"])
    );
    let text = load(&path).unwrap_err().to_string();
    assert!(text.contains("load_only"), "{text}");
    // A wrong size is found in these dtypes too.
    let (_, text) = fault(&path, &file_of(&format!("{{{}}}", entry("w", "F8_E4M3", "[3]", 0, 2)), 2));
    assert!(text.contains("expected 3 bytes for F8_E4M3"), "{text}");
}

#[test]
fn other_formats_are_named_by_their_first_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("other.safetensors");
    for (start, part) in [
        (&b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"[..], "git lfs pull"),
        (b"<!DOCTYPE html>\n<html lang=\"en\">", "an HTML or XML page"),
        (b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.", "a pickle"),
        (b"PK\x03\x04\x14\0\0\0\0\0", "torch.save"),
        (b"\x93NUMPY\x01\0v\0{'descr'", "npy::load"),
        (b"<html", "an HTML or XML page"),
    ] {
        let (error, text) = fault(&path, start);
        assert!(text.contains(part) && matches!(error, SafetensorsError::Foreign { .. }), "{text}");
        assert!(list(&path).unwrap_err().to_string().contains(part));
    }
}

#[test]
fn a_name_that_comes_twice_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("twice.safetensors");
    let entry =
        |from: usize| format!(r#""w":{{"dtype":"F32","shape":[2],"data_offsets":[{from},{}]}}"#, from + 8);
    for (header, data, name) in [
        (format!("{{{},{}}}", entry(0), entry(8)), 16, "`w`"),
        (format!("{{{},{}}}", entry(0), entry(0)), 8, "`w`"),
        ("{\"__metadata__\":{},\"__metadata__\":{}}".to_string(), 0, "`__metadata__`"),
    ] {
        let (error, text) = fault(&path, &file_of(&header, data));
        assert!(matches!(error, SafetensorsError::DuplicateName { .. }), "{error:?}");
        assert!(text.contains(name) && text.contains("twice"), "{text}");
    }
}

#[test]
fn channels_last_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("images.safetensors");
    let plain = floats(&(0..240u8).map(f32::from).collect::<Vec<_>>(), &[2, 3, 5, 8]);
    let last = plain.to(MemoryFormat::ChannelsLast).unwrap();
    let volume = plain.reshape([2, 3, 2, 5, 4]).unwrap();
    let tensors = dict([
        ("plain", plain.clone()),
        ("last", last.clone()),
        ("bool", last.gt(7.0).unwrap()),
        ("volume", volume.to(MemoryFormat::ChannelsLast).unwrap()),
        ("row", floats(&[1.0, 2.0], &[2])),
    ]);
    save(&path, &tensors).unwrap();
    let first = std::fs::read(&path).unwrap();
    let file = load_file(&path).unwrap();
    assert!(file.metadata.is_empty(), "{:?}", file.metadata);
    for (name, expected) in &tensors {
        let got = &file.tensors[name];
        assert_eq!((got.shape(), got.strides()), (expected.shape(), expected.strides()), "{name}");
        assert_eq!(got.to_bytes().unwrap(), expected.to_bytes().unwrap(), "{name}");
    }
    save(&path, &file.tensors).unwrap();
    assert_eq!(first, std::fs::read(&path).unwrap(), "the same bytes again");
    // Others read the values in row-major order.
    let theirs = safetensors::SafeTensors::deserialize(&first).unwrap();
    assert_eq!(theirs.tensor("last").unwrap().data(), plain.to_bytes().unwrap());
    // More than one chunk of the file, and into a tensor that is in channels_last already.
    let many = floats(&vec![0.5; 3 * 400 * 400], &[1, 3, 400, 400]);
    many.narrow(3, 7, 1).unwrap().fill_(2.0).unwrap();
    save(&path, &dict([("w", many.to(MemoryFormat::ChannelsLast).unwrap())])).unwrap();
    let loaded = load(&path).unwrap().remove("w").unwrap();
    assert_eq!(loaded.to_bytes().unwrap(), many.to_bytes().unwrap());
    let target = Tensor::zeros([1, 3, 400, 400]).unwrap();
    let target = target.to(MemoryFormat::ChannelsLast).unwrap();
    target.copy_(&loaded).unwrap();
    assert_eq!(target.to_bytes().unwrap(), many.to_bytes().unwrap());
}

#[test]
fn memory_formats_that_do_not_fit_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("formats.safetensors");
    let header = |formats: &str| {
        let formats = serde_json::to_string(formats).unwrap();
        format!(
            r#"{{"__metadata__":{{"keyway.formats":{formats}}},"w":{{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}}}"#
        )
    };
    for (formats, part) in [
        ("[]", "no object of texts"),
        ("{\"v\":\"channels_last\"}", "names the tensor `v`, which is not there"),
        ("{\"w\":\"channels_last\"}", "`w` of shape [2]"),
        ("{\"w\":\"blocked\"}", "`blocked`"),
    ] {
        let (_, text) = fault(&path, &file_of(&header(formats), 8));
        assert!(text.contains(part), "{part}: {text}");
    }
    let reserved = [("keyway.formats".to_string(), "{}".to_string())].into();
    let error = save_with_metadata(&path, &StateDict::new(), &reserved).unwrap_err().to_string();
    assert!(error.contains("keyway.formats"), "{error}");
}

#[test]
fn every_cut_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cut.safetensors");
    save(&path, &dict([("w", floats(&[1.0; 6], &[2, 3])), ("b", floats(&[1.0], &[1]))])).unwrap();
    let whole = std::fs::read(&path).unwrap();
    for cut in 0..whole.len() {
        fault(&path, &whole[..cut]);
    }
}

#[test]
fn a_failed_save_keeps_the_old_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("weights.safetensors");
    save(&path, &dict([("w", floats(&[1.0], &[1]))])).unwrap();
    let old = std::fs::read(&path).unwrap();

    let error = save(&path, &dict([("__metadata__", floats(&[1.0], &[1]))])).unwrap_err();
    assert!(matches!(error, Error::Safetensors(SafetensorsError::ReservedName { .. })));
    assert_eq!(std::fs::read(&path).unwrap(), old);

    let text = save(folder.path().join("no/such.safetensors"), &StateDict::new()).unwrap_err().to_string();
    assert!(text.contains("create the folder first"), "{text}");
    let text = save(folder.path(), &StateDict::new()).unwrap_err().to_string();
    assert!(text.contains("pass the path of a file"), "{text}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

/// Set in a child process whose files may not grow beyond some size.
const CHILD: &str = "KEYWAY_TEST_SAVE_TO";

#[test]
#[cfg(unix)]
fn a_full_disk_keeps_the_old_file() {
    if let Some(path) = std::env::var_os(CHILD) {
        let large = floats(&vec![2.0; 100_000], &[100_000]);
        let error = save(Path::new(&path), &dict([("w", large)])).unwrap_err();
        assert!(matches!(error, Error::Safetensors(SafetensorsError::Write { .. })));
        println!("{error}");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("weights.safetensors");
    save(&path, &dict([("w", floats(&[1.0], &[1]))])).unwrap();
    let old = std::fs::read(&path).unwrap();
    // A limit on the size of files gives the write error that a full disk gives.
    let output = std::process::Command::new("sh")
        .args(["-c", "ulimit -f 64; exec \"$0\" --exact a_full_disk_keeps_the_old_file --nocapture"])
        .arg(std::env::current_exe().unwrap())
        .env(CHILD, &path)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text} {}", String::from_utf8_lossy(&output.stderr));
    for part in ["weights.safetensors", "the file is as it was before", "free space"] {
        assert!(text.contains(part), "{text}");
    }
    assert_eq!(std::fs::read(&path).unwrap(), old);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "no temporary file stays");
}

#[test]
#[cfg(unix)]
fn links_and_permissions_stay() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let (real, link) = (folder.path().join("real"), folder.path().join("link"));
    save(&real, &StateDict::new()).unwrap();
    std::fs::set_permissions(&real, std::fs::Permissions::from_mode(0o640)).unwrap();
    std::os::unix::fs::symlink(&real, &link).unwrap();
    save(&link, &dict([("w", floats(&[1.0], &[1]))])).unwrap();
    assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(load(&real).unwrap().len(), 1);
    assert_eq!(std::fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o640);
}

/// Set in a child process that ends in the middle of a save.
const KILLED: &str = "KEYWAY_TEST_KILLED_SAVE";

#[test]
#[cfg(unix)]
fn what_a_killed_save_left_is_removed_by_the_next() {
    if let Some(path) = std::env::var_os(KILLED) {
        let _ = keyway::io::replace(Path::new(&path), |file| {
            file.write_all(&[7; 100_000])?;
            std::process::abort();
        });
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("weights.safetensors");
    let left = || {
        let names = std::fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().file_name());
        names.filter(|name| name.to_string_lossy().starts_with(".keyway-")).count()
    };
    let status = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "what_a_killed_save_left_is_removed_by_the_next"])
        .env(KILLED, &path)
        .output()
        .unwrap()
        .status;
    assert!(!status.success());
    assert_eq!(left(), 1);
    // One that is being written, a folder and a link of such a name stay.
    keyway::io::replace(&path, |_| {
        assert_eq!(left(), 1);
        std::fs::create_dir(folder.path().join(".keyway-folder.tmp"))?;
        std::os::unix::fs::symlink("/dev/null", folder.path().join(".keyway-link.tmp"))?;
        save(folder.path().join("other.safetensors"), &StateDict::new()).unwrap();
        assert_eq!(left(), 3);
        Ok(())
    })
    .unwrap();
    assert_eq!(left(), 2);
}
