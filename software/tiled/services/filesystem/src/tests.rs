//! The file system against a model, and with a crash at every write.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::string::{String, ToString};
use std::vec::Vec;

/// Memory that dies in the middle of a write.
#[derive(Clone, Debug)]
pub struct Memory {
    bytes: Vec<u8>,
    /// Bytes that can still be written.
    life: u64,
    /// After this many accesses, one fails; if it is a write, this many bytes are written all the same.
    fails: Option<(u32, usize)>,
}

impl Memory {
    /// Only this many more bytes are written.
    pub fn dies_after(&mut self, bytes: u64) {
        self.life = bytes;
    }

    pub fn revive(&mut self) {
        self.life = u64::MAX;
    }

    pub fn size(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// The access with this number from now on fails once; if it is a write, this many bytes are written all the
    /// same.
    pub fn fail_once(&mut self, access: u32, written: usize) {
        self.fails = Some((access, written));
    }

    /// Nothing fails any more; returns whether the access that was to fail came.
    pub fn has_failed(&mut self) -> bool {
        self.fails.take().is_none()
    }

    /// All bytes, for a look; forgets how often each was written.
    pub fn take(&mut self) -> Vec<u8> {
        self.life = u64::MAX;
        core::mem::take(&mut self.bytes)
    }

    /// How many bytes of an access that fails now are written; `None` if it does not fail.
    fn failing(&mut self) -> Option<usize> {
        let (left, written) = self.fails?;
        self.fails = left.checked_sub(1).map(|left| (left, written));
        self.fails.is_none().then_some(written)
    }

    /// Changes a byte, as another activity with access does.
    pub fn poke(&mut self, offset: u64, byte: u8) {
        self.bytes[offset as usize] = byte;
    }
}

impl Store for Memory {
    fn read(&mut self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        if self.failing().is_some() {
            return Err(Status::Transfer);
        }
        let offset = offset as usize;
        let part = self.bytes.get(offset..offset + buffer.len());
        buffer.copy_from_slice(part.ok_or(Status::Transfer)?);
        Ok(())
    }

    fn write(&mut self, offset: u64, data: &[u8]) -> Result<()> {
        let offset = offset as usize;
        let mut length = data.len().min(self.life as usize);
        if let Some(written) = self.failing() {
            length = written.min(data.len().saturating_sub(1));
        }
        self.life -= length as u64;
        let part = self.bytes.get_mut(offset..offset + length);
        part.ok_or(Status::Transfer)?
            .copy_from_slice(&data[..length]);
        if length < data.len() {
            Err(Status::Transfer)
        } else {
            Ok(())
        }
    }
}

const BLOCKS: u32 = 96;

pub fn memory(blocks: u32) -> Memory {
    Memory {
        bytes: std::vec![0xa5; blocks as usize * BLOCK],
        life: u64::MAX,
        fails: None,
    }
}

pub fn fresh() -> FileSystem<Memory> {
    FileSystem::format(memory(BLOCKS), BLOCKS, 30).expect("it fits")
}

#[derive(Clone, Debug)]
enum Step {
    Create(String, bool),
    Remove(String),
    Write(String, u64, Vec<u8>),
    Resize(String, u64),
}

/// Folders of the model have no contents.
type Model = BTreeMap<String, Option<Vec<u8>>>;

/// A path that is one.
pub fn way(text: &str) -> Path<'_> {
    Path::parse(text).expect("a path")
}

fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(parent, _)| parent)
}

