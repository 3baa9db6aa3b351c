//! Devices and layouts that this project's backends serve, so that an error for one of them names the backend to install.

/// A device or a layout, the backend's name, and its library.
const KNOWN: &[(&str, &str, &str)] = &[
    ("cpu", "keyway-cpu", "keyway_backend_cpu"),
    ("cuda", "keyway-cuda", "keyway_backend_cuda"),
    ("sparse_coo", "keyway-sparse", "keyway_backend_sparse"),
    ("sparse_csr", "keyway-sparse", "keyway_backend_sparse"),
    ("fft", "keyway-fft", "keyway_backend_fft"),
    ("linalg", "keyway-linalg", "keyway_backend_linalg"),
    ("channels_last", "keyway-channels-last", "keyway_backend_channels_last"),
];

/// The backend that would serve a device or layout, as a clause; also found by the backend's name.
pub fn would_serve(name: &str) -> Option<String> {
    let name = name.split_once(':').map_or(name, |(kind, _)| kind);
    let (what, backend, stem) = KNOWN.iter().find(|(what, backend, _)| *what == name || *backend == name)?;
    // The file name of a library for a CPU level has the level's name after the stem.
    let (before, after) = (std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    Some(format!("the backend `{backend}` would serve `{what}`; its library is {before}{stem}*{after}"))
}

/// The file name of the library that would serve a device or layout.
pub fn library(name: &str) -> String {
    let known = KNOWN.iter().find(|(what, backend, _)| *what == name || *backend == name);
    let stem = known.map_or_else(|| format!("keyway_backend_{name}"), |(_, _, stem)| (*stem).to_string());
    format!("{}{stem}{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_names_lead_to_their_backend_and_others_to_none() {
        for (name, backend) in
            [("cuda:1", "keyway-cuda"), ("sparse_coo", "keyway-sparse"), ("keyway-cpu", "keyway-cpu")]
        {
            assert!(would_serve(name).unwrap().contains(backend), "{name}");
        }
        assert_eq!(would_serve("tpu"), None);
        assert!(library("tpu").contains("keyway_backend_tpu"));
        assert!(library("channels_last").contains("keyway_backend_channels_last"));
    }
}
