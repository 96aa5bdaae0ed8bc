//! Random requests of several clients, checked against a model without blocks, extents and inodes: maps of bytes.
//!
//! Names come from an alphabet of tricky cases: dots, empty parts, control characters, two-byte letters, names and paths that are
//! too long. Power fails at any byte written, the service mounts the image again, and the model does not change. More cases:
//! `./bulkhead test --fuzz`.

use crate::tests::{Memory, fresh};
use crate::tests_serve::{Access, owner, patiently};
use crate::tests_steps::{OWNERS, Step, padded, step};
use crate::*;
use bulkhead_common::file::{self, CREATE, Piece, READ, TRUNCATE, WRITE};
use bulkhead_common::shares::Shares;
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;
use std::collections::{BTreeMap, BTreeSet};
use std::string::String;
use std::vec::Vec;

type Service = Files<Memory, Access>;
type Names = Vec<String>;

/// A file of the model: its contents, including blocks granted after its end, and its size.
#[derive(Clone, Debug, Default, PartialEq)]
struct Content {
    bytes: Vec<u8>,
    size: usize,
}

#[derive(Clone, Debug, PartialEq)]
struct Opened {
    path: Names,
    flags: u64,
    label: u64,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Model {
    /// Files, and folders without contents.
    tree: BTreeMap<Names, Option<Content>>,
    sessions: BTreeMap<u16, u32>,
    open: BTreeMap<(u16, u64), Opened>,
    /// Files that clients whose sessions are over had open and that the service has not closed yet.
    left: Vec<Names>,
    /// Pieces by their numbers.
    lent: BTreeMap<u16, Lent>,
}

/// A piece: its file, the handle for which it was given (until its session is over), and its account.
#[derive(Clone, Debug, PartialEq)]
struct Lent {
    path: Names,
    handle: Option<(u16, u64)>,
    label: u64,
}

/// Parses a path a second time, by other means of Rust.
fn names(bytes: &[u8]) -> Result<Names> {
    let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
    let text = String::from_utf8(bytes[..end].to_vec()).map_err(|_| Status::BadRequest)?;
    let mut names = Names::new();
    for part in text.split('/') {
        if part.is_empty() || part == "." {
            continue;
        }
        if part == ".." || part.len() > 56 || part.contains(char::is_control) {
            return Err(Status::BadRequest);
        }
        names.push(part.into());
    }
    if names.len() > 8 {
        return Err(Status::BadRequest);
    }
    Ok(names)
}

impl Model {
    /// Checks that all folders on the way to a path exist.
    fn way(&self, path: &[String]) -> Result<()> {
        for end in 1..path.len() {
            match self.tree.get(&path[..end]) {
                None => return Err(Status::NotFound),
                Some(Some(_)) => return Err(Status::NotAFolder),
                Some(None) => {}
            }
        }
        Ok(())
    }

    fn get(&self, path: &[String]) -> Result<Option<&Content>> {
        self.way(path)?;
        match path {
            [] => Ok(None),
            path => Ok(self.tree.get(path).ok_or(Status::NotFound)?.as_ref()),
        }
    }

    fn content(&mut self, path: &[String]) -> &mut Content {
        let found = self.tree.get_mut(path).expect("it is open");
        found.as_mut().expect("a file")
    }

    fn is_used(&self, path: &[String]) -> bool {
        let is_open = self.open.values().any(|o| o.path == path);
        is_open || self.left.iter().any(|p| p == path) || self.lent.values().any(|l| l.path == path)
    }

    /// Drops the blocks after the end when nobody uses the file.
    fn trim(&mut self, path: &[String]) {
        if !self.is_used(path)
            && let Some(Some(content)) = self.tree.get_mut(path)
        {
            let blocks = content.size.div_ceil(BLOCK) * BLOCK;
            content.bytes.truncate(blocks);
        }
    }

