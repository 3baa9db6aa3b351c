//! The services of the host as a plugin calls them, with sound and unsound answers; and layouts whose functions are missing.

mod table_support;

use keyway_dispatcher::host::{table, take_message};
use keyway_dispatcher::memory::Shared;
use keyway_dispatcher::op::LayoutOptions;
use keyway_dispatcher::settings::{MatmulPrecision, set_float32_matmul_precision};
use keyway_dispatcher::tensor::{Attrs, TensorImpl, TensorRef};
use keyway_dispatcher::{DType, Device, Layout, layouts};
use keyway_sdk::abi::codes::{matmul_precision, memory_format, setting, status, tag};
use keyway_sdk::abi::host::TensorHandle;
use keyway_sdk::abi::tensor::{RawArg, RawTensor};
use table_support::*;

/// A handle that the test owns.
struct Owned(TensorHandle);

impl Owned {
    fn raw(&self) -> *const RawTensor {
        // SAFETY: the handle is owned.
        unsafe { (table().tensor_raw)(self.0) }
    }

    fn strides(&self) -> Vec<i64> {
        // SAFETY: a strided tensor has as many strides as dimensions while its handle is held.
        unsafe {
            let raw = &*self.raw();
            std::slice::from_raw_parts(raw.strides, raw.ndim as usize).to_vec()
        }
    }

    fn data(&self) -> usize {
        // SAFETY: the raw form lives while the handle is held.
        unsafe { (*self.raw()).data.addr() }
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        // SAFETY: the handle is owned, and released once.
        unsafe { (table().tensor_release)(self.0) };
    }
}

/// Asks for a tensor of f32 in host memory; the error's text if there is none.
fn new(sizes: &[i64], format: u32, strides: Option<&[i64]>) -> Result<Owned, String> {
    let (mut out, dtype) = (std::ptr::null(), DType::F32.code());
    let strides = strides.map_or(std::ptr::null(), <[i64]>::as_ptr);
    let (ndim, sizes) = (sizes.len() as u32, sizes.as_ptr());
    // SAFETY: the lists have `ndim` entries, except the null pointer under test.
    let code = unsafe { (table().tensor_new)(dtype, 0, 0, ndim, sizes, format, strides, &mut out) };
    if code == status::OK { Ok(Owned(out)) } else { Err(take_message()) }
}

#[test]
fn a_new_tensor_has_the_requested_strides() {
    use memory_format::{CHANNELS_LAST, CONTIGUOUS, STRIDES};
    let image = [2, 3, 4, 5];
    assert_eq!(new(&image, CONTIGUOUS, None).unwrap().strides(), [60, 20, 5, 1]);
    assert_eq!(new(&image, CHANNELS_LAST, None).unwrap().strides(), [60, 1, 15, 3]);
    assert_eq!(new(&[3, 4], STRIDES, Some(&[1, 3])).unwrap().strides(), [1, 3]);
    assert_eq!(new(&[3, 4], STRIDES, Some(&[8, 2])).unwrap().strides(), [8, 2]);
    assert!(new(&[], STRIDES, None).unwrap().strides().is_empty());
    let huge = [1 << 40, 1 << 40];
    for (sizes, format, strides, part) in [
        (&[3, 4][..], CHANNELS_LAST, None, "3 to 5 of them for channels_last"),
        (&[3, 4], STRIDES, None, "one for each size"),
        (&[3, 4], STRIDES, Some(&[4, -1][..]), "`strides` must be numbers of 0 or more"),
        (&[-3], CONTIGUOUS, None, "`sizes` must be numbers of 0 or more"),
        (&[3, 4], STRIDES, Some(&[0, 1]), "an offset of its own"),
        (&[3, 4], STRIDES, Some(&[2, 1]), "an offset of its own"),
        (&[3, 4], STRIDES, Some(&[i64::MAX / 2, 1]), "more elements or bytes than an address can count"),
        (&huge, CONTIGUOUS, None, "more elements or bytes than an address can count"),
        (&[3], 77, None, "the number of a memory format"),
    ] {
        match new(sizes, format, strides) {
            Err(text) => assert!(text.contains(part), "{sizes:?} {strides:?}: {text}"),
            Ok(made) => panic!("{sizes:?} {strides:?}: made with strides {:?}", made.strides()),
        }
    }
}

