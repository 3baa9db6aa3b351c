//! Tensors of composite layouts in files: their components, not the dense values, and the layout again after loading.

mod rehearsal_support;

use keyway::io::safetensors::{SafetensorsError, load, load_file, open, save, save_with_metadata};
use keyway::nn::StateDict;
use keyway::{Error, Layout, Tensor};
use rehearsal_support::load as load_plugins;
use std::path::Path;

fn sparse() -> Tensor {
    let dense = vec![1.0f64, 0.0, -2.0, 0.0, 0.0, 0.0, 0.0, 0.5, 3.0, 0.0, 0.0, 4.0];
    let layout = Layout::from_name("test.keyway/csr").expect("the plugin is loaded");
    Tensor::from_vec(dense, [3, 4]).unwrap().to_layout(layout).unwrap()
}

fn refused(result: Result<impl std::fmt::Debug, Error>) -> (SafetensorsError, String) {
    match result {
        Err(Error::Safetensors(error)) => {
            let text = error.to_string();
            (error, text)
        }
        other => panic!("expected a refusal, got {other:?}"),
    }
}

/// The file with one text replaced by another of the same length.
fn changed(path: &Path, from: &str, to: &str) {
    assert_eq!(from.len(), to.len());
    let mut bytes = std::fs::read(path).unwrap();
    let places: Vec<usize> =
        (0..bytes.len() - from.len()).filter(|&i| bytes[i..].starts_with(from.as_bytes())).collect();
    assert!(!places.is_empty(), "{from}");
    places.into_iter().for_each(|at| bytes[at..at + to.len()].copy_from_slice(to.as_bytes()));
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn a_sparse_matrix_is_saved_by_component_and_loaded_in_its_layout() {
    let _one = load_plugins(&["keyway_test_csr"]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sparse.safetensors");
    let bias = Tensor::new([1.0f32, 2.0]).unwrap();
    let notes = [("by".to_string(), "a test".to_string())].into();
    let saved = StateDict::from([("w".to_string(), sparse()), ("b".to_string(), bias)]);
    save_with_metadata(&path, &saved, &notes).unwrap();

    // Other programs find the components.
    let bytes = std::fs::read(&path).unwrap();
    let theirs = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let mut names = theirs.names();
    names.sort();
    assert_eq!(names, ["b", "w.col_indices", "w.crow_indices", "w.values"]);
    assert_eq!(theirs.tensor("w.values").unwrap().shape(), [5], "not the dense matrix");

    let file = load_file(&path).unwrap();
    assert_eq!(file.metadata, notes);
    assert_eq!(file.tensors.keys().collect::<Vec<_>>(), ["b", "w"]);
    let (got, expected) = (&file.tensors["w"], &saved["w"]);
    assert_eq!(
        (got.layout(), got.shape(), got.dtype()),
        (expected.layout(), expected.shape(), expected.dtype())
    );
    assert_eq!(got.as_ref().components().len(), 3);
    assert_eq!(got.to_vec::<f64>().unwrap(), expected.to_vec::<f64>().unwrap());
    let mapped = open(&path).unwrap();
    assert_eq!(mapped.list().iter().map(|entry| &entry.name[..]).collect::<Vec<_>>(), ["b", "w"]);
    let got = mapped.tensor("w").unwrap();
    assert_eq!(
        (got.layout(), got.to_vec::<f64>().unwrap()),
        (expected.layout(), expected.to_vec::<f64>().unwrap())
    );
    save_with_metadata(&path, &file.tensors, &notes).unwrap();
    assert_eq!(bytes, std::fs::read(&path).unwrap(), "the same bytes again");
}

#[test]
fn what_does_not_fit_is_told() {
    let _one = load_plugins(&["keyway_test_csr"]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sparse.safetensors");
    let write = || save(&path, &StateDict::from([("w".to_string(), sparse())])).unwrap();

    write();
    changed(&path, "test.keyway/csr", "test.keyway/cst");
    let (error, text) = refused(load(&path));
    assert!(matches!(error, SafetensorsError::MissingLayout { .. }), "{text}");
    assert!(
        text.contains("tensor `w`") && text.contains("test.keyway/cst") && text.contains("install"),
        "{text}"
    );

    write();
    changed(&path, "\"w.values\"", "\"w.valuez\"");
    assert!(refused(load(&path)).1.contains("`w.values` is not there"));

    write();
    changed(&path, "\\\"attrs\\\"", "\\\"attrz\\\"");
    assert!(refused(load(&path)).1.contains("no object of composite tensors"));

    let both = [("u".to_string(), sparse()), ("w".to_string(), sparse())];
    save(&path, &StateDict::from(both)).unwrap();
    changed(&path, "\\\"u\\\":", "\\\"w\\\":");
    let (error, text) = refused(load(&path));
    assert!(matches!(error, SafetensorsError::DuplicateName { .. }) && text.contains("`w`"), "{text}");

    // Components that do not fit each other are the layout's to refuse.
    write();
    changed(&path, "\\\"shape\\\":[3,4]", "\\\"shape\\\":[9,4]");
    let text = load(&path).unwrap_err().to_string();
    assert!(text.contains("crow_indices"), "{text}");

    let twice = [("w".to_string(), sparse()), ("w.values".to_string(), Tensor::new(1.0f32).unwrap())];
    let (error, text) = refused(save(&path, &StateDict::from(twice)));
    assert!(matches!(error, SafetensorsError::ComponentName { .. }) && text.contains("`w.values`"), "{text}");
    let reserved = [("keyway.layouts".to_string(), String::new())].into();
    let (error, _) = refused(save_with_metadata(&path, &StateDict::new(), &reserved));
    assert!(matches!(error, SafetensorsError::ReservedMetadata { key: "keyway.layouts", .. }));
}