    fn trim_all(&mut self) {
        let all: Vec<Names> = self.tree.keys().cloned().collect();
        all.iter().for_each(|path| self.trim(path));
    }

    fn make(&mut self, path: &[String], content: Option<Content>) -> Result<()> {
        self.way(path)?;
        if path.is_empty() || self.tree.contains_key(path) {
            return Err(Status::Exists);
        }
        self.tree.insert(path.to_vec(), content);
        Ok(())
    }

    /// Whether a handle can get no piece because handles with open sessions have them all.
    fn is_full(&self, handle: (u16, u64), label: u64) -> bool {
        let lent = || self.lent.values().filter(|lent| lent.handle.is_some());
        let count = |label: u64| lent().filter(|lent| lent.label == label).count();
        let beyond: usize = (0..4).map(|label| count(label).saturating_sub(1)).sum();
        let has_none = !lent().any(|lent| lent.handle == Some(handle));
        has_none && count(label) >= 1 && beyond >= 5
    }

    fn find(&self, (label, activity): (u64, u16), number: u64, flag: u64) -> Result<Names> {
        let mine = self.open.get(&(activity, number));
        let mine = mine.filter(|o| o.label == label);
        let open = mine.ok_or(Status::InvalidHandle)?;
        match open.flags & flag == flag {
            true => Ok(open.path.clone()),
            false => Err(Status::NoRights),
        }
    }
}

/// The service, its store, and the model of both.
struct World {
    files: Service,
    model: Model,
    is_stuck: bool,
}

fn serve(system: FileSystem<Memory>) -> Service {
    Files::new(
        system,
        Access::default(),
        Shares::new(2, 6),
        Shares::new(1, 5),
    )
}

/// What a client would see of the model.
fn expected(model: &Model) -> BTreeMap<Names, Option<Vec<u8>>> {
    let seen = |content: &Content| {
        let mut bytes = content.bytes.clone();
        bytes.resize(content.size, 0);
        bytes
    };
    let all = model.tree.iter();
    all.map(|(path, content)| (path.clone(), content.as_ref().map(seen)))
        .collect()
}

impl World {
    fn new() -> Self {
        let (files, model, is_stuck) = (serve(fresh()), Model::default(), false);
        Self {
            files,
            model,
            is_stuck,
        }
    }

    fn store(&mut self) -> &mut Memory {
        self.files.system.store.inner()
    }

    /// What a client sees of the store.
    fn stored(&mut self) -> BTreeMap<Names, Option<Vec<u8>>> {
        let mut all = BTreeMap::new();
        let mut folders = std::vec![(Names::new(), ROOT)];
        let system = &mut self.files.system;
        while let Some((path, inode)) = folders.pop() {
            let mut position = 0;
            while let Some(entry) = system.entry(inode, position).expect("a folder") {
                position = entry.next;
                let mut name = path.clone();
                name.push(entry.name.into());
                let stat = system.stat(entry.inode).expect("it is there");
                if stat.kind == Kind::Folder {
                    folders.push((name.clone(), entry.inode));
                    all.insert(name, None);
                } else {
                    let mut data = std::vec![0; stat.size as usize];
                    assert_eq!(system.read(entry.inode, 0, &mut data), Ok(data.len()));
                    all.insert(name, Some(data));
                }
            }
        }
        all
    }

    fn expected(&self) -> BTreeMap<Names, Option<Vec<u8>>> {
        expected(&self.model)
    }

    /// Every piece that anybody can reach is in the blocks of the file for which it was given, and each block is used once.
    fn check(&mut self) {
        let lent = self.files.access().lent.clone();
        let numbers: BTreeSet<u16> = lent.iter().map(|(number, _)| *number).collect();
        let known: BTreeSet<u16> = self.model.lent.keys().copied().collect();
        assert_eq!(numbers, known);
        self.files.system.check().expect("consistent");
        for (number, grant) in lent {
            let path = self.model.lent[&number].path.join("/");
            let path = Path::parse(&path).expect("it was one");
            let inode = self.files.system.lookup(&path).expect("it is used");
            let first = grant.offset / BLOCK as u64;
            for block in 0..grant.length / BLOCK as u64 {
                let extent = self.files.system.extent(inode, (first + block) as u32);
                let start = u64::from(extent.expect("granted").start);
                assert_eq!(start * BLOCK as u64, grant.store + block * BLOCK as u64);
            }
        }
    }