fn get(tensor: *const RawTensor, key: u64) -> Result<(u32, Option<Owned>), String> {
    let (mut version, mut out) = (77, std::ptr::null());
    // SAFETY: the tensor is null or alive; both addresses are writable.
    match unsafe { (table().cache_get)(tensor, key, &mut version, &mut out) } {
        status::OK => Ok((version, (!out.is_null()).then_some(Owned(out)))),
        _ => Err(take_message()),
    }
}

fn put(tensor: *const RawTensor, key: u64, version: u32, value: TensorHandle) -> Result<(), String> {
    // SAFETY: the tensor and the value are null or live.
    match unsafe { (table().cache_put)(tensor, key, version, value) } {
        status::OK => Ok(()),
        _ => Err(take_message()),
    }
}

#[test]
fn derived_data_is_found_until_the_memory_changes() {
    let (tensor, value) = (new(&[4], 0, None).unwrap(), new(&[2], 0, None).unwrap());
    let (version, found) = get(tensor.raw(), 5).unwrap();
    assert!(version == 0 && found.is_none());
    put(tensor.raw(), 5, version, value.0).unwrap();
    let found = get(tensor.raw(), 5).unwrap().1.unwrap();
    assert_eq!(found.data(), value.data());
    // SAFETY: the handle is that of a living tensor.
    let again = Owned(unsafe { (table().tensor_retain)(tensor.raw()) });
    assert!(get(again.raw(), 5).unwrap().1.is_some(), "the same memory by another handle");
    for (tensor, value, part) in [
        (std::ptr::null(), value.0, "null"),
        (tensor.raw(), std::ptr::null(), "null"),
        (tensor.raw(), again.0, "a tensor with memory of its own"),
    ] {
        let text = put(tensor, 6, 0, value).unwrap_err();
        assert!(text.contains(part), "{text}");
    }
    assert!(get(std::ptr::null(), 5).is_err());
    assert!(get(tensor.raw(), 6).unwrap().1.is_none(), "nothing was kept of what was refused");
}

fn hollow(sizes: &[usize], components: Vec<TensorRef>) -> TensorRef {
    let layout = Layout::from_name("test.keyway/hollow").unwrap();
    TensorImpl::composite(layout, DType::F32, sizes.into(), components, Attrs::default()).unwrap()
}

