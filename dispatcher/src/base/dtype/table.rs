//! The dtypes that plugins describe.
//!
//! Built-in dtypes are not in this table: their sizes and categories are constants. The sizes and categories of other
//! dtypes are read without a branch to a cold path, because inlined code reads them.

use super::{BUILT_IN, Category, DType, Limits};
use crate::base::error::{Error, Result};
use crate::base::intern::{DTYPES, MAX_DTYPES};
use crate::base::key::Device;
use crate::base::message::failure;
use keyway_sdk::abi::codes::{dtype as code, dtype_category, status};
use keyway_sdk::abi::dtype::{DTypeApi, FORMAT_CAPACITY, MAX_BITS};
use std::sync::atomic::{AtomicPtr, AtomicU8, Ordering};

const COUNT: usize = MAX_DTYPES - code::VENDOR_FIRST as usize;

static SIZES: [AtomicU8; COUNT] = [const { AtomicU8::new(0) }; COUNT];
static CATEGORIES: [AtomicU8; COUNT] = [const { AtomicU8::new(dtype_category::OTHER as u8) }; COUNT];
static ENTRIES: [AtomicPtr<Entry>; COUNT] = [const { AtomicPtr::new(std::ptr::null_mut()) }; COUNT];

/// Elements that are converted at a time, on the stack.
const CHUNK: usize = 64;

/// A buffer for a chunk of elements of any dtype, aligned for all dtypes.
#[repr(align(16))]
struct Chunk([u8; CHUNK * (MAX_BITS / 8) as usize]);

impl Chunk {
    fn new() -> Chunk {
        Chunk([0; CHUNK * (MAX_BITS / 8) as usize])
    }
}

/// A dtype that a plugin has described.
#[derive(Debug)]
pub(super) struct Entry {
    api: &'static DTypeApi,
    plugin: &'static str,
    promotes_to: Option<DType>,
}

impl Entry {
    /// The size of one element in bytes.
    fn size(&self) -> usize {
        (self.api.bits / 8) as usize
    }
}

#[inline]
fn slot_of(dtype: DType) -> usize {
    usize::from(dtype.0).wrapping_sub(code::VENDOR_FIRST as usize)
}

/// The size of one element in bytes; 0 until a plugin describes the dtype.
#[inline]
pub(super) fn size(dtype: DType) -> usize {
    SIZES.get(slot_of(dtype)).map_or(0, |size| size.load(Ordering::Relaxed).into())
}

/// The kind of values; [`Category::Other`] until a plugin describes the dtype.
#[inline]
pub(super) fn category(dtype: DType) -> Category {
    match CATEGORIES.get(slot_of(dtype)).map_or(dtype_category::OTHER, |c| c.load(Ordering::Relaxed).into()) {
        dtype_category::BOOL => Category::Bool,
        dtype_category::UNSIGNED | dtype_category::SIGNED => Category::Integer,
        dtype_category::FLOAT => Category::Float,
        dtype_category::COMPLEX => Category::Complex,
        _ => Category::Other,
    }
}

fn entry(dtype: DType) -> Option<&'static Entry> {
    let pointer = ENTRIES.get(slot_of(dtype))?.load(Ordering::Acquire);
    // SAFETY: the pointer is null or came from `describe`, which leaks what it publishes.
    unsafe { pointer.as_ref() }
}

/// [`size`], for elements that are about to be stored.
#[cold]
#[inline(never)]
pub(super) fn storage_size(dtype: DType) -> Result<usize> {
    match size(dtype) {
        0 => Err(Error::Undescribed { dtype }),
        size => Ok(size),
    }
}

fn described(dtype: DType) -> Result<&'static Entry> {
    entry(dtype).ok_or(Error::Undescribed { dtype })
}

/// The plugin that described the dtype.
pub(super) fn plugin(dtype: DType) -> Option<&'static str> {
    entry(dtype).map(|entry| entry.plugin)
}