/// What a step does to the model, or why it is refused.
fn expect(model: &mut Model, step: &Step) -> Result<()> {
    // The first part of the path that is no folder.
    let missing = |model: &Model, path: &str| {
        let ends = path.match_indices('/').map(|(end, _)| &path[..end]);
        let status = |folder| match model.get(folder) {
            Some(None) => None,
            Some(Some(_)) => Some(Status::NotAFolder),
            None => Some(Status::NotFound),
        };
        ends.map(status).find_map(|status| status)
    };
    match step {
        Step::Create(path, folder) => {
            if let Some(status) = missing(model, path) {
                return Err(status);
            }
            if model.contains_key(path) {
                return Err(Status::Exists);
            }
            model.insert(path.clone(), (!folder).then(Vec::new));
        }
        Step::Remove(path) => {
            if let Some(status) = missing(model, path) {
                return Err(status);
            }
            if !model.contains_key(path) {
                return Err(Status::NotFound);
            }
            if model.keys().any(|other| parent(other) == path) {
                return Err(Status::NotEmpty);
            }
            model.remove(path);
        }
        Step::Write(path, offset, bytes) => {
            if let Some(status) = missing(model, path) {
                return Err(status);
            }
            let data = model.get_mut(path).ok_or(Status::NotFound)?.as_mut();
            let data = data.ok_or(Status::IsAFolder)?;
            let end = *offset as usize + bytes.len();
            data.resize(data.len().max(end), 0);
            data[*offset as usize..end].copy_from_slice(bytes);
        }
        Step::Resize(path, size) => {
            if let Some(status) = missing(model, path) {
                return Err(status);
            }
            let data = model.get_mut(path).ok_or(Status::NotFound)?.as_mut();
            let data = data.ok_or(Status::IsAFolder)?;
            if data.len().div_ceil(BLOCK) < (*size as usize).div_ceil(BLOCK) {
                return Err(Status::BadRequest);
            }
            data.resize(*size as usize, 0);
        }
    }
    Ok(())
}

fn perform(files: &mut FileSystem<Memory>, step: &Step) -> Result<()> {
    match step {
        Step::Create(path, true) => files.create(&way(path), Kind::Folder).map(|_| ()),
        Step::Create(path, false) => files.create(&way(path), Kind::File).map(|_| ()),
        Step::Remove(path) => files.remove(&way(path), |_| Ok(())),
        Step::Write(path, offset, bytes) => {
            let inode = files.lookup(&way(path))?;
            files.write(inode, *offset, bytes)
        }
        Step::Resize(path, size) => {
            let inode = files.lookup(&way(path))?;
            files.resize(inode, *size)
        }
    }
}

/// All paths with their contents.
fn contents(files: &mut FileSystem<Memory>) -> Model {
    let mut all = Model::new();
    let mut open = std::vec![(String::new(), ROOT)];
    while let Some((path, inode)) = open.pop() {
        let mut position = 0;
        while let Some(entry) = files.entry(inode, position).expect("a folder") {
            position = entry.next;
            let name = if path.is_empty() {
                String::from(entry.name)
            } else {
                std::format!("{path}/{}", entry.name)
            };
            let stat = files.stat(entry.inode).expect("it is there");
            if stat.kind == Kind::Folder {
                open.push((name.clone(), entry.inode));
                all.insert(name, None);
            } else {
                let mut data = std::vec![0; stat.size as usize];
                assert_eq!(files.read(entry.inode, 0, &mut data), Ok(data.len()));
                all.insert(name, Some(data));
            }
        }
    }
    all
}

fn path() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => prop::sample::select(&["a", "b", "f"][..]).prop_map(|s| s.to_string()),
        2 => prop::sample::select(&["f/a", "f/b", "f/g", "a/x"][..]).prop_map(|s| s.to_string()),
        1 => prop::sample::select(&["f/g/a", "f/g/b"][..]).prop_map(|s| s.to_string()),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (path(), any::<bool>()).prop_map(|(p, folder)| Step::Create(p, folder)),
        1 => path().prop_map(Step::Remove),
        3 => (path(), 0u64..20_000, prop::collection::vec(any::<u8>(), 1..9000)).prop_map(|(p, o, b)| Step::Write(p, o, b)),
        1 => (path(), 0u64..20_000).prop_map(|(p, s)| Step::Resize(p, s)),
    ]
}

