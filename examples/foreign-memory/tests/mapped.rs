//! Tensors over shared read-only memory.

use bytes::Bytes;
use foreign_memory::{mapped, received};
use std::path::PathBuf;

const NUMBERS: [f32; 6] = [1.5, -2.0, 0.25, 1e-40, f32::MAX, 7.0];

fn raw() -> Vec<u8> {
    NUMBERS.map(f32::to_ne_bytes).concat()
}

/// A file with a header of 8 bytes and the values.
fn file(folder: &tempfile::TempDir) -> PathBuf {
    let path = folder.path().join("weights.bin");
    std::fs::write(&path, [b"weights ".as_slice(), &raw()].concat()).unwrap();
    path
}

#[test]
fn a_mapped_file_is_read_where_it_lies() {
    let folder = tempfile::tempdir().unwrap();
    let mut weights = mapped(&file(&folder), 8, &[2, 3]).unwrap();
    assert_eq!(weights.to_vec::<f32>().unwrap(), NUMBERS);
    let storage = weights.storage().unwrap();
    assert_eq!((storage.allocator(), storage.bytes()), ("weights.bin", 24));
    assert!(storage.is_read_only());
    assert_eq!(weights.data_ptr().addr() % 4096, 8, "a page begins with the header");
    assert_eq!(weights.as_slice::<f32>().unwrap(), NUMBERS);
    assert!(weights.accessor_mut::<f32, 2>().is_err(), "the file is not written to");
    // The memory of one tensor stays mapped after the other is dropped.
    let row = weights.narrow(0, 1, 1).unwrap();
    drop(weights);
    assert_eq!(row.to_vec::<f32>().unwrap(), NUMBERS[3..]);
}

#[test]
fn a_file_that_does_not_fit_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(&folder);
    let text = |header, shape: &[usize]| mapped(&path, header, shape).unwrap_err().to_string();
    assert!(text(8, &[7]).contains("24 bytes"), "{}", text(8, &[7]));
    assert!(text(6, &[1]).contains("aligned"), "{}", text(6, &[1]));
    assert!(text(1000, &[1]).contains("0 bytes"), "{}", text(1000, &[1]));
    assert!(mapped(&folder.path().join("none"), 8, &[1]).is_err());
}

#[test]
fn bytes_are_held_until_the_last_tensor_is_dropped() {
    let bytes = Bytes::from(raw());
    let x = received(bytes.clone(), &[6]).unwrap();
    assert_eq!((x.to_vec::<f32>().unwrap(), x.data_ptr()), (NUMBERS.to_vec(), bytes.as_ptr()));
    let half = received(bytes.slice(12..), &[3]).unwrap();
    assert_eq!(half.to_vec::<f32>().unwrap(), NUMBERS[3..]);
    let error = received(bytes.slice(1..), &[2]).unwrap_err().to_string();
    assert!(error.contains("aligned"), "{error}");
    assert!(!bytes.is_unique());
    drop((x, half));
    assert!(bytes.is_unique(), "the refused slice was given back too");
}
