//! The allocator of our programs, mimalloc: how long it keeps what was freed.

use libmimalloc_sys::{mi_collect, mi_option_set_default, mi_option_t};

/// `mi_option_purge_delay` of mimalloc 3, which its bindings do not name.
const PURGE_DELAY: mi_option_t = 15;

/// A minute, in milliseconds.
const KEPT: i32 = 60_000;

/// What is freed stays with the program for up to a minute, instead of a second: a step takes anew what the
/// one before it has freed, and pages that the system has had in between must be cleared. To be called
/// before there are threads. It matters only where mimalloc is the allocator, and `MIMALLOC_PURGE_DELAY` of
/// the environment goes before it.
pub(crate) fn keep_freed_memory() {
    // SAFETY: it takes two numbers and no pointer. It writes what `malloc` reads, without any lock; so no
    // other thread may run yet, as `start_threads` asks of its callers.
    #[allow(unsafe_code)]
    unsafe {
        mi_option_set_default(PURGE_DELAY, KEPT.into());
    }
}

/// Gives back to the system what was freed so far: what reading a corpus took does not come again.
pub fn give_back_memory() {
    // SAFETY: it takes no pointer, may be called at any time, and touches only what was freed.
    #[allow(unsafe_code)]
    unsafe {
        mi_collect(true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "it cannot call C")]
    fn the_number_is_that_of_the_delay_before_freed_memory_goes_back() {
        let delay = || {
            // SAFETY: it takes a number and returns one.
            #[allow(unsafe_code)]
            unsafe {
                libmimalloc_sys::mi_option_get(PURGE_DELAY)
            }
        };
        assert_eq!(delay(), 1000, "what mimalloc begins with");
        keep_freed_memory();
        assert_eq!(delay(), 60_000);
    }
}
