//! Kernels that change process state, or leak process resources.

use super::Fault;
use std::fs::File;
use std::os::fd::IntoRawFd;

/// The number of elements from which a call leaks a thread: that of the repeated calls.
const LARGE: usize = 200_000;
/// A signal that no other code here uses, and the disposition to ignore it.
const SIGUSR2: i32 = 12;
const IGNORED: usize = 1;

unsafe extern "C" {
    fn signal(number: i32, handler: usize) -> usize;
}

pub(super) const FAULTS: &[Fault] = &[
    Fault::new("other_folder", "the working directory is another one after the call", &["relu"], |site| {
        // If the folder does not exist nothing changes, and the fault is not detected.
        let _ = std::env::set_current_dir("/");
        site.run()
    }),
    Fault::new("other_variable", "a variable of the environment is another one", &["relu"], |site| {
        // SAFETY: a worker of the suite reads its environment between calls alone. That a kernel writes to it is the fault.
        unsafe { std::env::set_var("KEYWAY_MUTANT_WAS_HERE", "1") };
        site.run()
    }),
    Fault::new("signal_ignored", "a signal is ignored after the call", &["relu"], |site| {
        // SAFETY: C's function, with a signal that is never sent and the value of `SIG_IGN`.
        unsafe { signal(SIGUSR2, IGNORED) };
        site.run()
    }),
    Fault::new("descriptor_kept", "each call opens a file and does not close it", &["relu"], |site| {
        let _ = File::open("/dev/null").map(IntoRawFd::into_raw_fd);
        site.run()
    })
    .dtypes(&["f32"]),
    Fault::new("thread_kept", "each large call starts a thread that does not end", &["relu"], |site| {
        if site.input(0)?.len() > LARGE {
            let thread = std::thread::Builder::new().stack_size(1 << 16);
            let _ = thread.spawn(|| {
                loop {
                    std::thread::park();
                }
            });
        }
        site.run()
    })
    .dtypes(&["f32"]),
];
