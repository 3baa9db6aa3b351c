//! A device for tests, as different from the CPU as a device can be: its memory cannot be read by the host
//! (the pages are protected but while the device's own thread works on them), its work is queued on streams
//! and done later, there are two of it, and memory is limited. What works here has a chance to work on a
//! graphics card.
//!
//! - `memory`: protected pages, opened only for the thread that works;
//! - `queue`: streams, events and the thread of each device;
//! - `device`: the table that the host is given;
//! - `pinned`: host memory that copies need not wait for;
//! - `further`: access from one device to the other, and captured work;
//! - `kernels`: a handful of ops, and two of its own: `remote_pause` works slowly, `remote_fail` fails later.

mod device;
mod further;
mod kernels;
mod memory;
mod pinned;
mod queue;

keyway_sdk::plugin! {
    name: "keyway.test/device",
    version: env!("CARGO_PKG_VERSION"),
    description: "An asynchronous device whose memory the host cannot read",
    devices: ["test.keyway/remote", "test.keyway/farther"],
    layouts: ["strided"],
    setup: |contents| {
        contents.device(&device::API).device(&device::FARTHER).op(&kernels::PAUSE).op(&kernels::FAIL);
        Ok(())
    },
}
