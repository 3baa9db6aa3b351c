//! The ways in which the plugin ends, hangs or misleads a process.

use keyway_sdk::author::Error;
use std::io::Write;
use std::time::Duration;

/// Performs one of the acts; those that a process survives return.
pub(crate) fn act(what: &str) -> Result<(), Error> {
    match what {
        "abort" => std::process::abort(),
        "exit0" => std::process::exit(0),
        "exit1" => std::process::exit(1),
        "exit42" => std::process::exit(42),
        // SAFETY: ends the process; nothing runs afterwards.
        "quit0" => unsafe { libc::_exit(0) },
        "hang" => loop {
            std::thread::sleep(Duration::from_secs(1));
        },
        "spin" => loop {
            std::hint::spin_loop();
        },
        "overflow" => drop(deep(1)),
        "illegal" => raise(libc::SIGILL),
        "bus" => raise(libc::SIGBUS),
        "float" => raise(libc::SIGFPE),
        "trap" => raise(libc::SIGTRAP),
        "kill" => raise(libc::SIGKILL),
        "terminate" => raise(libc::SIGTERM),
        "hangup" => raise(libc::SIGHUP),
        "segfault" => {
            let nowhere = std::hint::black_box(std::ptr::without_provenance_mut::<u32>(8));
            // SAFETY: none: a test asked for a write to memory that is not there.
            unsafe { nowhere.write_volatile(1) };
        }
        "panic" => panic!("told to panic"),
        "panic_twice" => {
            let _second = PanicsAtDrop;
            panic!("told to panic");
        }
        "error" => return Err(Error::Failed { detail: "told to fail".to_string() }),
        "escape" => return Err(Error::Failed { detail: "red \u{1b}[31m and \u{9b}2J\rgone".to_string() }),
        // Well-behaved in the probe, but not in the program.
        "two_faced" => match std::env::current_exe() {
            Ok(program) if program.ends_with("keyway-probe") => {
                return Err(Error::Failed { detail: "told to fail".to_string() });
            }
            _ => std::process::abort(),
        },
        // As a kernel that is run later would, which a trial does not call.
        "exit_in_use" => match std::env::current_exe() {
            Ok(program) if program.ends_with("keyway-probe") => {}
            _ => std::process::exit(0),
        },
        "quit0_in_use" => match std::env::current_exe() {
            Ok(program) if program.ends_with("keyway-probe") => {}
            // SAFETY: ends the process; nothing runs afterwards.
            _ => unsafe { libc::_exit(0) },
        },
        "abort_in_use" => match std::env::current_exe() {
            Ok(program) if program.ends_with("keyway-probe") => {}
            _ => std::process::abort(),
        },
        // A driver that is slow, and sound.
        "slow" => std::thread::sleep(Duration::from_secs(4)),
        // SAFETY: the call takes no pointers. Both sides go on.
        "fork" => unsafe {
            let _ = libc::fork();
        },
        // A helper that outlives the program.
        // SAFETY: the calls take no pointers; the child only sleeps and ends.
        "helper" => unsafe {
            if libc::fork() == 0 {
                libc::sleep(20);
                libc::_exit(0);
            }
        },
        // SAFETY: the calls take no pointers; no copy is closed.
        "files" => unsafe { while libc::dup(2) >= 0 {} },
        "few_files" => {
            let few = libc::rlimit { rlim_cur: 3, rlim_max: 3 };
            // SAFETY: the structure lives until the call returns.
            unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &few) };
        }
        // SAFETY: the calls take no pointers.
        "parent" => unsafe {
            let _ = libc::kill(libc::getppid(), libc::SIGKILL);
        },
        "file_size" => {
            let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
            // SAFETY: the structure lives until the call returns.
            unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &none) };
        }
        // SAFETY: the call takes no pointers.
        "umask" => unsafe {
            let _ = libc::umask(0o777);
        },
        "folder" => drop(std::env::set_current_dir("/")),
        // SAFETY: none: a test asked for another's descriptor to be closed.
        "close" => unsafe {
            let _ = libc::close(0);
        },
        // SAFETY: the handler takes the signal's number and accesses nothing, and the library is never unloaded. It differs
        // from the default action, and from the one that a shell sets for background jobs.
        "interrupt" => unsafe {
            extern "C" fn nothing(_: libc::c_int) {}
            let _ = libc::signal(libc::SIGINT, nothing as extern "C" fn(libc::c_int) as libc::sighandler_t);
        },
        "mask" => {
            // SAFETY: zeros are a set, and it lives until the calls return.
            unsafe {
                let mut set: libc::sigset_t = std::mem::zeroed();
                libc::sigaddset(&mut set, libc::SIGTERM);
                libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut());
            }
        }
        // SAFETY: the string ends with a zero byte. Every system has this locale, and no program begins with it.
        "locale" => unsafe {
            let _ = libc::setlocale(libc::LC_ALL, c"C.UTF-8".as_ptr());
        },
        "timer" => {
            let second = libc::timeval { tv_sec: 5, tv_usec: 0 };
            let timer = libc::itimerval { it_interval: second, it_value: second };
            // SAFETY: the structure lives until the call returns.
            unsafe { libc::setitimer(libc::ITIMER_REAL, &timer, std::ptr::null_mut()) };
        }
        #[cfg(target_os = "linux")]
        "posix_timer" => {
            // SAFETY: the structures live until the calls return; zeros are a value of each.
            unsafe {
                let mut timer: libc::timer_t = std::mem::zeroed();
                libc::timer_create(libc::CLOCK_MONOTONIC, std::ptr::null_mut(), &mut timer);
                let mut when: libc::itimerspec = std::mem::zeroed();
                when.it_value.tv_sec = 5;
                libc::timer_settime(timer, 0, &when, std::ptr::null_mut());
            }
        }
        // SAFETY: the call takes no pointers.
        "nice" => unsafe {
            let _ = libc::nice(3);
        },
        // SAFETY: the strings end with a zero byte; no other thread of the process reads the environment while it is loaded.
        "preload" => unsafe {
            let _ = libc::setenv(c"LD_PRELOAD".as_ptr(), c"".as_ptr(), 1);
        },
        // SAFETY: as above.
        "path" => unsafe {
            let _ = libc::unsetenv(c"PATH".as_ptr());
        },
        #[cfg(target_arch = "x86_64")]
        "fast_math" => {
            let mut control = 0_u32;
            // SAFETY: the instructions read and write one word of this frame. What gcc's -ffast-math does at load.
            unsafe {
                std::arch::asm!("stmxcsr [{}]", in(reg) &mut control, options(nostack));
                control |= 0x8040;
                std::arch::asm!("ldmxcsr [{}]", in(reg) &control, options(nostack));
            }
        }
        "exec" => {
            // SAFETY: both strings end with a zero byte, and the list ends with a null pointer.
            unsafe { libc::execl(c"/bin/true".as_ptr(), c"true".as_ptr(), std::ptr::null::<libc::c_char>()) };
        }
        "print" => {
            println!("{{\"printed\": \"by a plugin\"}}");
            // SAFETY: the pointer is valid for this number of bytes.
            unsafe { libc::write(1, b"raw\n".as_ptr().cast(), 4) };
        }
        "flood" => {
            let line = [b'x'; 4096];
            for _ in 0..2000 {
                // Output that is lost is not needed.
                let _ = std::io::stderr().write_all(&line);
            }
        }
        "fake" => {
            // A plugin's output is not mistaken for the report.
            println!("\u{1}keyway-probe ended");
            std::process::exit(0);
        }
        _ => {}
    }
    Ok(())
}

fn raise(signal: i32) {
    // SAFETY: both calls take no pointers: the signal gets its default action.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
}

/// Uses the stack up.
#[allow(unconditional_recursion, reason = "a test asked for it")]
fn deep(depth: u64) -> u64 {
    let here = std::hint::black_box([depth; 64]);
    deep(here[0] + 1) + here[63]
}

struct PanicsAtDrop;

impl Drop for PanicsAtDrop {
    fn drop(&mut self) {
        panic!("told to panic again");
    }
}