/// The built-in dtype that replaces this one in promotion with another dtype.
pub(super) fn promotes_to(dtype: DType) -> Option<DType> {
    entry(dtype)?.promotes_to
}

/// Range and precision.
pub(super) fn limits(dtype: DType) -> Option<Limits> {
    let api = entry(dtype)?.api;
    (api.category != dtype_category::OTHER).then_some(Limits {
        max: api.max,
        min: api.min,
        epsilon: api.epsilon,
    })
}

fn done(entry: &Entry, function: &'static str, code: i32) -> Result<()> {
    if code == status::OK { Ok(()) } else { Err(failure(function, entry.plugin, Device::CPU, code)) }
}

/// Widens elements. `bytes` must have `values.len()` elements.
pub(super) fn decode(dtype: DType, bytes: &[u8], values: &mut [f64]) -> Result<()> {
    let entry = described(dtype)?;
    let (size, mut chunk) = (entry.size(), Chunk::new());
    for (bytes, values) in bytes.chunks(CHUNK * size).zip(values.chunks_mut(CHUNK)) {
        let n = values.len().min(bytes.len() / size);
        chunk.0[..bytes.len()].copy_from_slice(bytes);
        // SAFETY: the chunk holds `n` elements, aligned for any dtype that `check` accepts, and `values` has capacity for `n`;
        // the plugin upholds the contract of `ToF64Fn`.
        let code = unsafe { (entry.api.to_f64)(chunk.0.as_ptr().cast(), values.as_mut_ptr(), n as u64) };
        done(entry, "to_f64", code)?;
    }
    Ok(())
}

/// Rounds to elements. `bytes` must have capacity for `values.len()` elements.
pub(super) fn encode(dtype: DType, values: &[f64], bytes: &mut [u8]) -> Result<()> {
    let entry = described(dtype)?;
    let (size, mut chunk) = (entry.size(), Chunk::new());
    for (bytes, values) in bytes.chunks_mut(CHUNK * size).zip(values.chunks(CHUNK)) {
        let n = values.len().min(bytes.len() / size);
        // SAFETY: the chunk has capacity for `n` elements, aligned for any dtype that `check` accepts, and `values` has `n`;
        // the plugin upholds the contract of `FromF64Fn`.
        let code = unsafe { (entry.api.from_f64)(values.as_ptr(), chunk.0.as_mut_ptr().cast(), n as u64) };
        done(entry, "from_f64", code)?;
        bytes.copy_from_slice(&chunk.0[..bytes.len()]);
    }
    Ok(())
}

/// One element as formatted by the plugin; `None` if it has no formatter.
pub(super) fn format(dtype: DType, element: &[u8]) -> Option<Result<String>> {
    let entry = entry(dtype)?;
    let format = entry.api.format?;
    let mut chunk = Chunk::new();
    chunk.0[..element.len()].copy_from_slice(element);
    let (mut buffer, mut length) = ([0u8; FORMAT_CAPACITY], 0u64);
    // SAFETY: the chunk holds one aligned element, `buffer` has the stated capacity; the plugin upholds the contract of
    // `FormatFn`.
    let code = unsafe {
        format(chunk.0.as_ptr().cast(), buffer.as_mut_ptr(), FORMAT_CAPACITY as u64, &raw mut length)
    };
    let text = &buffer[..FORMAT_CAPACITY.min(length as usize)];
    Some(done(entry, "format", code).map(|()| String::from_utf8_lossy(text).into_owned()))
}

fn name(api: &DTypeApi) -> std::borrow::Cow<'static, str> {
    // SAFETY: the plugin's strings are static, and the loader has checked them.
    unsafe { api.name.read() }
}

fn promotes_to_name(api: &DTypeApi) -> std::borrow::Cow<'static, str> {
    // SAFETY: as in `name`.
    unsafe { api.promotes_to.read() }
}

fn order(category: u32) -> u32 {
    // Promotion treats signed and unsigned integers as one category.
    if category == dtype_category::SIGNED { dtype_category::UNSIGNED } else { category }
}

