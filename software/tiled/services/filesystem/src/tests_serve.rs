//! Handles, pieces and sessions, one case after the other.

use crate::tests::{Memory, fresh, memory};
use crate::*;
use bulkhead_common::file::{self, CREATE, Opened, Piece, READ, TRUNCATE, WRITE, path};
use bulkhead_common::shares::Shares;
use bulkhead_common::waiting::{Client, Owner};
use std::vec::Vec;

/// Access to pieces as the chip would grant it: who can reach which bytes.
#[derive(Clone, Debug, Default)]
pub struct Access {
    pub lent: Vec<(u16, Grant)>,
    next: u16,
    /// No piece can be taken back.
    pub is_stuck: bool,
    /// Nothing can be lent.
    pub refuses: bool,
}

impl Access {
    /// Forgets used numbers, which nobody can see.
    pub fn forget_numbers(&mut self) {
        self.next = 0;
    }
}

impl Lending for Access {
    fn lend(&mut self, grant: &Grant) -> Result<u16> {
        if self.refuses {
            return Err(Status::NoRights);
        }
        self.next += 1;
        self.lent.push((self.next, *grant));
        Ok(self.next)
    }

    fn take_back(&mut self, piece: u16) -> Result<()> {
        if self.is_stuck {
            return Err(Status::Busy);
        }
        let before = self.lent.len();
        self.lent.retain(|(number, _)| *number != piece);
        assert_eq!(self.lent.len() + 1, before, "it was taken back already");
        Ok(())
    }
}

type Service = Files<Memory, Access>;

/// The client with a label, in an activity.
pub fn owner(label: u64, activity: u16) -> Owner {
    let client = Client { priority: 0, label };
    Owner { client, activity }
}

/// A client whose label is the number of its activity.
fn client(label: u16) -> Owner {
    owner(label.into(), label)
}

/// With sessions for the activities 1 to 9.
fn service(common: usize) -> Service {
    let shares = |each, common| Shares::new(each, common);
    let mut files = Files::new(fresh(), Access::default(), shares(1, common), shares(1, 8));
    (1..10).for_each(|activity| files.begin(activity));
    files
}

/// A request as the service performs it: it is repeated after each obstacle that is taken back.
pub fn patiently<T>(
    files: &mut Service,
    ask: impl Fn(&mut Service) -> core::result::Result<T, Refusal>,
) -> Result<T> {
    loop {
        match ask(files) {
            Ok(answer) => return Ok(answer),
            Err(Refusal::Status(status)) => return Err(status),
            Err(Refusal::Later(inode)) => {
                let before = files.access().lent.len();
                assert!(files.clean(Some(inode)), "nothing is in the way");
                assert!(files.access().lent.len() + 1 >= before, "one at a time");
            }
        }
    }
}

fn open(files: &mut Service, who: Owner, name: &str, flags: u64) -> Result<Opened> {
    let path = path(name).expect("short");
    patiently(files, |files| files.open(who, &file::Open { flags, path }))
}

fn remove(files: &mut Service, name: &str) -> Result<u64> {
    let path = path(name).expect("short");
    patiently(files, |files| files.remove(&file::Remove { path }))
}

/// The service's turns without requests.
fn rest(files: &mut Service) {
    while files.clean(None) {}
}

#[test]
fn handles_belong_to_their_client() {
    let mut files = service(64);
    let opened = open(&mut files, client(1), "a", WRITE | CREATE).expect("room");
    let handle = opened.handle;
    let commit = file::Commit { handle, size: 0 };
    assert_eq!(files.commit(client(2), &commit), Err(Status::InvalidHandle));
    assert_eq!(files.close(client(2), handle), Err(Status::InvalidHandle));
    assert_eq!(files.grant(2, handle, 0, true), Err(Status::InvalidHandle));
    assert_eq!(files.grant(1, handle, 0, false), Err(Status::NoRights));
    assert_eq!(files.commit(client(1), &commit), Ok(0));
    assert_eq!(files.close(client(1), handle), Ok(0));
    assert_eq!(files.close(client(1), handle), Err(Status::InvalidHandle));
}

