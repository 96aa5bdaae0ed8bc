//! A global allocator over one region.
//!
//! Why it exists: `GlobalAlloc` is an unsafe trait; the algorithm is that of the crate `rlsf`, whose time does not depend on the
//! number of gaps. What it deliberately does not know: where the region comes from. It serves one hart without preemption of itself.

use core::alloc::{GlobalAlloc, Layout};
use core::cell::UnsafeCell;
use core::ptr::NonNull;
use rlsf::Tlsf;

/// Lists of gaps by size (two-level segregated fit): blocks up to 1 GiB, sixteen lists for each power of two.
type Lists = Tlsf<'static, u32, u16, 25, 16>;

/// An allocator in which the cost of an allocation does not depend on what others did; a `static` with `#[global_allocator]`.
pub struct SteadyHeap(UnsafeCell<Lists>);

// SAFETY: used by one hart, and neither interrupt handlers nor other harts allocate from it.
unsafe impl Sync for SteadyHeap {}

impl SteadyHeap {
    /// A heap without memory: every allocation fails until `give`.
    pub const fn empty() -> Self {
        Self(UnsafeCell::new(Tlsf::new()))
    }

    /// Gives the heap its region, once.
    ///
    /// # Safety
    /// The region must be memory that nothing else ever uses.
    pub unsafe fn give(&self, start: u64, size: u64) {
        let Some(start) = NonNull::new(start as *mut u8) else {
            return;
        };
        let region = NonNull::slice_from_raw_parts(start, size as usize);
        // SAFETY: the caller promises the region; nobody else borrows the heap now (one hart, no reentry).
        unsafe { (*self.0.get()).insert_free_block_ptr(region) };
    }
}

// SAFETY: the inner heap hands out disjoint blocks of its region, and is never borrowed twice (one hart, no reentry).
unsafe impl GlobalAlloc for SteadyHeap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: see the impl.
        let heap = unsafe { &mut *self.0.get() };
        let block = heap.allocate(layout);
        block.map_or(core::ptr::null_mut(), NonNull::as_ptr)
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        if let Some(block) = NonNull::new(pointer) {
            // SAFETY: the caller gives back a block of this heap with its alignment.
            unsafe { (*self.0.get()).deallocate(block, layout.align()) };
        }
    }
}