    /// The server is gone with everything that it kept for clients; another one mounts the store.
    fn restart(&mut self) {
        let fresh = World::new().files;
        let old = core::mem::replace(&mut self.files, fresh);
        let mut store = old.system.into_store();
        store.revive();
        let bytes = store.size();
        self.files = serve(FileSystem::mount(store, bytes).expect("it is one"));
        self.is_stuck = false;
        self.model.sessions.clear();
        self.model.open.clear();
        self.model.left.clear();
        self.model.lent.clear();
    }

    /// Follows the service: pieces that were taken back, and files that were closed because no activity with a session has them
    /// open.
    fn follow(&mut self) {
        let lent = self.files.pieces_now();
        self.model.lent.retain(|number, _| lent.contains(number));
        let mut left = self.files.left_now();
        let system = &mut self.files.system;
        self.model.left.retain(|names| {
            let path = names.join("/");
            let inode = system.lookup(&Path::parse(&path).expect("it was one"));
            let at = left.iter().position(|left| Ok(*left) == inode);
            at.map(|at| left.swap_remove(at)).is_some()
        });
        self.model.trim_all();
    }

    /// Does a step; false: power failed.
    fn perform(&mut self, step: &Step) -> bool {
        let before = self.model.clone();
        let (is, expected) = self.both(step);
        self.follow();
        if is == Err(Status::Transfer) {
            self.crash(step, before);
            return false;
        }
        if is == Err(Status::NoSpace) && expected.is_ok() {
            self.no_space(step, before);
        } else {
            assert_eq!(is, expected, "{step:?}");
        }
        self.model.trim_all();
        true
    }

    /// The image is small, and the model does not know how its blocks are arranged: only this file's bytes may have changed.
    fn no_space(&mut self, step: &Step, before: Model) {
        let Model { lent, left, .. } = core::mem::take(&mut self.model);
        self.model = Model {
            lent,
            left,
            ..before
        };
        let concerned = match step {
            Step::Write(who, number, ..) => self.model.find(OWNERS[*who], *number, WRITE).ok(),
            _ => None,
        };
        self.adopt(concerned);
    }

    /// After a crash, acknowledged steps are kept, and the last step happened or did not.
    fn crash(&mut self, step: &Step, before: Model) {
        let concerned = match step {
            Step::Write(who, number, ..) => before.find(OWNERS[*who], *number, WRITE).ok(),
            Step::Open(_, path, flags) if flags & TRUNCATE != 0 => names(path).ok(),
            _ => None,
        };
        let after = core::mem::replace(&mut self.model, before);
        self.restart();
        self.files.system.check().expect("consistent");
        let (mut now, mut old) = (self.stored(), self.expected());
        let mut new = expected(&after);
        for state in [&mut now, &mut old, &mut new] {
            // A long write is several operations; only this file is affected.
            concerned.iter().for_each(|path| drop(state.remove(path)));
        }
        if now != old {
            assert_eq!(now, new, "{step:?}");
            self.model.tree = after.tree;
        }
        self.adopt(concerned);
        self.model.trim_all();
    }

    /// Takes one file over from the store.
    fn adopt(&mut self, path: Option<Names>) {
        let Some(path) = path else { return };
        if let Some(Some(bytes)) = self.stored().remove(&path) {
            // A file that was to be made and emptied may only have been made.
            let made = self.model.tree.entry(path);
            let content = made.or_insert_with(|| Some(Content::default()));
            let content = content.as_mut().expect("a file");
            content.size = bytes.len();
            let behind = content
                .bytes
                .split_off(bytes.len().min(content.bytes.len()));
            content.bytes = bytes;
            content.bytes.extend(behind);
        }
    }