#[test]
fn what_is_open_is_neither_removed_nor_shortened_by_others() {
    let mut files = service(64);
    let writer = open(&mut files, client(1), "a", READ | WRITE | CREATE).expect("room");
    let piece = Piece::new(&[7; 200]);
    let request = file::Write {
        handle: writer.handle,
        offset: 0,
        piece,
    };
    assert_eq!(files.write(client(1), &request), Ok(200));
    let reader = open(&mut files, client(2), "a", READ).expect("it is there");
    assert_eq!(reader.size, 200);
    assert_eq!(open(&mut files, client(2), "a", WRITE), Err(Status::Busy));
    assert_eq!(
        open(&mut files, client(1), "a", WRITE | TRUNCATE),
        Err(Status::Busy)
    );
    assert_eq!(remove(&mut files, "a"), Err(Status::Busy));
    let shorter = file::Commit {
        handle: writer.handle,
        size: 10,
    };
    assert_eq!(files.commit(client(1), &shorter), Err(Status::BadRequest));
    files.end(2);
    files.end(1);
    assert_eq!(remove(&mut files, "a"), Ok(0));
}

#[test]
fn nobody_opens_without_end() {
    let mut files = service(17);
    // Making a file counts as writing.
    assert_eq!(
        open(&mut files, client(1), "a", READ | CREATE),
        Err(Status::NotFound)
    );
    let made = open(&mut files, client(1), "a", WRITE | CREATE).expect("room");
    files.close(client(1), made.handle).expect("open");
    for _ in 0..HANDLES {
        assert!(open(&mut files, client(1), "a", READ).is_ok());
    }
    assert_eq!(open(&mut files, client(1), "a", READ), Err(Status::TooMany));
    // One place of its own, and two of those that the first client has left over.
    for _ in 0..3 {
        assert!(open(&mut files, client(2), "a", READ).is_ok());
    }
    assert_eq!(open(&mut files, client(2), "a", READ), Err(Status::TooMany));
    // Nobody takes the place of the third client.
    assert!(open(&mut files, client(3), "a", READ).is_ok());
    assert_eq!(open(&mut files, client(3), "a", READ), Err(Status::TooMany));
    files.end(1);
    assert!(open(&mut files, client(3), "a", READ).is_ok());
}

#[test]
fn uncommitted_blocks_come_back() {
    let mut files = service(4);
    let before = files.system.check();
    let opened = open(&mut files, client(1), "a", WRITE | CREATE).expect("room");
    let (_, grant) = files.grant(1, opened.handle, 0, true).expect("room");
    assert_eq!((grant.offset, grant.length), (0, 16 * BLOCK as u64));
    assert_eq!(
        files.grant(1, opened.handle, 17 * BLOCK as u64, true),
        Err(Status::NotFound)
    );
    let size = BLOCK as u64 + 1;
    assert_eq!(
        files.commit(
            client(1),
            &file::Commit {
                handle: opened.handle,
                size
            }
        ),
        Ok(size)
    );
    files.end(1);
    rest(&mut files);
    let used = |summary: Result<crate::Summary>| summary.map(|s| s.used);
    // The file's two blocks, and the root folder's.
    assert_eq!(used(files.system.check()), used(before).map(|b| b + 3));
}

/// Issue 11, finding 4: the folder of a path was found by cutting dots off its end.
#[test]
fn dots_at_the_end_of_a_name_belong_to_it() {
    let mut files = service(8);
    let path = |name| path(name).expect("short");
    let folder = |name| file::MakeFolder { path: path(name) };
    assert_eq!(files.make_folder(client(1), &folder("\u{e9}")), Ok(0));
    assert_eq!(files.make_folder(client(1), &folder("\u{e9}/a..")), Ok(0));
    assert_eq!(files.make_folder(client(1), &folder("x")), Ok(0));
    open(&mut files, client(1), "v..", WRITE | CREATE).expect("room");
    // It would have been `v..` in the root folder.
    assert_eq!(remove(&mut files, "x/v.."), Err(Status::NotFound));
    assert_eq!(remove(&mut files, "v.."), Err(Status::Busy));
    assert_eq!(remove(&mut files, "\u{e9}/a.."), Ok(0));
}

/// Two activities share a channel: one cannot close the other's files.
#[test]
fn who_shares_a_label_shares_no_handles() {
    let mut files = service(8);
    let (thief, other) = (owner(1, 1), owner(1, 2));
    let opened = open(&mut files, thief, "a", READ | WRITE | CREATE).expect("room");
    files.grant(1, opened.handle, 0, true).expect("room");
    assert_eq!(
        files.close(other, opened.handle),
        Err(Status::InvalidHandle)
    );
    assert_eq!(files.grant(2, 0, 0, true), Err(Status::InvalidHandle));
    assert_eq!(remove(&mut files, "a"), Err(Status::Busy));
    assert_eq!(files.close(thief, opened.handle), Ok(0));
    assert!(files.access().lent.is_empty());
    assert_eq!(remove(&mut files, "a"), Ok(0));
}

