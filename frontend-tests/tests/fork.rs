//! Forked children: tensors work in them, or say why they do not. None waits for a thread that only its parent has.
#![cfg(target_os = "linux")]

use keyway::{Error, Result, Tensor, rng};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The exit codes of a child.
const WORKED: i32 = 0;
const REFUSED: i32 = 3;

/// Runs `work` in a forked child; its exit code. A child that takes half a minute hangs.
fn in_child(work: impl FnOnce() -> i32) -> i32 {
    // SAFETY: the behaviour of the child is under test; it leaves by `_exit`, so it runs no exit handlers of the parent.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "{}", std::io::Error::last_os_error());
    if child == 0 {
        let code = catch_unwind(AssertUnwindSafe(work)).unwrap_or(101);
        // SAFETY: ends this process.
        unsafe { libc::_exit(code) }
    }
    let (began, mut status) = (Instant::now(), 0);
    loop {
        // SAFETY: the child is this thread's own, and is waited for once.
        match unsafe { libc::waitpid(child, &mut status, libc::WNOHANG) } {
            0 if began.elapsed() > Duration::from_secs(30) => {
                // SAFETY: it was not waited for yet, so the number is still the child's.
                unsafe { libc::kill(child, libc::SIGKILL) };
                panic!("the child hangs");
            }
            0 => std::thread::sleep(Duration::from_millis(1)),
            _ => break,
        }
    }
    assert!(libc::WIFEXITED(status), "the child was killed: {status}");
    libc::WEXITSTATUS(status)
}

/// Work that takes every kind of lock: memory of all sizes, random numbers, all threads.
fn work() -> Result<f64> {
    let sum = Tensor::ones([1 << 20])?.sum_all()?.item::<f32>()?;
    let square = Tensor::ones([200, 200])?;
    let product = square.mm(&square)?.sum_all()?.item::<f32>()?;
    let mut total = f64::from(sum + product);
    for size in [1usize, 1000, 5000, 100_000, 2_000_000] {
        let drawn = Tensor::rand([size])?;
        let sorted = drawn.slice(0, None, Some(1000), 1)?.sort_with(0, false, true)?.0;
        total += f64::from(u8::from(sorted.to_vec::<f32>()?.is_sorted()));
    }
    Ok(total)
}

const EXPECTED: f64 = (1 << 20) as f64 + 8e6 + 5.0;

fn check() -> i32 {
    assert_eq!(work().unwrap(), EXPECTED);
    WORKED
}

#[test]
fn a_child_works_after_its_parent_did() {
    check();
    rng::manual_seed(5);
    assert_eq!(
        in_child(|| {
            check();
            in_child(check)
        }),
        WORKED,
        "and a child of the child"
    );
    check();
    let drawn = || Tensor::rand([3]).unwrap().to_vec::<f32>().unwrap();
    rng::manual_seed(5);
    let expected = {
        let drawn = drawn();
        rng::manual_seed(5);
        drawn
    };
    assert_eq!(in_child(|| i32::from(drawn() != expected)), 0, "random numbers go on where the parent was");
}

#[test]
fn a_child_works_whatever_the_other_threads_of_its_parent_do() {
    check();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    check();
                }
            });
        }
        let end = std::panic::catch_unwind(|| (0..40).for_each(|_| assert_eq!(in_child(check), WORKED)));
        done.store(true, Ordering::Relaxed);
        end.unwrap();
    });
}

/// Set in a process of its own, in which nothing has been loaded yet.
const FRESH: &str = "KEYWAY_TEST_FORK_FRESH";

fn fresh(test: &str) -> bool {
    if std::env::var_os(FRESH).is_some() {
        return true;
    }
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(FRESH, "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text} {}", String::from_utf8_lossy(&output.stderr));
    false
}

#[test]
fn a_child_whose_parent_is_loading_says_so() {
    if !fresh("a_child_whose_parent_is_loading_says_so") {
        return;
    }
    let loading = std::thread::spawn(|| keyway::runtime::start().unwrap());
    for _ in 0..20 {
        let code = in_child(|| match keyway::runtime::start() {
            Ok(()) => check(),
            Err(Error::Forked) => REFUSED,
            Err(_) => 102,
        });
        assert!([WORKED, REFUSED].contains(&code), "{code}");
    }
    loading.join().unwrap();
    assert_eq!(in_child(check), WORKED);
}

#[test]
fn a_thread_of_the_pool_may_fork() {
    if !fresh("a_thread_of_the_pool_may_fork") {
        return;
    }
    keyway::dispatcher::parallel::set_num_threads(3);
    keyway::dispatcher::parallel::adopt_current_thread();
    check();
    assert_eq!(in_child(|| (0..20).fold(WORKED, |_, _| check())), WORKED);
}
