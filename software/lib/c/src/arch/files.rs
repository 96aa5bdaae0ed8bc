//! Files: paths in a tree of names, provided by one or several services.
//!
//! Why it exists: C has no ownership, so no file is open between two calls. What it deliberately does not know: where files are
//! stored.

use super::{bytes, bytes_mut, fill_text, not_given, text, with};
use crate::tables::{NOTHING, status};
use bulkhead_lib::file::{CREATE, Mount, READ, WRITE};
use bulkhead_lib::gate::SendGate;
use bulkhead_lib::mounts::Mounts;
use core::ffi::{c_char, c_int, c_void};

functions! {
    fn bh_mount(name: *const c_char) -> c_int {
        with(|tables| {
            // SAFETY: see the head of the parent module.
            let name = unsafe { text(name) }?;
            SendGate::find(name)
                .ok_or_else(|| not_given(format_args!("<sgate name=\"{name}\">")))?;
            let mut tree = Mounts::new();
            let mount = Mount::connect(name).map_err(status)?;
            tree.add("/", mount).map_err(status)?;
            tables.mounts.put(tree)
        })
    }

    fn bh_mounts() -> c_int {
        with(|tables| tables.mounts.put(Mounts::from_environment().map_err(status)?))
    }

    fn bh_file_size(mount: c_int, path: *const c_char) -> i64 {
        let mut size = 0;
        let done = with(|tables| {
            // SAFETY: see the head of the parent module.
            let path = unsafe { text(path) }?;
            size = tables.mounts.get_mut(mount)?.stat(path).map_err(status)?.size;
            Ok(0)
        });
        match done {
            0 => i64::try_from(size).unwrap_or(i64::MAX),
            error => error.into(),
        }
    }

    fn bh_file_read(mount: c_int, path: *const c_char, offset: u64, target: *mut c_void, length: usize) -> c_int {
        with(|tables| {
            // SAFETY: see the head of the parent module.
            let (path, target) = unsafe { (text(path)?, bytes_mut(target, length)?) };
            let mut file = tables.mounts.get_mut(mount)?.open(path, READ).map_err(status)?;
            file.seek(offset);
            let count = file.read(target).map_err(status)?;
            file.close().map_err(status)?;
            Ok(count as i32)
        })
    }

    fn bh_file_write(mount: c_int, path: *const c_char, offset: u64, data: *const c_void, length: usize) -> c_int {
        with(|tables| {
            // SAFETY: see the head of the parent module.
            let (path, data) = unsafe { (text(path)?, bytes(data, length)?) };
            let mut file = tables.mounts.get_mut(mount)?.open(path, WRITE | CREATE).map_err(status)?;
            file.seek(offset);
            file.write(data).map_err(status)?;
            file.close().map_err(status)?;
            Ok(0)
        })
    }

    fn bh_file_remove(mount: c_int, path: *const c_char) -> c_int {
        with(|tables| {
            // SAFETY: see the head of the parent module.
            let path = unsafe { text(path) }?;
            tables.mounts.get_mut(mount)?.remove(path).map_err(status)?;
            Ok(0)
        })
    }

    fn bh_folder(mount: c_int, path: *const c_char) -> c_int {
        with(|tables| {
            // SAFETY: see the head of the parent module.
            let path = unsafe { text(path) }?;
            tables.mounts.get_mut(mount)?.make_folder(path).map_err(status)?;
            Ok(0)
        })
    }

    fn bh_entry(mount: c_int, path: *const c_char, index: usize, name: *mut c_char, size: usize) -> c_int {
        with(|tables| {
            // SAFETY: see the head of the parent module.
            let (path, target) = unsafe { (text(path)?, bytes_mut(name.cast(), size)?) };
            let (mut at, mut found) = (0, None);
            let tree = tables.mounts.get_mut(mount)?;
            let listed = tree.list(path, |entry| {
                if at == index {
                    found = Some(entry.name);
                }
                at += 1;
            });
            listed.map_err(status)?;
            fill_text(target, &found.ok_or(NOTHING)?)
        })
    }
}