#[test]
fn blocks_stay_with_their_file_until_access_has_ended() {
    let mut files = service(8);
    let opened = open(&mut files, client(1), "a", WRITE | CREATE).expect("room");
    let (_, piece) = files.grant(1, opened.handle, 0, true).expect("room");
    files.access().is_stuck = true;
    // A client that closes sees the failure, and the file is still open.
    assert_eq!(files.close(client(1), opened.handle), Err(Status::Busy));
    files.end(1);
    rest(&mut files);
    assert_eq!(
        files.commit(client(1), &file::Commit { handle: 0, size: 0 }),
        Err(Status::InvalidHandle)
    );
    assert_eq!(remove(&mut files, "a"), Err(Status::Busy));
    assert_eq!(
        open(&mut files, client(2), "a", WRITE | TRUNCATE),
        Err(Status::Busy)
    );
    let other = open(&mut files, client(2), "b", WRITE | CREATE).expect("room");
    let (_, others) = files.grant(2, other.handle, 0, true).expect("room");
    assert!(
        others.store >= piece.store + piece.length || piece.store >= others.store + others.length
    );
    files.access().is_stuck = false;
    // A refused request is tried again.
    rest(&mut files);
    assert_eq!(remove(&mut files, "a"), Ok(0));
    assert_eq!(files.access().lent.len(), 1);
}

/// Issue 11, finding 12: the service keeps nothing for a client without a session.
#[test]
fn nothing_is_kept_without_a_session() {
    let mut files = service(200);
    for activity in 10..500 {
        let who = owner(u64::from(activity) % 64, activity);
        assert_eq!(
            open(&mut files, who, "a", WRITE | CREATE),
            Err(Status::NoRights)
        );
        files.begin(activity);
        files.begin(activity);
        let opened = open(&mut files, who, "a", WRITE | CREATE).expect("room");
        files.grant(activity, opened.handle, 0, true).expect("room");
        files.end(activity);
        assert!(open(&mut files, who, "a", READ).is_ok());
        files.end(activity);
        assert_eq!(files.close(who, opened.handle), Err(Status::InvalidHandle));
        rest(&mut files);
        assert!(files.access().lent.is_empty());
    }
    assert!(open(&mut files, client(1), "a", WRITE | TRUNCATE).is_ok());
}

#[test]
fn pieces_of_one_client_leave_room_for_another() {
    let mut files = service(64);
    let write = |files: &mut Service, who: u16, name: &str| {
        open(files, client(who), name, READ | WRITE | CREATE).map(|opened| opened.handle)
    };
    let mut refused = 0;
    for name in ["a", "b", "c", "d"] {
        let handle = write(&mut files, 1, name).expect("room");
        refused += (0..4)
            .filter(|_| files.grant(1, handle, 0, true).is_err())
            .count();
    }
    // Nine for the first client: its own one and all of the rest; the third file has one, the fourth none.
    assert_eq!(files.access().lent.len(), 9);
    assert_eq!(refused, 4);
    let handle = write(&mut files, 2, "e").expect("room");
    for _ in 0..3 {
        // Its own place, again and again.
        assert!(files.grant(2, handle, 0, true).is_ok());
        assert_eq!(files.access().lent.len(), 10);
    }
}

/// Uncommitted blocks end when nobody uses the file any more, whichever client closes last.
#[test]
fn the_last_one_gives_back_what_was_not_committed() {
    let mut files = service(8);
    let writer = open(&mut files, client(1), "a", WRITE | CREATE).expect("room");
    let reader = open(&mut files, client(2), "a", READ).expect("there");
    files.grant(1, writer.handle, 0, true).expect("room");
    let free = |files: &mut Service| files.system.check().map(|s| s.free);
    let before = free(&mut files).expect("consistent");
    assert_eq!(files.close(client(1), writer.handle), Ok(0));
    assert_eq!(free(&mut files), Ok(before));
    assert_eq!(files.close(client(2), reader.handle), Ok(0));
    assert_eq!(free(&mut files), Ok(before + GROW_MAX));
}

