//! A device for tests that differs from the CPU as much as possible: its memory cannot be read by the host (the pages are
//! protected except while the device's own thread works on them), its work is enqueued on streams and executed later, there
//! are two devices, and memory is limited. It demonstrates that a GPU backend can be implemented.
//!
//! - `memory`: protected pages, opened only for the working thread;
//! - `queue`: streams, events and the thread of each device;
//! - `device`: the table that is registered with the host;
//! - `pinned`: host memory for asynchronous copies;
//! - `further`: peer access, and graphs;
//! - `kernels`: a few ops, and two of the plugin: `remote_pause` is slow, `remote_fail` fails later.

use keyway_test_faults::{self as faults, Fault};

mod device;
mod further;
mod kernels;
mod memory;
mod pinned;
mod queue;

/// The faults of a device that the suite must detect; `KEYWAY_FAULT` selects one.
const FAULTS: [Fault; 19] = [
    Fault::of_families("device_copy_short", &["device"], "copies from the host leave out the last byte"),
    Fault::of_families("device_copy_lost", &["device"], "copies to the host are not made"),
    Fault::of_families(
        "device_copy_kept",
        &["device"],
        "what is copied to the device is kept in the host's memory",
    ),
    Fault::of_families("device_copy_offset", &["device"], "copies between devices begin one byte late"),
    Fault::of_families("device_async_short", &["device"], "queued copies leave out the last byte"),
    Fault::of_families(
        "device_event_early",
        &["device"],
        "an event is reached before what was queued ahead of it",
    ),
    Fault::of_families("device_event_never", &["device"], "an event that was reached is said to be open"),
    Fault::of_families(
        "device_wait_ignored",
        &["device"],
        "a stream does not wait for the event that it should",
    ),
    Fault::of_families("device_stream_unwaited", &["device"], "waiting for a stream returns at once"),
    Fault::of_families("device_unwaited", &["device"], "waiting for the device returns at once"),
    Fault::of_families("device_wrong_stream", &["device"], "kernels work on the default stream"),
    Fault::of_families("device_memory_kept", &["device", "leaks"], "freed memory is counted as in use"),
    Fault::of_families("device_out_of_memory", &["device"], "too much memory is a failure of no kind"),
    // For calls without another candidate: otherwise a refusal would be correct.
    Fault::of_ops("empty_refused", &["sum"], "a tensor without elements is refused"),
    Fault::of_ops("no_dims_refused", &["mul"], "a tensor without dimensions is refused"),
    Fault::of_ops("five_dims_refused", &["exp"], "a tensor of five dimensions or more is refused"),
    Fault::of_families(
        "device_freed_early",
        &["values", "promotion"],
        "memory is unmapped before queued work has used it",
    ),
    Fault::of_families(
        "device_queue_drops",
        &["queues"],
        "a stream with 4,096 tasks drops those that come, and says nothing",
    ),
    Fault::of_ops(
        "second_device_wrong",
        &["mul"],
        "products of more than 100 elements are wrong on the second device alone",
    ),
];

keyway_sdk::plugin! {
    name: "keyway.test/device",
    version: env!("CARGO_PKG_VERSION"),
    description: "An asynchronous device whose memory the host cannot read",
    devices: ["test.keyway/remote", "test.keyway/farther"],
    layouts: ["strided"],
    setup: |contents| {
        faults::announce(FAULTS).map_err(|detail| keyway_sdk::Error::Failed { detail })?;
        // An arbitrary time, for tests of planning.
        contents.preference("exp", "test.keyway/remote", "channels_last", 0.25);
        contents.device(&device::API).device(&device::FARTHER).op(&kernels::PAUSE).op(&kernels::FAIL);
        Ok(())
    },
}
