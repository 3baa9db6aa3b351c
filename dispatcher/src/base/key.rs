//! The parts of a dispatch key: devices, layouts, and the dispatch keys above the backends.

use crate::base::error::Error;
use crate::base::intern::{DEVICES, LAYOUTS};
use crate::base::lacking;
use std::fmt;
use std::str::FromStr;

pub use super::guard::{KeyGuard, local_keys};

/// A device: its type, and its index among the devices of that type.
///
/// ```
/// # fn main() -> keyway_dispatcher::Result<()> {
/// # use keyway_dispatcher as keyway;
/// use keyway::Device;
/// let device = Device::parse("vendor.example/npu:1")?;
/// assert_eq!((device.name(), device.index), ("vendor.example/npu", 1));
/// assert_eq!(device.to_string(), "vendor.example/npu:1");
/// assert_eq!(Device::parse("cpu")?, Device::CPU);
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Device {
    /// Interned name.
    pub kind: u16,
    /// The index among the devices of that name.
    pub index: u16,
}

impl Device {
    /// Host memory.
    #[doc(alias = "Cpu")]
    pub const CPU: Device = Device { kind: 0, index: 0 };

    /// The name of [`Device::CPU`] in candle.
    #[doc(hidden)]
    #[deprecated(note = "the constant is `Device::CPU`")]
    #[allow(non_upper_case_globals)]
    pub const Cpu: Device = Device::CPU;

    /// The device with this name and index; interns the name if it is new.
    ///
    /// ```
    /// # fn main() -> keyway_dispatcher::Result<()> {
    /// # use keyway_dispatcher as keyway;
    /// use keyway::Device;
    /// assert_eq!(Device::new("vendor.example/npu", 1)?, "vendor.example/npu:1".parse()?);
    /// assert!(Device::new("", 0).is_err());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::Registration`] if the table of names is full.
    pub fn new(name: &str, index: u16) -> Result<Device, Error> {
        let kind = DEVICES.intern(name).ok_or_else(|| Error::Registration {
            what: "device",
            name: name.to_string(),
            reason: "the table of device names is full, or the name is empty".to_string(),
        })?;
        Ok(Device { kind, index })
    }

    /// Parses `cpu`, `cuda:1`, `vendor.example/npu:0`, and the names of existing devices in capitals. Names are an open
    /// set, so any name parses: whether a backend provides the device is checked when it is used. A name that ends in
    /// digits needs its index, `npu2:0`, since `cuda0` usually means `cuda:0`.
    ///
    /// ```
    /// # fn main() -> keyway_dispatcher::Result<()> {
    /// # use keyway_dispatcher as keyway;
    /// use keyway::Device;
    /// assert_eq!(Device::parse("cpu")?, Device::parse("cpu:0")?);
    /// assert_eq!(Device::parse("CPU")?, Device::CPU);
    /// assert!(Device::parse("cpu:first").is_err());
    /// assert!(Device::parse("gpu").unwrap_err().to_string().contains("`cpu` here"));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::Value`] for `gpu`, which no backend is named, an empty name, an index that is not an integer, or a name
    /// that ends in digits without an index.
    pub fn parse(text: &str) -> Result<Device, Error> {
        let wrong_for = |expected: String| Error::Value {
            op: "device",
            argument: "device",
            expected,
            got: format!("`{text}`"),
        };
        let wrong = || wrong_for("a name such as `cpu` or `cuda:1`".to_string());
        let (name, index) = match text.rsplit_once(':') {
            Some((name, _)) if name.contains(':') => return Err(wrong()),
            Some((_, index)) if !index.bytes().all(|b| b.is_ascii_digit()) => return Err(wrong()),
            Some((name, index)) => (name, index.parse().map_err(|_| wrong())?),
            None => {
                let kind = text.trim_end_matches(|c: char| c.is_ascii_digit());
                // The plugin's name, after `@`, may end in digits.
                if !kind.is_empty() && kind.len() < text.len() && !text.contains('@') {
                    let index = &text[kind.len()..];
                    return Err(wrong_for(format!(
                        "`kind` or `kind:index`, such as `{}:{index}`",
                        kind.trim_end()
                    )));
                }
                (text, 0)
            }
        };
        if name.is_empty() {
            return Err(wrong());
        }
        let lower = name.to_ascii_lowercase();
        if lower == Device::CPU.name() || (lacking::is_there(&lower) && !lacking::is_there(name)) {
            return Device::new(&lower, index);
        }
        if lower == "gpu" && !lacking::is_there(name) {
            return Err(wrong_for(format!(
                "the name of a device, {} here (`cuda` for a GPU of NVIDIA)",
                lacking::devices()
            )));
        }
        Device::new(name, index)
    }