fn built_in(name: &str) -> Option<DType> {
    BUILT_IN.iter().position(|known| *known == name).map(|i| DType(i as u16))
}

fn code_of(category: Category) -> u32 {
    match category {
        Category::Bool => dtype_category::BOOL,
        Category::Integer => dtype_category::UNSIGNED,
        Category::Float => dtype_category::FLOAT,
        Category::Complex => dtype_category::COMPLEX,
        Category::Other => dtype_category::OTHER,
    }
}

/// Checks a plugin's description of a dtype, whose texts and functions are known to be present. The error is the pair of
/// expected and actual value.
pub(crate) fn check(api: &DTypeApi) -> Result<(), (String, String)> {
    let wrong = |expected: &str, got: String| Err((expected.to_string(), got));
    let name = name(api);
    if name.chars().any(|c| c.is_whitespace() || c.is_control() || matches!(c, ',' | '"' | '\\')) {
        return wrong("`name` without spaces, commas and quotes", format!("`{name}`"));
    }
    if built_in(&name).is_some() {
        return wrong("`name` of a new dtype", format!("`{name}`, which is built in"));
    }
    if api.bits == 0 || !api.bits.is_multiple_of(8) || api.bits > MAX_BITS {
        return wrong(
            &format!("`bits` of 8 to {MAX_BITS} in whole bytes (elements do not share a byte)"),
            api.bits.to_string(),
        );
    }
    if !api.alignment.is_power_of_two() || !(api.bits / 8).is_multiple_of(api.alignment) {
        let expected = format!("`alignment` that is a power of two and divides the {} bytes", api.bits / 8);
        return wrong(&expected, api.alignment.to_string());
    }
    if api.category > dtype_category::OTHER {
        return wrong("`category` of `codes::dtype_category`", api.category.to_string());
    }
    if api.flags != 0 {
        return wrong("`flags` of 0", api.flags.to_string());
    }
    let number = api.category != dtype_category::OTHER;
    if number && !(api.min.is_finite() && api.max.is_finite() && api.min <= api.max) {
        let got = format!("{} and {}", api.min, api.max);
        return wrong("`min` and `max` that are finite, the first not above the second", got);
    }
    let float = matches!(api.category, dtype_category::FLOAT | dtype_category::COMPLEX);
    if float && !(api.epsilon.is_finite() && api.epsilon > 0.0) {
        return wrong("`epsilon` that is finite and above 0", api.epsilon.to_string());
    }
    let stands_in = promotes_to_name(api);
    if stands_in.is_empty() {
        return Ok(());
    }
    match built_in(&stands_in) {
        None => wrong("`promotes_to` with the name of a built-in dtype, or empty", format!("`{stands_in}`")),
        Some(dtype) if code_of(dtype.category()) < order(api.category) => {
            wrong("`promotes_to` with a dtype of the same category or a later one", format!("`{stands_in}`"))
        }
        Some(_) => Ok(()),
    }
}