    /// The service's answer, and the model's; numbers stand for answers.
    fn both(&mut self, step: &Step) -> (Result<u64>, Result<u64>) {
        let (files, model) = (&mut self.files, &mut self.model);
        let who = |index: usize| owner(OWNERS[index].0, OWNERS[index].1);
        match step {
            Step::Begin(activity) => {
                files.begin(*activity);
                *model.sessions.entry(*activity).or_default() += 1;
                (Ok(0), Ok(0))
            }
            Step::End(activity) => {
                files.end(*activity);
                if let Some(count) = model.sessions.get_mut(activity) {
                    *count -= 1;
                    if *count == 0 {
                        model.sessions.remove(activity);
                        let gone = model.open.extract_if(.., |(of, _), _| of == activity);
                        model.left.extend(gone.map(|(_, open)| open.path));
                        for lent in model.lent.values_mut() {
                            lent.handle.take_if(|(of, _)| of == activity);
                        }
                    }
                }
                (Ok(0), Ok(0))
            }
            Step::Clean => {
                let before = files.access().lent.len();
                files.clean(None);
                assert!(files.access().lent.len() + 1 >= before, "one at a time");
                (Ok(0), Ok(0))
            }
            Step::Stuck(is_stuck) => {
                files.access().is_stuck = *is_stuck;
                self.is_stuck = *is_stuck;
                (Ok(0), Ok(0))
            }
            Step::Power(life) => {
                self.store().dies_after(*life);
                (Ok(0), Ok(0))
            }
            Step::Open(index, bytes, flags) => {
                let Some(path) = padded(bytes) else {
                    return (Ok(0), Ok(0));
                };
                let flags = *flags;
                let request = file::Open { flags, path };
                let is = patiently(files, |files| files.open(who(*index), &request));
                self.follow();
                let expected = self.open(*index, bytes, flags);
                let expected = expected.map(|size| (is.map_or(0, |o| o.handle), size));
                if let (Ok(opened), Ok(_)) = (is, &expected) {
                    let (label, activity) = OWNERS[*index];
                    let path = names(bytes).expect("a path");
                    let open = Opened { path, flags, label };
                    let old = self.model.open.insert((activity, opened.handle), open);
                    assert_eq!(old, None, "a handle is given twice");
                }
                (is.map(|o| o.size), expected.map(|(_, size)| size))
            }
            Step::Close(index, number) => {
                let is = files.close(who(*index), *number);
                let (label, activity) = OWNERS[*index];
                let mut expected = model.find((label, activity), *number, 0).map(|_| 0);
                if expected.is_ok() && is == Err(Status::Busy) && self.is_stuck {
                    expected = Err(Status::Busy);
                } else if expected.is_ok() {
                    model.open.remove(&(activity, *number));
                }
                (is, expected)
            }
            Step::Stat(bytes) => {
                let Some(path) = padded(bytes) else {
                    return (Ok(0), Ok(0));
                };
                let is = files
                    .stat(&file::Stat { path })
                    .map(|info| info.size << 2 | info.kind);
                let expected = names(bytes).and_then(|names| {
                    let folder = model
                        .tree
                        .keys()
                        .any(|k| k.len() == names.len() + 1 && k.starts_with(&names));
                    let content = model.get(&names)?;
                    Ok(match content {
                        Some(content) => (content.size as u64) << 2 | file::FILE,
                        // The model does not know the size of a folder, only whether it holds something.
                        None if folder => is.unwrap_or(0).max(BLOCK as u64),
                        None => is.unwrap_or(0) | file::FOLDER,
                    })
                });
                (is, expected)
            }
            Step::List(bytes, position) => {
                let Some(path) = padded(bytes) else {
                    return (Ok(0), Ok(0));
                };
                let is = files.list(&file::List {
                    position: *position,
                    path,
                });
                let expected = names(bytes).and_then(|names| match model.get(&names)? {
                    Some(_) if *position > u32::MAX.into() => Err(Status::BadRequest),
                    Some(_) => Err(Status::NotAFolder),
                    None if *position > u32::MAX.into() => Err(Status::BadRequest),
                    None => {
                        let mut inside = model
                            .tree
                            .keys()
                            .filter(|k| k.len() == names.len() + 1 && k.starts_with(&names));
                        match &is {
                            Ok(listed) => {
                                let name = bulkhead_common::message::text(&listed.name)?;
                                assert!(inside.any(|k| k.last().is_some_and(|n| n == name)));
                                Ok(0)
                            }
                            // The first position has an entry if the folder has any.
                            Err(_) if *position == 0 && inside.next().is_some() => Ok(0),
                            Err(_) => Err(Status::NotFound),
                        }
                    }
                });
                (is.map(|_| 0), expected)
            }
            Step::MakeFolder(bytes) => {
                let Some(path) = padded(bytes) else {
                    return (Ok(0), Ok(0));
                };
                let request = file::MakeFolder { path };
                let is = patiently(files, |files| files.make_folder(owner(0, 1), &request));
                self.follow();
                let made = names(bytes).and_then(|names| self.model.make(&names, None));
                (is, made.map(|()| 0))
            }
            Step::Remove(bytes) => {
                let Some(path) = padded(bytes) else {
                    return (Ok(0), Ok(0));
                };
                let request = file::Remove { path };
                let is = patiently(files, |files| files.remove(&request));
                // The pieces taken back first may have been in the way.
                self.follow();
                (is, names(bytes).and_then(|names| self.remove(&names)))
            }
            Step::Commit(index, handle, size) => {
                let request = file::Commit {
                    handle: *handle,
                    size: *size,
                };
                let is = files.commit(who(*index), &request);
                let expected = model.find(OWNERS[*index], *handle, WRITE).and_then(|path| {
                    let content = model.content(&path);
                    let fits =
                        size.div_ceil(BLOCK as u64) <= (content.bytes.len().div_ceil(BLOCK)) as u64;
                    match *size >= content.size as u64 && fits {
                        true => content.size = *size as usize,
                        false => return Err(Status::BadRequest),
                    }
                    Ok(*size)
                });
                (is, expected)
            }
            Step::Read(index, handle, offset, length) => {
                let request = file::Read {
                    handle: *handle,
                    offset: *offset,
                    length: *length,
                };
                let is = files.read(who(*index), &request);
                let expected = model.find(OWNERS[*index], *handle, READ).and_then(|path| {
                    if *length > file::INLINE as u64 {
                        return Err(Status::BadRequest);
                    }
                    let content = model.content(&path);
                    let start = (*offset).min(content.size as u64) as usize;
                    let end = (start + *length as usize).min(content.size);
                    let mut bytes = content.bytes.clone();
                    bytes.resize(content.size.max(bytes.len()), 0);
                    if let Ok(piece) = &is {
                        assert_eq!(piece.data(), Ok(&bytes[start..end]));
                    }
                    Ok((end - start) as u64)
                });
                (is.map(|piece| piece.length), expected)
            }
            Step::Write(index, handle, offset, length, byte) => {
                let mut piece = Piece::new(&[*byte; file::INLINE]);
                piece.length = *length;
                let request = file::Write {
                    handle: *handle,
                    offset: *offset,
                    piece,
                };
                let is = patiently(files, |files| files.write(who(*index), &request));
                self.follow();
                let model = &mut self.model;
                let expected = model.find(OWNERS[*index], *handle, WRITE).and_then(|path| {
                    if *length > file::INLINE as u64 {
                        return Err(Status::BadRequest);
                    }
                    let end = offset.checked_add(*length).ok_or(Status::BadRequest)?;
                    let content = model.content(&path);
                    let blocks = content.bytes.len().div_ceil(BLOCK);
                    if end > ((blocks + GROW_MAX as usize) * BLOCK) as u64 {
                        return Err(Status::NoSpace);
                    }
                    let (start, end) = (*offset as usize, end as usize);
                    let whole = end.div_ceil(BLOCK).max(blocks) * BLOCK;
                    content.bytes.resize(whole, 0);
                    content.bytes[start..end].fill(*byte);
                    content.size = content.size.max(end);
                    Ok(content.size as u64)
                });
                (is, expected)
            }
            Step::Grant(activity, number, offset, write, at) => {
                let flag = if *write { WRITE } else { READ };
                let open = model.open.get(&(*activity, *number)).cloned();
                let had_stuck = files.has_stuck();
                // A client asks again after each piece that was taken back to make space.
                let is = loop {
                    let left = files.left_now().len() + files.access().lent.len();
                    let is = files.grant(*activity, *number, *offset, *write);
                    let now = files.left_now().len() + files.access().lent.len();
                    if is != Err(Status::Busy) || now == left {
                        break is;
                    }
                };
                self.follow();
                let expected = match &open {
                    None => Err(Status::InvalidHandle),
                    Some(open) if open.flags & flag == 0 => Err(Status::NoRights),
                    Some(open) => {
                        let handle = (*activity, *number);
                        if is == Err(Status::TooMany) {
                            assert!(had_stuck || self.model.is_full(handle, open.label));
                        }
                        self.grant(open, handle, *offset, *write, *at, is)
                    }
                };
                (is.map(|_| 0), expected)
            }
        }
    }