    /// The device's kind as a name.
    pub fn name(self) -> &'static str {
        DEVICES.name(self.kind)
    }
}

/// Host memory.
impl Default for Device {
    fn default() -> Device {
        Device::CPU
    }
}

/// As [`Device::parse`].
impl FromStr for Device {
    type Err = Error;

    fn from_str(text: &str) -> Result<Device, Error> {
        Device::parse(text)
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.index == 0 && self.kind == 0 {
            f.pad("cpu")
        } else {
            f.pad(&format!("{}:{}", self.name(), self.index))
        }
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The layout of a tensor's elements (strided, or a sparse format): an interned name.
///
/// ```
/// # use keyway_dispatcher as keyway;
/// use keyway::Layout;
/// assert_eq!(Layout::CHANNELS_LAST.name(), "channels_last");
/// assert_eq!(Layout::CHANNELS_LAST.parent(), Some(Layout::STRIDED));
/// assert!(Layout::STRIDED.is_strided());
/// let blocks = Layout::intern("vendor.example/blocks").unwrap();
/// assert_eq!(Layout::from_name("vendor.example/blocks"), Some(blocks));
/// assert!(!blocks.is_strided() && blocks.parent().is_none());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Layout(pub(crate) u16);

impl Layout {
    /// A single buffer with strides.
    pub const STRIDED: Layout = Layout(0);
    /// Strided with the channels innermost: a sub-layout of strided, determined by the strides alone.
    pub const CHANNELS_LAST: Layout = Layout(1);

    /// Whether tensors of this layout are a single strided buffer.
    pub const fn is_strided(self) -> bool {
        self.0 <= Layout::CHANNELS_LAST.0
    }

    /// The layout whose kernels also serve this one: `channels_last` tensors are strided. No other layout has a parent,
    /// since kernels read the components of the layout that they were written for.
    pub const fn parent(self) -> Option<Layout> {
        if self.0 == Layout::CHANNELS_LAST.0 { Some(Layout::STRIDED) } else { None }
    }

    /// The layout with this name, if it has been interned.
    pub fn from_name(name: &str) -> Option<Layout> {
        LAYOUTS.get(name).map(Layout)
    }

    /// The layout with this name; interns the name if it is new.
    pub fn intern(name: &str) -> Option<Layout> {
        LAYOUTS.intern(name).map(Layout)
    }

    /// The name.
    pub fn name(self) -> &'static str {
        LAYOUTS.name(self.0)
    }

    /// The interned number.
    pub fn id(self) -> u16 {
        self.0
    }
}

impl FromStr for Layout {
    type Err = Error;