proptest! {

    #[test]
    fn as_the_model(steps in prop::collection::vec((step(), 0u32..100), 1..60)) {
        let mut files = fresh();
        let mut model = Model::new();
        for (step, ahead) in steps {
            // Time for zeros, or not.
            for _ in 0..ahead.saturating_sub(20) {
                prop_assert!(files.prepare().is_ok());
            }
            let before = model.clone();
            match (perform(&mut files, &step), expect(&mut model, &step)) {
                // The image is small; a write that fails for lack of space may have done a part of its work.
                (Err(Status::NoSpace), Ok(())) => {
                    model = before;
                    let now = contents(&mut files);
                    prop_assert_eq!(now.keys().collect::<Vec<_>>(), model.keys().collect::<Vec<_>>());
                    model = now;
                }
                (is, expected) => prop_assert_eq!(is, expected, "{:?}", step),
            }
            let summary = files.check();
            prop_assert!(summary.is_ok(), "{:?}", step);
        }
        prop_assert_eq!(contents(&mut files), model.clone());
        // Another server finds the same contents.
        let store = files.into_store();
        let bytes = store.bytes.len() as u64;
        let mut again = FileSystem::mount(store, bytes).expect("it is one");
        prop_assert_eq!(contents(&mut again), model);
    }

    /// The store dies after any number of bytes: acknowledged operations are kept, and the others happened or did
    /// not.
    #[test]
    fn crashes_lose_nothing(steps in prop::collection::vec(step(), 1..20), life in 0u64..600_000) {
        let mut files = fresh();
        files.store = {
            let mut store = files.store.into_store();
            store.life = life;
            transaction::Transactions::new(store)
        };
        let mut model = Model::new();
        let mut unsure = None;
        for step in steps {
            let before = model.clone();
            match (perform(&mut files, &step), expect(&mut model, &step)) {
                (Err(Status::Transfer), _) => {
                    unsure = Some((step, before));
                    break;
                }
                (Err(Status::NoSpace), Ok(())) => model = contents(&mut files),
                (is, expected) => prop_assert_eq!(is, expected),
            }
        }
        let mut store = files.into_store();
        store.life = u64::MAX;
        let bytes = store.bytes.len() as u64;
        let mut again = FileSystem::mount(store, bytes).expect("it is one");
        prop_assert!(again.check().is_ok());
        let now = contents(&mut again);
        match unsure {
            None => prop_assert_eq!(now, model),
            Some((Step::Write(path, ..) | Step::Resize(path, ..), before)) => {
                // A long write is several operations; whichever of them happened, only this file is affected.
                for (other, data) in &before {
                    if *other != path {
                        prop_assert_eq!(now.get(other), Some(data));
                    }
                }
                prop_assert_eq!(now.len(), before.len());
            }
            Some((_, before)) => prop_assert!(now == before || now == model),
        }
    }

    #[test]
    fn any_image_is_opened_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..64), at in 0usize..(20 * BLOCK), path in path()) {
        let mut store = fresh().into_store();
        for (offset, byte) in bytes.iter().enumerate() {
            store.bytes[at + offset] = *byte;
        }
        let size = store.bytes.len() as u64;
        if let Ok(mut files) = FileSystem::mount(store, size) {
            let _ = files.check();
            let _ = files.lookup(&way(&path));
            let _ = files.create(&way(&path), Kind::File).and_then(|inode| files.write(inode, 0, b"data"));
            let _ = files.remove(&way(&path), |_| Ok(()));
        }
    }
}

#[test]
fn fresh_blocks_are_zeros() {
    let mut files = fresh();
    let inode = files.create(&way("secret"), Kind::File).expect("room");
    files.write(inode, 0, &[7; 3 * BLOCK]).expect("room");
    files
        .remove(&way("secret"), |_| Ok(()))
        .expect("it is there");
    let inode = files.create(&way("other"), Kind::File).expect("room");
    assert_eq!(files.grow(inode, 3), Ok(3));
    let extent = files.extent(inode, 0).expect("three blocks");
    assert_eq!(extent.length, 3);
    let mut store = files.into_store();
    let mut data = [1; 3 * BLOCK];
    store
        .read(u64::from(extent.start) * BLOCK as u64, &mut data)
        .expect("inside");
    assert!(data.iter().all(|&byte| byte == 0));
}