    fn open(&mut self, index: usize, bytes: &[u8], flags: u64) -> Result<u64> {
        let path = names(bytes)?;
        let (label, activity) = OWNERS[index];
        let writes = flags & WRITE != 0;
        let empties = flags & TRUNCATE != 0;
        let known = flags & !(READ | WRITE | CREATE | TRUNCATE) == 0;
        if !known || flags & (READ | WRITE) == 0 || empties && !writes {
            return Err(Status::BadRequest);
        }
        let model = &mut self.model;
        if !model.sessions.contains_key(&activity) {
            return Err(Status::NoRights);
        }
        let count = |label: u64| model.open.values().filter(|o| o.label == label).count();
        let beyond: usize = (0..4).map(|label| count(label).saturating_sub(2)).sum();
        if count(label) >= HANDLES || count(label) >= 2 && beyond >= 6 {
            return Err(Status::TooMany);
        }
        if model.get(&path) == Err(Status::NotFound) && flags & CREATE != 0 && writes {
            model.make(&path, Some(Content::default()))?;
        }
        let content = model.get(&path)?.ok_or(Status::IsAFolder)?;
        let size = content.size as u64;
        let is_written = |o: &Opened| o.path == path && o.flags & WRITE != 0;
        if writes && model.open.values().any(is_written) || empties && self.is_in_use(&path) {
            return Err(Status::Busy);
        }
        if empties {
            *self.model.content(&path) = Content::default();
            return Ok(0);
        }
        Ok(size)
    }