#[test]
fn a_layout_without_functions_is_an_error_with_the_missing_part() {
    let _one = load(&["keyway_test_faulty"]);
    let layout = Layout::from_name("test.keyway/hollow").unwrap();
    let (dense, t) = (zeros(&[2], DType::F32), hollow(&[2], vec![zeros(&[2], DType::F32)]));
    layouts::validate(&t).unwrap();
    assert!(layouts::accepts(layout, Device::CPU, &[3, 4]).unwrap());
    for (error, part) in [
        (
            layouts::to_strided(&t).unwrap_err(),
            "to_strided: layout `test.keyway/hollow` cannot become strided",
        ),
        (
            layouts::from_strided(&dense, layout, &LayoutOptions::new()).unwrap_err(),
            "cannot be made from strided",
        ),
        (layouts::project(&dense, &t).unwrap_err(), "cannot project a gradient"),
        (
            layouts::validate(&hollow(&[2], vec![dense.clone(); 2])).unwrap_err(),
            "1 components and 0 attributes",
        ),
        (
            layouts::from_components(
                "components",
                layout,
                DType::F32,
                &[2],
                &[&dense, &dense],
                Attrs::default(),
                true,
            )
            .unwrap_err(),
            "1 components and 0 attributes of `test.keyway/hollow`, but got 2 and 0",
        ),
        (
            layouts::from_components(
                "components",
                layout,
                DType::F32,
                &[2],
                &[&dense],
                vec![7i64].into(),
                true,
            )
            .unwrap_err(),
            "but got 1 and 1",
        ),
        (
            layouts::from_components(
                "components",
                layout,
                DType::F32,
                &[1 << 40, 1 << 40],
                &[&dense],
                Attrs::default(),
                true,
            )
            .unwrap_err(),
            "more elements or bytes than an address can count",
        ),
        (
            layouts::from_components(
                "components",
                Layout::STRIDED,
                DType::F32,
                &[2],
                &[&dense],
                Attrs::default(),
                true,
            )
            .unwrap_err(),
            "has no owner",
        ),
    ] {
        let text = error.to_string();
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn the_version_of_a_composite_tensor_counts_its_components() {
    let _one = load(&["keyway_test_faulty"]);
    let values = zeros(&[2], DType::F32);
    let t = hollow(&[2], vec![values.clone()]);
    let copy = t.shallow_copy();
    values.bump_version();
    assert_eq!((t.version(), copy.version()), (1, 1));
    assert!(t.changed_since_made() && copy.changed_since_made());
    let later = t.shallow_copy();
    assert!(!later.changed_since_made());
    t.bump_version();
    assert_eq!((t.version(), later.version(), values.version()), (2, 2, 1));
    assert!(Shared::ptr_eq(&t.components()[0], &values));
}

#[test]
fn kernels_ask_for_what_the_program_has_set() {
    // SAFETY: any number may be asked for.
    let asked = |which| unsafe { (table().setting)(which) };
    assert_eq!(asked(setting::FLOAT32_MATMUL_PRECISION), matmul_precision::HIGHEST);
    set_float32_matmul_precision(MatmulPrecision::High);
    assert_eq!(asked(setting::FLOAT32_MATMUL_PRECISION), matmul_precision::HIGH);
    set_float32_matmul_precision(MatmulPrecision::Highest);
    assert_eq!(asked(setting::FLOAT32_MATMUL_PRECISION), matmul_precision::HIGHEST);
    // For a setting that this host does not know the answer is 0.
    assert_eq!([asked(0), asked(u32::MAX)], [0, 0]);
}

/// An undeclared layout accepts attributes of any type and number, unchanged.
#[test]
fn attributes_of_every_type_cross_and_unsound_ones_are_refused() {
    let layout = Layout::intern("test.keyway/undeclared").unwrap();
    let (ints, floats, text, part) = ([1i64, 2], [0.25f64], "text", new(&[2], 0, None).unwrap());
    let raw = |tag, len: usize, value| RawArg { tag, len: len as u32, value };
    let sound = [
        raw(tag::INT, 0, 7),
        raw(tag::FLOAT, 0, 0.5f64.to_bits()),
        raw(tag::BOOL, 0, 1),
        raw(tag::STR, text.len(), text.as_ptr() as u64),
        raw(tag::INTS, ints.len(), ints.as_ptr() as u64),
        raw(tag::FLOATS, floats.len(), floats.as_ptr() as u64),
    ];
    let make = |attrs: &[RawArg]| {
        let (sizes, n_attrs, mut out) = ([2i64], attrs.len() as u32, std::ptr::null());
        let (layout, dtype) = (layout.id(), DType::F32.code());
        // SAFETY: all lists have the stated lengths, and the addresses among the attributes are valid.
        let code = unsafe {
            let (sizes, attrs) = (sizes.as_ptr(), attrs.as_ptr());
            (table().tensor_composite_of)(layout, dtype, 1, sizes, 1, &part.0, n_attrs, attrs, &mut out)
        };
        if code == status::OK { Ok(Owned(out)) } else { Err(take_message()) }
    };
    let made = make(&sound).unwrap();
    let attr = |tensor: *const RawTensor, index| {
        let mut out = raw(tag::NONE, 0, 0);
        // SAFETY: the tensor is null or alive, and `out` is writable for one argument.
        let code = unsafe { (table().tensor_attr)(tensor, index, &mut out) };
        if code == status::OK { Ok(out) } else { Err(take_message()) }
    };
    for (index, sound) in sound.iter().enumerate() {
        let got = attr(made.raw(), index as u32).unwrap();
        assert_eq!((got.tag, got.len), (sound.tag, sound.len));
        // Lists are copied.
        assert_eq!(got.value == sound.value, got.len == 0);
    }
    // SAFETY: the raw form lives while the handle is held; attribute 3 is a text of four bytes.
    unsafe {
        let seen = std::slice::from_raw_parts((*made.raw()).attrs, 6);
        assert_eq!(seen, [7, 0.5f64.to_bits().cast_signed(), 1, 0, 0, 0]);
        let copy = attr(made.raw(), 3).unwrap();
        assert_eq!(std::slice::from_raw_parts(copy.value as *const u8, 4), text.as_bytes());
    }
    let text = attr(made.raw(), 6).unwrap_err();
    assert!(text.contains("below 6"), "{text}");
    assert!(attr(std::ptr::null(), 0).is_err());
    for (wrong, part) in [
        (raw(tag::DTYPE, 0, DType::F32.code().into()), "ints, floats, bools, texts"),
        (raw(tag::NONE, 0, 0), "ints, floats, bools, texts"),
        (raw(99, 0, 0), "a code of `tag`"),
    ] {
        let text = make(&[wrong]).err().unwrap();
        assert!(text.contains(part), "{text}");
    }
}
