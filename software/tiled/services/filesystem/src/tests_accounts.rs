//! Blocks and inodes have payers: no client can use up another's share.

use crate::tests::{Memory, fresh, memory};
use crate::tests_serve::{Access, owner, patiently};
use crate::*;
use bulkhead_common::file::{self, CREATE, Piece, READ, WRITE};
use bulkhead_common::shares::{Seats, Shares};
use bulkhead_common::waiting::{Client, Owner};
use proptest::prelude::*;

type Service = Files<Memory, Access>;

/// Four blocks and two inodes for each client, and as many for all together.
fn service() -> Service {
    let mut system = fresh();
    system
        .limit(Shares::new(4, 4), Shares::new(2, 2))
        .expect("it can be read");
    serve(system)
}

fn serve(system: FileSystem<Memory>) -> Service {
    let mut files = Files::new(
        system,
        Access::default(),
        Shares::new(8, 8),
        Shares::new(2, 8),
    );
    (1..4).for_each(|activity| files.begin(activity));
    files
}

fn client(number: u16) -> Owner {
    owner(number.into(), number)
}

fn make(files: &mut Service, who: Owner, name: &str) -> Result<u64> {
    let path = file::path(name).expect("short");
    let flags = READ | WRITE | CREATE;
    let opened = patiently(files, |files| files.open(who, &file::Open { flags, path }));
    opened.map(|opened| opened.handle)
}

fn write(files: &mut Service, who: Owner, handle: u64, block: u64) -> Result<u64> {
    let piece = Piece::new(&[1; 8]);
    let offset = block * BLOCK as u64;
    let request = file::Write {
        handle,
        offset,
        piece,
    };
    patiently(files, |files| files.write(who, &request))
}

fn held(files: &Service, who: Owner) -> (usize, usize) {
    files.system.held_by(Account::of(who.client))
}

#[test]
fn a_full_share_refuses_only_its_owner() {
    let mut files = service();
    let (one, two) = (client(1), client(2));
    let file = make(&mut files, one, "a").expect("room");
    for block in 0..8 {
        assert!(write(&mut files, one, file, block).is_ok(), "{block}");
    }
    assert_eq!(write(&mut files, one, file, 8), Err(Status::NoSpace));
    assert_eq!(held(&files, one), (8, 1));
    for name in ["b", "c", "d"] {
        assert!(make(&mut files, one, name).is_ok());
    }
    assert_eq!(make(&mut files, one, "e"), Err(Status::NoSpace));
    // The other client has its own share and no more.
    let file = make(&mut files, two, "f").expect("its own");
    for block in 0..4 {
        assert!(write(&mut files, two, file, block).is_ok(), "{block}");
    }
    assert_eq!(write(&mut files, two, file, 4), Err(Status::NoSpace));
    assert!(make(&mut files, two, "g").is_ok());
    assert_eq!(make(&mut files, two, "h"), Err(Status::NoSpace));
    // Blocks that were given back can be used again, and after a restart the accounts still name their payers.
    files.end(1);
    let path = file::path("a").expect("short");
    let request = file::Remove { path };
    assert_eq!(patiently(&mut files, |files| files.remove(&request)), Ok(0));
    assert_eq!(held(&files, one), (0, 3));
    assert!(write(&mut files, two, file, 4).is_ok());
    files.end(2);
    let mut system =
        FileSystem::mount(files.system.into_store(), 96 * BLOCK as u64).expect("it is one");
    system
        .limit(Shares::new(4, 4), Shares::new(2, 2))
        .expect("it can be read");
    let files = serve(system);
    assert_eq!((held(&files, one), held(&files, two)), ((0, 3), (5, 2)));
}

#[test]
fn who_lengthens_anothers_file_pays_for_it() {
    let mut files = service();
    let (one, two) = (client(1), client(2));
    let file = make(&mut files, one, "a").expect("room");
    for block in 0..3 {
        assert!(write(&mut files, one, file, block).is_ok());
    }
    files.end(1);
    assert_eq!(held(&files, one), (3, 1));
    let file = make(&mut files, two, "a").expect("it is there");
    // Writing existing blocks costs nothing.
    assert!(write(&mut files, two, file, 0).is_ok());
    assert_eq!((held(&files, one), held(&files, two)), ((3, 1), (0, 0)));
    assert!(write(&mut files, two, file, 3).is_ok());
    let blocks = held(&files, two).0;
    assert!(blocks >= 4 && held(&files, one) == (0, 0), "{blocks}");
    // A client that cannot pay for the whole file cannot extend it.
    files.end(2);
    let three = client(3);
    for name in ["x", "y", "z", "w"] {
        assert!(make(&mut files, three, name).is_ok() || name == "w");
    }
    let handle = make(&mut files, three, "a").expect("it is there");
    assert_eq!(write(&mut files, three, handle, 7), Err(Status::NoSpace));
}