    fn is_in_use(&self, path: &[String]) -> bool {
        self.model.open.values().any(|o| o.path == path) || self.pieces_of(path) > 0
    }

    /// Pieces of a file that can be reached now.
    fn pieces_of(&self, path: &[String]) -> usize {
        let now = self.files.pieces_now();
        let all = self.model.lent.iter();
        all.filter(|(number, of)| of.path == path && now.contains(number))
            .count()
    }

    fn remove(&mut self, path: &[String]) -> Result<u64> {
        if path.is_empty() {
            return Err(Status::NoRights);
        }
        self.model.get(path)?;
        if self.model.is_used(path) {
            return Err(Status::Busy);
        }
        let mut all = self.model.tree.keys();
        if all.any(|k| k.len() > path.len() && k.starts_with(path)) {
            return Err(Status::NotEmpty);
        }
        self.model.tree.remove(path);
        Ok(0)
    }

    fn grant(
        &mut self,
        open: &Opened,
        handle: (u16, u64),
        offset: u64,
        write: bool,
        at: u64,
        is: Result<(u16, Grant)>,
    ) -> Result<u64> {
        let content = self.model.content(&open.path);
        let blocks = content.bytes.len().div_ceil(BLOCK) as u64;
        let index = offset / BLOCK as u64;
        let status = match is {
            Ok((number, grant)) => {
                // The service decides the start and length of the piece; it reports the file's length itself.
                assert!(index <= blocks && (write || offset < content.size as u64));
                assert_eq!(
                    (grant.offset, grant.writable),
                    (index * BLOCK as u64, write)
                );
                assert!(grant.length > 0);
                let end = (grant.offset + grant.length) as usize;
                content
                    .bytes
                    .resize(content.bytes.len().next_multiple_of(BLOCK).max(end), 0);
                let lent = Lent {
                    path: open.path.clone(),
                    handle: Some(handle),
                    label: open.label,
                };
                self.model.lent.insert(number, lent);
                let mut data = std::vec![0; grant.length as usize];
                let store = self.files.system.store.inner();
                store.read(grant.store, &mut data).expect("inside");
                let content = self.model.content(&open.path);
                assert_eq!(
                    data,
                    content.bytes[grant.offset as usize..end],
                    "what the piece shows"
                );
                if write && at < grant.length {
                    // As the client does it, without the server.
                    store.poke(grant.store + at, 0xc7);
                    content.bytes[(grant.offset + at) as usize] = 0xc7;
                }
                return Ok(0);
            }
            Err(status) => status,
        };
        match status {
            // These depend on the pieces of others, and on what can be taken back.
            Status::TooMany | Status::Busy if status != Status::Busy || self.is_stuck => {
                self.resize_to_stored(open);
                Err(status)
            }
            _ if index > u32::MAX.into() => Err(Status::BadRequest),
            _ if write && index > blocks || !write && offset >= content.size as u64 => {
                Err(Status::NotFound)
            }
            _ => Ok(0),
        }
    }

