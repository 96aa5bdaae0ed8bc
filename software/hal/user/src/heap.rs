//! A program's global allocator over one region.
//!
//! Why it exists: `GlobalAlloc` is an unsafe trait; the algorithm is that of the crate `linked_list_allocator`, which is small. What it
//! deliberately does not know: where the region comes from. It serves one hart without preemption of itself.

use core::alloc::{GlobalAlloc, Layout};
use core::cell::{Cell, UnsafeCell};
use core::ptr::NonNull;
use linked_list_allocator::Heap;

/// The allocator; a `static` with `#[global_allocator]`.
pub struct LocalHeap {
    heap: UnsafeCell<Heap>,
    exhausted: Cell<bool>,
}

// SAFETY: used by one hart, and neither interrupt handlers nor other harts allocate from it.
unsafe impl Sync for LocalHeap {}

impl LocalHeap {
    /// A heap without memory: every allocation fails until `give`.
    pub const fn empty() -> Self {
        Self {
            heap: UnsafeCell::new(Heap::empty()),
            exhausted: Cell::new(false),
        }
    }

    /// Gives the heap its region, once.
    ///
    /// # Safety
    /// The region must be memory that nothing else ever uses.
    pub unsafe fn give(&self, start: u64, size: u64) {
        // SAFETY: the caller promises the region; nobody else borrows the heap now (one hart, no reentry).
        unsafe { (*self.heap.get()).init(start as *mut u8, size as usize) };
    }

    /// Whether an allocation has failed.
    pub fn is_exhausted(&self) -> bool {
        self.exhausted.get()
    }
}

// SAFETY: the inner heap hands out disjoint blocks of its region, and is never borrowed twice (one hart, no reentry).
unsafe impl GlobalAlloc for LocalHeap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: see the impl.
        let heap = unsafe { &mut *self.heap.get() };
        match heap.allocate_first_fit(layout) {
            Ok(block) => block.as_ptr(),
            Err(()) => {
                self.exhausted.set(true);
                core::ptr::null_mut()
            }
        }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        if let Some(block) = NonNull::new(pointer) {
            // SAFETY: the caller gives back a block of this heap with its layout.
            unsafe { (*self.heap.get()).deallocate(block, layout) };
        }
    }
}