    fn from_str(name: &str) -> Result<Layout, Error> {
        Layout::from_name(name).ok_or_else(|| Error::Value {
            op: "layout",
            argument: "layout",
            expected: "`strided`, `channels_last`, or the name of a layout that a loaded plugin brings"
                .to_string(),
            got: format!("`{name}`"),
        })
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl fmt::Debug for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A dispatch key above the backends. The highest number is handled first.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct DispatchKey(pub(crate) u8);

impl DispatchKey {
    /// A marker without a handler: set on tensors created in inference mode.
    pub const INFERENCE: DispatchKey = DispatchKey(1);
    /// Sends calls to the backend that the thread has chosen.
    pub const BACKEND_CHOICE: DispatchKey = DispatchKey(8);
    /// Refuses calls on devices whose work is not captured, while a thread captures.
    pub const CAPTURE: DispatchKey = DispatchKey(9);
    /// Records the graph.
    pub const AUTOGRAD: DispatchKey = DispatchKey(16);
    /// Converts arguments of composite layouts to strided if no kernel serves the call; every composite tensor has it.
    pub const LAYOUT_FALLBACK: DispatchKey = DispatchKey(20);
    /// Casts arguments to a narrower dtype.
    pub const AUTOCAST: DispatchKey = DispatchKey(24);
    /// Converts arguments to the memory formats that a plan chose.
    pub const FORMAT_PLAN: DispatchKey = DispatchKey(28);
    /// The first dispatch key of plugins' interposers.
    pub const INTERPOSER_FIRST: DispatchKey = DispatchKey(32);
    /// The last of them.
    pub const INTERPOSER_LAST: DispatchKey = DispatchKey(47);
    /// The first dispatch key of interceptors, which the program registers.
    pub const PROGRAM_FIRST: DispatchKey = DispatchKey(48);
    /// The last of them.
    pub const PROGRAM_LAST: DispatchKey = DispatchKey(55);
    /// Counts and times calls.
    pub const PROFILER: DispatchKey = DispatchKey(56);

    /// The key with this number, 0 to 63.
    pub const fn new(number: u8) -> Option<DispatchKey> {
        if number < 64 { Some(DispatchKey(number)) } else { None }
    }

    /// The number, 0 to 63.
    pub const fn number(self) -> u8 {
        self.0
    }
}

/// A set of dispatch keys.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct KeySet(pub(crate) u64);

impl KeySet {
    /// The empty set.
    pub const EMPTY: KeySet = KeySet(0);

    /// Every key.
    pub(crate) const ALL: KeySet = KeySet(u64::MAX);

    /// The set of one key.
    pub const fn of(key: DispatchKey) -> KeySet {
        KeySet(1 << key.0)
    }

    /// The union of both sets.
    pub const fn union(self, other: KeySet) -> KeySet {
        KeySet(self.0 | other.0)
    }

    /// The keys of this set that are not in the other.
    pub const fn minus(self, other: KeySet) -> KeySet {
        KeySet(self.0 & !other.0)
    }

    /// The intersection of both sets.
    pub const fn intersect(self, other: KeySet) -> KeySet {
        KeySet(self.0 & other.0)
    }

    /// Whether the key is in the set.
    pub const fn has(self, key: DispatchKey) -> bool {
        self.0 & (1 << key.0) != 0
    }

    /// The dispatch keys of interceptors, which the program registers.
    pub const PROGRAM: KeySet = KeySet(0xff << DispatchKey::PROGRAM_FIRST.0);

    /// The keys that act after `key`.
    pub const fn below(self, key: DispatchKey) -> KeySet {
        KeySet(self.0 & ((1 << key.0) - 1))
    }

    /// The key that acts first.
    pub const fn highest(self) -> Option<DispatchKey> {
        if self.0 == 0 { None } else { Some(DispatchKey(63 - self.0.leading_zeros() as u8)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_key_acts_first() {
        let set = KeySet::of(DispatchKey::AUTOGRAD).union(KeySet::of(DispatchKey::PROFILER));
        assert_eq!(set.highest(), Some(DispatchKey::PROFILER));
        assert_eq!(set.below(DispatchKey::PROFILER).highest(), Some(DispatchKey::AUTOGRAD));
        assert_eq!(set.below(DispatchKey::AUTOGRAD).highest(), None);
        let program = DispatchKey::PROGRAM_FIRST.0..=DispatchKey::PROGRAM_LAST.0;
        assert!((0..64).all(|n| KeySet::PROGRAM.has(DispatchKey(n)) == program.contains(&n)));
    }

    #[test]
    fn devices_read_and_print() {
        assert_eq!(Device::parse("cpu").unwrap(), Device::CPU);
        assert_eq!(
            (Device::parse("CPU").unwrap(), Device::parse("Cpu:0").unwrap()),
            (Device::CPU, Device::CPU)
        );
        for text in ["gpu", "GPU", "gpu:1"] {
            let error = Device::parse(text).unwrap_err().to_string();
            assert!(error.contains("`cpu` here") && error.contains(&format!("`{text}`")), "{error}");
        }
        let d = Device::parse("test.example/k:3").unwrap();
        assert_eq!((d.index, d.to_string().as_str()), (3, "test.example/k:3"));
        assert!(Device::parse("").is_err() && Device::parse("cpu:x").is_err());
        assert!(Device::parse("cpu:0:1").is_err() && Device::parse("cpu:+1").is_err());
        assert_eq!("test.example/k:3".parse::<Device>().unwrap(), d);
        assert!("cpu:x".parse::<Device>().unwrap_err().to_string().contains("`cpu:x`"));
    }

    #[test]
    fn layouts_are_read_by_name() {
        assert_eq!("channels_last".parse::<Layout>().unwrap(), Layout::CHANNELS_LAST);
        let said = "sparse_cow".parse::<Layout>().unwrap_err().to_string();
        assert!(said.contains("`sparse_cow`") && said.contains("`strided`"), "{said}");
    }

    #[test]
    fn an_index_without_a_colon_is_refused() {
        for (text, meant) in
            [("gpu0", "`gpu:0`"), ("cuda12", "`cuda:12`"), ("test.example/k3", "`test.example/k:3`")]
        {
            let said = text.parse::<Device>().unwrap_err().to_string();
            assert!(said.contains("`kind` or `kind:index`") && said.contains(meant), "{said}");
            assert!(said.contains(&format!("`{text}`")), "{said}");
        }
        let named = "test.example/k3:0".parse::<Device>().unwrap();
        assert_eq!((named.name(), named.index), ("test.example/k3", 0));
        assert_eq!("test@plugin2".parse::<Device>().unwrap().name(), "test@plugin2");
    }
}