#[test]
fn zeros_are_written_ahead_of_time_and_only_once() {
    let mut files = fresh();
    let inode = files.create(&way("a"), Kind::File).expect("room");
    while files.prepare().expect("the store works") {}
    assert_eq!(files.reserve.clean().length, RESERVE);
    // The log and its changes: parts of two blocks, each written twice, and two heads. None of it is zeroing.
    files.store = {
        let mut store = files.store.into_store();
        store.life = 1024;
        transaction::Transactions::new(store)
    };
    assert_eq!(files.grow(inode, 16), Ok(16));
    let extent = files.extent(inode, 0).expect("sixteen blocks");
    assert_eq!(files.reserve.clean().start, extent.end());
    let mut store = files.into_store();
    let mut data = std::vec![1; 16 * BLOCK];
    store
        .read(u64::from(extent.start) * BLOCK as u64, &mut data)
        .expect("inside");
    assert!(data.iter().all(|&byte| byte == 0));
}

#[test]
fn a_file_that_grows_alone_is_one_extent() {
    let mut files = fresh();
    let inode = files.create(&way("a"), Kind::File).expect("room");
    for blocks in [1, 17, 33, 49] {
        assert_eq!(files.grow(inode, blocks), Ok(blocks));
    }
    assert_eq!(files.stat(inode).map(|s| (s.extents, s.size)), Ok((1, 0)));
}

#[test]
fn names_and_paths() {
    let mut files = fresh();
    assert_eq!(files.create(&way("/"), Kind::File), Err(Status::Exists));
    let folder = files.create(&way("/dir/"), Kind::Folder).expect("room");
    let inode = files
        .create(&way("//dir/./file"), Kind::File)
        .expect("room");
    assert_eq!(files.lookup(&way("dir/file/")), Ok(inode));
    assert_eq!(files.lookup(&way("/dir")), Ok(folder));
    assert_eq!(files.lookup(&way("dir/file/x")), Err(Status::NotAFolder));
    assert_eq!(files.lookup(&way("a/b/c/d/e/f/g/h")), Err(Status::NotFound));
    assert_eq!(files.remove(&way("/"), |_| Ok(())), Err(Status::NoRights));
    assert_eq!(files.remove(&way("dir"), |_| Ok(())), Err(Status::NotEmpty));
    assert_eq!(files.remove(&way("dir/file"), |_| Ok(())), Ok(()));
    assert_eq!(files.remove(&way("dir"), |_| Ok(())), Ok(()));
    assert_eq!(files.check().map(|s| (s.files, s.folders)), Ok((0, 1)));
}

#[test]
fn a_full_image_says_so_and_gives_everything_back() {
    let mut files = fresh();
    let before = files.check();
    let mut made = 0;
    loop {
        let name = std::format!("file-{made}");
        match files.create(&way(&name), Kind::File) {
            Ok(_) => made += 1,
            Err(status) => break assert_eq!(status, Status::NoSpace),
        }
    }
    assert_eq!(made, 30);
    let inode = files.lookup(&way("file-0")).expect("made");
    let mut blocks = 0;
    while let Ok(now) = files.grow(inode, blocks + 1) {
        blocks = now;
    }
    assert_eq!(files.check().map(|s| s.free), Ok(0));
    for index in 0..made {
        assert_eq!(
            files.remove(&way(&std::format!("file-{index}")), |_| Ok(())),
            Ok(())
        );
    }
    let after = files.check();
    // The root folder keeps its block.
    assert_eq!(after.map(|s| s.free + 1), before.map(|s| s.free));
}
