//! NumPy's files: those that NumPy wrote, those that it must be able to read, and damaged ones.

mod numpy_files;

use keyway::io::{npy, npz};
use keyway::nn::StateDict;
use keyway::{DType, Tensor};
use numpy_files::*;
use std::path::PathBuf;

/// A file of these bytes, in a folder that goes with it.
fn file(name: &str, bytes: &[u8]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    (folder, path)
}

fn load(bytes: &[u8]) -> keyway::Result<Tensor> {
    npy::load(file("a.npy", bytes).1)
}

fn load_archive(bytes: &[u8]) -> keyway::Result<StateDict> {
    let (_folder, path) = file("a.npz", bytes);
    npz::load(path)
}

fn values(t: &Tensor) -> Vec<f64> {
    t.to_dtype(DType::F64).unwrap().to_vec::<f64>().unwrap()
}

#[test]
fn every_dtype_and_byte_order_that_numpy_writes() {
    let reals = [1.5, -2.0, 0.25];
    let table: [(&[u8], DType, [f64; 3]); 15] = [
        (F64, DType::F64, reals),
        (F64_BIG, DType::F64, reals),
        (F32, DType::F32, reals),
        (F32_BIG, DType::F32, reals),
        (F16, DType::F16, reals),
        (F16_BIG, DType::F16, reals),
        (I64, DType::I64, [1.0, 100.0, i64::MAX as f64]),
        (I32_BIG, DType::I32, [1.0, 100.0, f64::from(i32::MAX)]),
        (I16, DType::I16, [1.0, 100.0, f64::from(i16::MAX)]),
        (I8, DType::I8, [1.0, 100.0, f64::from(i8::MAX)]),
        (U8, DType::U8, [1.0, 100.0, f64::from(u8::MAX)]),
        (U16, DType::U16, [1.0, 100.0, f64::from(u16::MAX)]),
        (U32_BIG, DType::U32, [1.0, 100.0, f64::from(u32::MAX)]),
        (U64, DType::U64, [1.0, 100.0, u64::MAX as f64]),
        (BOOL, DType::BOOL, [1.0, 0.0, 1.0]),
    ];
    for (bytes, dtype, wanted) in table {
        let made = load(bytes).unwrap();
        assert_eq!((made.dtype(), made.shape()), (dtype, &[3][..]));
        assert_eq!(values(&made), wanted, "{dtype}");
    }
    assert_eq!(load(I64).unwrap().to_vec::<i64>().unwrap()[2], i64::MAX);
    let made = load(COMPLEX_BIG).unwrap();
    assert_eq!((made.dtype(), made.shape()), (DType::C64, &[2][..]));
    let parts: Vec<f32> =
        made.to_bytes().unwrap().chunks(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect();
    assert_eq!(parts, [1.0, 2.0, -3.0, -0.5]);
}

#[test]
fn orders_shapes_and_versions() {
    let made = load(FORTRAN).unwrap();
    assert_eq!((made.shape(), values(&made)), (&[2, 3][..], vec![0.0, 1.0, 2.0, 3.0, 4.0, 5.0]));
    let made = load(FORTRAN_BIG).unwrap();
    let ascending: Vec<f64> = (0..12).map(f64::from).collect();
    assert_eq!((made.shape(), values(&made)), (&[2, 3, 2][..], ascending));
    let made = load(POINT).unwrap();
    assert_eq!((made.rank(), made.item::<f64>().unwrap()), (0, 2.5));
    assert_eq!(load(EMPTY).unwrap().shape(), [0, 3]);
    for bytes in [VERSION_2, VERSION_3] {
        assert_eq!(values(&load(bytes).unwrap()), [0.0, 1.0, 2.0]);
    }
}

/// The bytes are those that NumPy wrote, so it reads what is saved here.
#[test]
fn a_save_gives_numpys_bytes() {
    for bytes in [F64, F32, F16, I64, I16, I8, U8, U16, U64, BOOL, POINT, EMPTY] {
        let tensor = load(bytes).unwrap();
        let (_folder, path) = file("b.npy", b"old");
        npy::save(&path, &tensor).unwrap();
        assert!(std::fs::read(&path).unwrap() == bytes, "{}", tensor.dtype());
    }
    // Strides and byte orders are those of the file format.
    let (_folder, path) = file("b.npy", b"old");
    npy::save(&path, &load(FORTRAN).unwrap()).unwrap();
    assert_eq!(values(&npy::load(&path).unwrap()), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
    npy::save(&path, &load(F64_BIG).unwrap()).unwrap();
    assert!(std::fs::read(&path).unwrap() == F64);
}

#[test]
fn archives() {
    let made = load_archive(STORED).unwrap();
    assert_eq!((made.len(), made["weight"].shape()), (2, &[2, 2][..]));
    assert_eq!((values(&made["weight"]), values(&made["bias"])), (vec![0.0, 1.0, 2.0, 3.0], vec![7.0]));
    let made = load_archive(DEFLATED).unwrap();
    assert_eq!((values(&made["weight"]), values(&made["bias"])), (vec![2.0; 1600], vec![7.0]));
    let (_folder, path) = file("b.npz", b"old");
    for save in [npz::save, npz::save_compressed] {
        save(&path, &made).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        let again = npz::load(&path).unwrap();
        assert_eq!((again.len(), values(&again["weight"])), (2, vec![2.0; 1600]));
        save(&path, &made).unwrap();
        assert!(std::fs::read(&path).unwrap() == bytes);
    }
    npz::save(&path, &StateDict::new()).unwrap();
    assert!(npz::load(&path).unwrap().is_empty());
}

fn refuses<T: std::fmt::Debug>(made: keyway::Result<T>, message: &str) {
    let text = made.unwrap_err().to_string();
    assert!(text.contains(message), "`{text}` lacks `{message}`");
}

#[test]
fn what_cannot_be_read_or_written_is_said() {
    refuses(load(TEXT), "`<U2`");
    refuses(load(OBJECT), "`|O`");
    refuses(load(STRUCTURE), "a structured one of the fields `");
    refuses(load(STRUCTURE), "take one field");
    refuses(load(b"PK\x03\x04 and more"), "got a zip archive");
    refuses(load(b"neither this nor that"), "NUMPY");
    refuses(load(b"\x80\x04\x95\x0b\0\0\0\0\0\0\0"), "got a pickle");
    refuses(load(b"version https://git-lfs.github.com/spec/v1\n"), "git lfs pull");
    refuses(load_archive(b"<!DOCTYPE html><html>"), "an HTML or XML page");
    refuses(load_archive(F64), "load it with `io::npy::load`");
    refuses(load(b"\x93NUMPY\x01\0\x02\0{}"), "damaged");
    refuses(load(b""), "of 0 bytes");
    refuses(load(&[F64, b"x"].concat()), "expected 24 bytes");
    refuses(load(&F64[..F64.len() - 1]), "got 23");
    refuses(npy::load("/nowhere/a.npy"), "check the path");
    let mut wrong = BOOL.to_vec();
    wrong[129] = 2;
    refuses(load(&wrong), "got 2");
    let narrow = Tensor::new([1.0f32]).unwrap().to_dtype(DType::BF16).unwrap();
    let (_folder, path) = file("b.npy", b"old");
    refuses(npy::save(&path, &narrow), "NumPy has no bf16");
    refuses(npz::save(&path, &StateDict::from([("w".to_string(), narrow)])), "array `w`");
    assert_eq!(std::fs::read(&path).unwrap(), b"old");
    refuses(npy::save("/nowhere/a.npy", &Tensor::new([1.0f32]).unwrap()), "as it was before");
    refuses(load_archive(b"no archive"), "of another format");
    // Sizes that no file has are refused before memory is taken.
    let huge = |shape: &str| {
        let text = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}\n");
        [b"\x93NUMPY\x01\0", &(text.len() as u16).to_le_bytes()[..], text.as_bytes()].concat()
    };
    refuses(load(&huge("(1000000000000,)")), "expected 8000000000000 bytes");
    refuses(load(&huge("(4611686018427387904, 4)")), "more than 2^64");
    refuses(load(b"\x93NUMPY\x02\0\xff\xff\xff\xff{"), "4294967295");
    // NumPy has such arrays of no elements; here their sizes alone overflow, or not, but nothing panics.
    let _ = load(&huge("(0, 4611686018427387904, 4)"));
}

/// An archive of files without compression, as `np.savez` writes.
fn archive_of(files: &[(&str, &[u8])]) -> Vec<u8> {
    let crc = |bytes: &[u8]| {
        let step = |crc: u32, &byte: &u8| {
            (0..8)
                .fold(crc ^ u32::from(byte), |crc, _| (crc >> 1) ^ if crc & 1 == 1 { 0xedb8_8320 } else { 0 })
        };
        !bytes.iter().fold(!0u32, step)
    };
    let (mut all, mut index) = (Vec::new(), Vec::new());
    for (name, bytes) in files {
        let [length, name_length] = [bytes.len() as u32, name.len() as u32];
        let fields = [&[20u8, 0, 0, 0, 0, 0, 0, 0, 0x21, 0][..], &crc(bytes).to_le_bytes()].concat();
        let sizes = [length.to_le_bytes(), length.to_le_bytes(), name_length.to_le_bytes()].concat();
        index.extend([b"PK\x01\x02\x14\0".as_slice(), &fields, &sizes, &[0; 10]].concat());
        index.extend([&(all.len() as u32).to_le_bytes(), name.as_bytes()].concat());
        all.extend([b"PK\x03\x04".as_slice(), &fields, &sizes, name.as_bytes(), bytes].concat());
    }
    let (begin, count) = (all.len() as u32, files.len() as u16);
    all.extend(&index);
    let counts = [count.to_le_bytes(), count.to_le_bytes()].concat();
    let places = [(index.len() as u32).to_le_bytes(), begin.to_le_bytes()].concat();
    all.extend([b"PK\x05\x06\0\0\0\0".as_slice(), &counts, &places, &[0, 0]].concat());
    all
}

#[test]
fn arrays_beside_those_that_no_tensor_can_hold() {
    let bytes = archive_of(&[
        ("names.npy", TEXT),
        ("x.npy", F64),
        ("pairs.npy", STRUCTURE),
        ("y.npy", I16),
        ("read.me", b"text"),
    ]);
    let (_folder, path) = file("a.npz", &bytes);
    let listed = npz::list(&path).unwrap();
    let facts: Vec<_> = listed.iter().map(|l| (l.name.as_str(), l.dtype.as_str(), l.loads)).collect();
    assert_eq!(facts[0], ("names", "<U2", None));
    assert_eq!((facts[1].0, facts[1].2), ("pairs", None));
    assert_eq!(facts[2..], [("x", "<f8", Some(DType::F64)), ("y", "<i2", Some(DType::I16))]);
    assert_eq!(listed[2].shape, [3]);
    let made = npz::load_only(&path, &["y", "x"]).unwrap();
    assert_eq!((made.len(), values(&made["x"])), (2, vec![1.5, -2.0, 0.25]));
    refuses(npz::load_only(&path, &["x", "names"]), "array `names`");
    refuses(npz::load_only(&path, &["z"]), "an array `z`, got `names`, `x`, `pairs`, `y`");
    refuses(npz::load(&path), "npz::load_only");
    refuses(load_archive(&archive_of(&[("model/data.pkl", b"\x80\x02"), ("x.npy", F64)])), "torch.save");
}

/// Each byte changed and each length: an error or other values, but no panic.
#[test]
fn damaged_files_do_no_harm() {
    for bytes in [FORTRAN_BIG, VERSION_2] {
        for at in 0..bytes.len() {
            for change in [1, 0x80, 0xff] {
                let mut damaged = bytes.to_vec();
                damaged[at] ^= change;
                let _ = load(&damaged);
            }
            assert!(load(&bytes[..at]).is_err());
        }
    }
    for bytes in [STORED, DEFLATED] {
        let whole: Vec<Vec<f64>> = load_archive(bytes).unwrap().values().map(values).collect();
        for at in 0..bytes.len() {
            for change in [1, 0x80, 0xff] {
                let mut damaged = bytes.to_vec();
                damaged[at] ^= change;
                // Names and dates have no checksum, but the arrays have one each.
                let made = load_archive(&damaged)
                    .map_or_else(|_| Vec::new(), |made| made.values().map(values).collect());
                assert!(made.iter().all(|array| whole.contains(array)), "byte {at} changed by {change}");
            }
            assert!(load_archive(&bytes[..at]).is_err());
        }
    }
    // An archive that promises more than deflated bytes can hold.
    let sizes: Vec<usize> = DEFLATED
        .windows(4)
        .enumerate()
        .filter(|(_, w)| *w == 6528u32.to_le_bytes())
        .map(|(at, _)| at)
        .collect();
    assert!(!sizes.is_empty());
    let mut bomb = DEFLATED.to_vec();
    for at in sizes {
        bomb[at..at + 4].copy_from_slice(&0x7fff_ffffu32.to_le_bytes());
    }
    refuses(load_archive(&bomb), "2147483647 bytes");
}