#[test]
fn names_in_anothers_folder_are_paid_by_who_puts_them_there() {
    let mut system = FileSystem::format(fresh().into_store(), 96, 200).expect("it fits");
    system
        .limit(Shares::new(2, 2), Shares::new(80, 0))
        .expect("it can be read");
    let mut files = serve(system);
    let (one, two) = (client(1), client(2));
    let path = file::path("d").expect("short");
    assert_eq!(files.make_folder(one, &file::MakeFolder { path }), Ok(0));
    let entries = layout::ENTRIES;
    for number in 0..entries + 1 {
        let name = std::format!("d/{number}");
        let path = file::path(&name).expect("short");
        assert_eq!(
            files.make_folder(two, &file::MakeFolder { path }),
            Ok(0),
            "{number}"
        );
    }
    // The folder grew at the expense of its filler and of nobody else.
    assert_eq!(held(&files, one), (0, 0));
    assert_eq!(held(&files, two), (2, entries + 2));
}

#[test]
fn the_description_limits_clients_by_their_gates() {
    let mut files = service();
    files.system.limit_each(0, 3, 1);
    let one = client(1);
    let file = make(&mut files, one, "a").expect("room");
    for block in 0..3 {
        assert!(write(&mut files, one, file, block).is_ok());
    }
    assert_eq!(write(&mut files, one, file, 3), Err(Status::NoSpace));
    assert_eq!(make(&mut files, one, "b"), Err(Status::NoSpace));
    // A client of a lower priority has another limit.
    let mut two = client(2);
    two.client.priority = 1;
    for name in ["c", "d"] {
        assert!(make(&mut files, two, name).is_ok());
    }
}

/// Takes files, blocks, open files and pieces until everything is refused, and keeps it all.
fn fill(files: &mut Service, who: Owner) {
    for number in 0.. {
        let name = std::format!("{}-{}-{number}", who.client.priority, who.client.label);
        let Ok(handle) = make(files, who, &name) else {
            return;
        };
        let _ = (0..).find(|block| write(files, who, handle, *block).is_err());
        let _ = files.grant(who.activity, handle, 0, true);
        if number % 3 > 0 {
            let _ = files.close(who, handle);
        }
    }
}

proptest! {
    /// Whatever the image was made with, and whatever all others take, each possible client can write a file of its own and have a piece of
    /// it.
    #[test]
    fn every_client_has_what_is_its_own(
        blocks in 30u32..300,
        inodes in 4u32..100,
        seats in [1u64..9, 0u64..9],
        made in prop::collection::vec(0usize..9, 0..6),
        last in any::<prop::sample::Index>(),
    ) {
        let seats_of = Seats::new(seats);
        let Ok(mut system) = FileSystem::format(memory(blocks), blocks, inodes) else {
            return Ok(());
        };
        for (number, blocks) in made.iter().enumerate() {
            let name = std::format!("made-{number}");
            let path = Path::parse(&name).expect("short");
            if let Ok(inode) = system.create(&path, Kind::File) {
                let _ = system.write(inode, 0, &std::vec![1; blocks * BLOCK]);
            }
        }
        let divided = system.divide(seats_of);
        if divided == Err(Status::NoSpace) {
            // Something is too small for all clients; the earlier contents count, too.
            let (room, files) = system.room();
            let taken = 2 + made.iter().map(|blocks| 1 + blocks).sum::<usize>();
            prop_assert!(room.min(files) < seats_of.count() + taken + inodes as usize / 16);
            return Ok(());
        }
        prop_assert_eq!(divided, Ok(()));
        let shares = |each, common| Shares::among(seats_of, each, common);
        let mut files = Files::new(system, Access::default(), shares(2, 5), shares(1, 3));
        let everybody = [0, 1].map(|priority| (0..12).map(move |label| Client { priority, label }));
        let everybody = everybody.into_iter().flatten();
        let everybody = everybody.zip(1..).map(|(client, activity)| Owner { client, activity });
        let everybody: std::vec::Vec<Owner> = everybody.collect();
        everybody.iter().for_each(|who| files.begin(who.activity));
        let seated = |who: &&Owner| who.client.label < seats[who.client.priority];
        let seated: std::vec::Vec<Owner> = everybody.iter().filter(seated).copied().collect();
        let last = seated[last.index(seated.len())];
        everybody.iter().filter(|who| **who != last).for_each(|who| fill(&mut files, *who));
        let handle = make(&mut files, last, "last");
        prop_assert!(handle.is_ok(), "{:?}", handle);
        let piece = files.grant(last.activity, handle.unwrap_or(0), 0, true);
        prop_assert!(piece.is_ok(), "{:?}", piece);
        prop_assert!(files.system.check().is_ok());
    }
}