/// All that must be equal between two descriptions, by field.
fn fields(api: &DTypeApi) -> [(&'static str, String); 7] {
    [
        ("bits", api.bits.to_string()),
        ("alignment", api.alignment.to_string()),
        ("category", api.category.to_string()),
        ("promotes_to", format!("`{}`", promotes_to_name(api))),
        ("max", api.max.to_string()),
        ("min", api.min.to_string()),
        ("epsilon", api.epsilon.to_string()),
    ]
}

/// Interns the name of the dtype that a plugin describes, without the description.
///
/// # Errors
/// `Registration` if another plugin described it differently, or the table of names is full.
pub(crate) fn announce(api: &DTypeApi, plugin: &str) -> Result<DType> {
    let name = name(api);
    let refused = |reason: String| Error::Registration { what: "dtype", name: name.to_string(), reason };
    let number = DTYPES.intern(&name).ok_or_else(|| refused("the table of names is full".into()))?;
    let dtype = DType(number);
    let Some(present) = entry(dtype) else { return Ok(dtype) };
    for ((field, old), (_, new)) in fields(present.api).into_iter().zip(fields(api)) {
        if old != new {
            let other = present.plugin;
            return Err(refused(format!(
                "`{other}` describes it with `{field}` {old}, but `{plugin}` with {new}; remove one of the two plugins"
            )));
        }
    }
    Ok(dtype)
}

/// Publishes a description. The first one of a dtype is retained.
pub(crate) fn describe(dtype: DType, api: &'static DTypeApi, plugin: &'static str) {
    let index = slot_of(dtype);
    let Some(slot) = ENTRIES.get(index).filter(|slot| slot.load(Ordering::Relaxed).is_null()) else { return };
    let promotes_to = built_in(&promotes_to_name(api));
    slot.store(Box::leak(Box::new(Entry { api, plugin, promotes_to })), Ordering::Release);
    CATEGORIES[index].store(api.category as u8, Ordering::Release);
    // The size is stored last: a reader that sees a nonzero size may create tensors.
    SIZES[index].store((api.bits / 8) as u8, Ordering::Release);
}

#[cfg(test)]
mod tests {
    use super::super::Promotion;
    use super::*;
    use keyway_sdk::abi::RawStr;
    use std::ffi::c_void;

    /// A dtype of quarters: an `i16` that counts them.
    unsafe extern "C" fn to_f64(source: *const c_void, target: *mut f64, n: u64) -> i32 {
        for i in 0..n as usize {
            // SAFETY: by the contract of `ToF64Fn`.
            unsafe { target.add(i).write(f64::from(source.cast::<i16>().add(i).read()) / 4.0) };
        }
        status::OK
    }

    unsafe extern "C" fn from_f64(source: *const f64, target: *mut c_void, n: u64) -> i32 {
        for i in 0..n as usize {
            // SAFETY: by the contract of `FromF64Fn`.
            unsafe {
                target.cast::<i16>().add(i).write((source.add(i).read() * 4.0).round_ties_even() as i16);
            }
        }
        status::OK
    }

    fn quarters(name: &'static str) -> DTypeApi {
        DTypeApi {
            struct_size: size_of::<DTypeApi>() as u32,
            bits: 16,
            name: RawStr::new(name),
            alignment: 2,
            category: dtype_category::FLOAT,
            flags: 0,
            promotes_to: RawStr::new("f32"),
            max: 8191.75,
            min: -8192.0,
            epsilon: 0.25,
            to_f64,
            from_f64,
            format: None,
        }
    }

    fn brought(api: DTypeApi) -> DType {
        check(&api).unwrap();
        let dtype = announce(&api, "test.example/first").unwrap();
        describe(dtype, Box::leak(Box::new(api)), "test.example/first");
        dtype
    }

    #[test]
    fn a_wrong_description_names_the_field() {
        let good = || quarters("test.example/wrong");
        let cases: [(DTypeApi, &str, &str); 12] = [
            (DTypeApi { bits: 0, ..good() }, "`bits`", "0"),
            (DTypeApi { bits: 4, ..good() }, "`bits`", "4"),
            (DTypeApi { bits: 136, ..good() }, "`bits`", "136"),
            (DTypeApi { alignment: 3, ..good() }, "`alignment`", "3"),
            (DTypeApi { alignment: 0, ..good() }, "`alignment`", "0"),
            (DTypeApi { alignment: 4, ..good() }, "`alignment`", "4"),
            (DTypeApi { category: 9, ..good() }, "`category`", "9"),
            (DTypeApi { max: f64::INFINITY, ..good() }, "`max`", "inf"),
            (DTypeApi { promotes_to: RawStr::new("f23"), ..good() }, "`promotes_to`", "`f23`"),
            (DTypeApi { promotes_to: RawStr::new("i64"), ..good() }, "`promotes_to`", "`i64`"),
            (DTypeApi { name: RawStr::new("f32"), ..good() }, "`name`", "built in"),
            (DTypeApi { name: RawStr::new("a b"), ..good() }, "`name`", "`a b`"),
        ];
        assert_eq!(check(&good()), Ok(()));
        for (api, field, got) in cases {
            let (expected, came) = check(&api).unwrap_err();
            assert!(expected.contains(field) && came.contains(got), "expected {expected}, got {came}");
        }
    }

    #[test]
    fn a_name_may_come_before_its_description() {
        let dtype = DType(DTYPES.intern("test.example/later").unwrap());
        assert_eq!((dtype.size(), dtype.category()), (0, Category::Other));
        let error = dtype.storage_size().unwrap_err().to_string();
        assert!(error.contains("test.example/later") && error.contains("plugin"), "{error}");
        assert_eq!(brought(quarters("test.example/later")), dtype);
        assert_eq!((dtype.size(), dtype.category()), (2, Category::Float));
        assert_eq!(dtype.storage_size().unwrap(), 2);
    }

    #[test]
    fn two_plugins_may_describe_a_dtype_alike() {
        let dtype = brought(quarters("test.example/twice"));
        assert_eq!(announce(&quarters("test.example/twice"), "test.example/second").unwrap(), dtype);
        let other = DTypeApi { bits: 32, ..quarters("test.example/twice") };
        let error = announce(&other, "test.example/second").unwrap_err().to_string();
        for part in ["test.example/first", "test.example/second", "`bits` 16", "32"] {
            assert!(error.contains(part), "{error}");
        }
        assert_eq!(dtype.size(), 2, "a refused description changes nothing");
    }

    #[test]
    fn values_go_through_f64_in_chunks() {
        let dtype = brought(quarters("test.example/chunks"));
        let values: Vec<f64> = (0..200).map(|i| f64::from(i) * 0.25 - 20.0).collect();
        let mut bytes = vec![0; 401];
        // An odd address, which must not be passed to the plugin.
        dtype.encode(&values, &mut bytes[1..]).unwrap();
        assert_eq!(bytes[1..3], (-80i16).to_ne_bytes());
        let mut back = vec![0.0; 200];
        dtype.decode(&bytes[1..], &mut back).unwrap();
        assert_eq!(back, values);
    }

    #[test]
    fn a_built_in_stands_for_it_in_promotion() {
        let (a, b) = (brought(quarters("test.example/a")), brought(quarters("test.example/b")));
        assert_eq!(a.promote(a), Some(a));
        assert_eq!(a.promote(DType::F64), Some(DType::F64));
        assert_eq!(DType::I64.promote(a), Some(DType::F32));
        assert_eq!(a.promote(b), Some(DType::F32));
        let alone = brought(DTypeApi { promotes_to: RawStr::EMPTY, ..quarters("test.example/alone") });
        assert_eq!(alone.promote(DType::F32), None);
        assert_eq!(alone.promote(a), None);
        let mut with_number = Promotion::default();
        with_number.tensor(a, 2);
        with_number.number(DType::F64);
        assert_eq!(with_number.result(), Ok(a));
    }

    #[test]
    fn what_is_no_number_keeps_its_dtype_or_fails() {
        let opaque = brought(DTypeApi {
            category: dtype_category::OTHER,
            promotes_to: RawStr::EMPTY,
            ..quarters("test.example/opaque")
        });
        let result = |tensors: [(DType, usize); 2]| {
            let mut promotion = Promotion::default();
            tensors.into_iter().for_each(|(dtype, ndim)| promotion.tensor(dtype, ndim));
            promotion.number(DType::I64);
            promotion.result()
        };
        assert_eq!(result([(opaque, 1), (opaque, 0)]), Ok(opaque));
        assert_eq!(result([(opaque, 0), (DType::F32, 1)]), Err((opaque, DType::F32)));
        assert_eq!(result([(opaque, 1), (DType::F32, 0)]), Err((DType::F32, opaque)));
    }
}