    /// A piece that was refused may still have extended the file after its end.
    fn resize_to_stored(&mut self, open: &Opened) {
        let path = open.path.join("/");
        let path = Path::parse(&path).expect("it is one");
        let inode = self.files.system.lookup(&path).expect("it is open");
        let blocks = self.files.system.stat(inode).expect("it is there").blocks;
        let content = self.model.content(&open.path);
        content.bytes.resize(blocks as usize * BLOCK, 0);
    }
}

/// A story of several clients that begins with a fresh store.
fn story(steps: Vec<Step>) -> TestCaseResult {
    let mut world = World::new();
    for activity in 1..4 {
        world.perform(&Step::Begin(activity));
    }
    for step in &steps {
        world.perform(step);
        world.check();
    }
    assert_eq!(world.stored(), world.expected());
    // All clients leave; only the store's contents remain.
    world.files.access().is_stuck = false;
    world.is_stuck = false;
    for activity in 0..6 {
        while world.model.sessions.contains_key(&activity) {
            world.perform(&Step::End(activity));
        }
    }
    // The service now takes back pieces that it could not take back before.
    world.files.forget_hints();
    while world.files.clean(None) {
        world.follow();
    }
    prop_assert!(world.files.access().lent.is_empty());
    world.restart();
    prop_assert_eq!(world.stored(), world.expected());
    Ok(())
}

proptest! {
    #[test]
    fn the_service_is_a_map_of_bytes(steps in prop::collection::vec(step(), 1..80)) {
        story(steps)?;
    }
}

#[test]
fn guided_files() {
    bulkhead_fuzz::target("files", |bytes| story(bytes.story(&step(), 80)));
}
