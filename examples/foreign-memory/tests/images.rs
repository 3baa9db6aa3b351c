//! Each buffer is returned to the driver once, whatever happens to its tensors.

use foreign_memory::{PITCH, brightest, expose, grab, lent};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The tests count the buffers of one driver.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

#[test]
fn an_image_is_read_where_it_lies_and_goes_back_from_another_thread() {
    let _one = alone();
    let mut image = grab(4, 6).unwrap();
    expose(&mut image).unwrap();
    assert_eq!(brightest(&mut image).unwrap(), Some(([3, 5], 305)));
    assert_eq!((image.strides(), image.storage().unwrap().bytes()), (&[32, 1][..], 4 * PITCH));
    assert_eq!(image.storage().unwrap().allocator(), "camera");
    let column = image.narrow(1, 2, 1).unwrap();
    assert_eq!(column.to_vec::<u16>().unwrap(), [2, 102, 202, 302]);
    assert!(expose(&mut image).unwrap_err().to_string().contains("hold the tensor"));
    drop(image);
    assert_eq!(lent(), 1, "the column still shows the buffer");
    std::thread::spawn(move || drop(column)).join().unwrap();
    assert_eq!(lent(), 0);
}

#[test]
fn a_buffer_that_makes_no_image_goes_back() {
    let _one = alone();
    let error = grab(4, 33).unwrap_err().to_string();
    assert!(error.contains("within the storage's 256 bytes"), "{error}");
    assert_eq!(lent(), 0);
}