/// A message that wrote after the end used to cut off granted blocks, and these then went to another file.
#[test]
fn writing_by_messages_keeps_what_is_granted() {
    let mut files = service(8);
    let handle = open(&mut files, client(1), "a", WRITE | CREATE).map(|o| o.handle);
    let handle = handle.expect("room");
    let (_, piece) = files.grant(1, handle, 0, true).expect("room");
    let request = file::Write {
        handle,
        offset: 0,
        piece: Piece::new(&[1]),
    };
    assert_eq!(files.write(client(1), &request), Ok(1));
    let other = open(&mut files, client(2), "b", WRITE | CREATE).map(|o| o.handle);
    let (_, others) = files.grant(2, other.expect("room"), 0, true).expect("room");
    assert!(others.store >= piece.store + piece.length);
}

/// A service whose first client has 16 files open and four pieces of each.
fn with_much_open() -> Service {
    let shares = Shares::new(64, 0);
    let system = FileSystem::format(memory(512), 512, 30).expect("it fits");
    let mut files = Files::new(system, Access::default(), Shares::new(16, 0), shares);
    (1..4).for_each(|activity| files.begin(activity));
    for number in 0..HANDLES as u64 {
        let name = std::format!("{number}");
        let opened = open(&mut files, client(1), &name, READ | WRITE | CREATE).expect("room");
        for _ in 0..4 {
            files.grant(1, opened.handle, 0, true).expect("room");
        }
    }
    assert_eq!(files.access().lent.len(), 64);
    files
}

/// All of it used to be taken back in one piece of work, before any other client was served.
#[test]
fn the_end_of_a_client_is_many_short_pieces_of_work() {
    let mut files = with_much_open();
    files.end(1);
    assert_eq!(files.access().lent.len(), 64);
    for left in (0..64).rev() {
        assert!(files.clean(None));
        assert_eq!(files.access().lent.len(), left);
    }
    for _ in 0..HANDLES {
        assert!(files.clean(None));
    }
    assert!(!files.clean(None));
}

/// A client that comes back at once finds its files, its places and its pieces, and waits only for what is in its
/// way.
#[test]
fn who_comes_back_at_once_waits_only_for_what_he_asks_for() {
    let mut files = with_much_open();
    files.end(1);
    files.begin(1);
    // There is no place for it, and the writer of the first file is gone.
    let again = open(&mut files, client(1), "0", READ | WRITE).expect("its own");
    assert_eq!(files.access().lent.len(), 60);
    // All pieces are on its account. One leftover piece makes room for each new one.
    for _ in 0..4 {
        files.grant(1, again.handle, 0, true).expect("room");
        assert!(files.access().lent.len() <= 64);
    }
    // A read waits for nothing unless the file is emptied or removed.
    let before = files.access().lent.len();
    open(&mut files, client(2), "5", READ).expect("room");
    assert_eq!(files.access().lent.len(), before);
    assert_eq!(remove(&mut files, "7"), Ok(0));
    assert_eq!(files.access().lent.len(), before - 4);
    // One of its activities exists and one is gone, and only the latter's pieces are taken back.
    rest(&mut files);
    assert_eq!(files.access().lent.len(), 4);
    assert_eq!(files.close(client(1), again.handle), Ok(0));
}

/// Blocks that an ended client did not commit make room for others as soon as those need it.
#[test]
fn what_was_not_committed_is_room_for_others() {
    let mut files = with_much_open();
    let made = open(&mut files, client(2), "more", WRITE | CREATE).expect("room");
    let mut end = 0;
    while let Ok((_, piece)) = files.grant(2, made.handle, end, true) {
        end = piece.offset + piece.length;
    }
    let folder = path("folder").expect("short");
    let request = file::MakeFolder { path: folder };
    let piece = Piece::new(&[1]);
    let write = file::Write {
        handle: made.handle,
        offset: end,
        piece,
    };
    let none = Err(Refusal::Status(Status::NoSpace));
    assert_eq!(files.write(client(2), &write), none);
    files.end(1);
    assert_eq!(files.make_folder(client(3), &request), Ok(0));
    // One is closed because of the kernel's question, and one because of the message.
    let left = files.left_now().len();
    assert_eq!(
        files.grant(2, made.handle, end, true).map(drop),
        Err(Status::Busy)
    );
    let written = patiently(&mut files, |files| files.write(client(2), &write));
    assert_eq!(written, Ok(end + 1));
    assert!(files.left_now().len() < left);
}
