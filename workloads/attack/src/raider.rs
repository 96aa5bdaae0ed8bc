//! A hostile program: it mounts one attack that a system must withstand, or a random one in each round, until it is stopped.
//!
//! Arguments: `kind` (`random`, a kind of [`KINDS`], or `sleeps`), `seed` (1), `rounds` (without end), `say` (1000): rounds between two
//! progress lines. Needs nothing from its description; with kernel memory, endpoints and page tables it can do more. As a manager it uses
//! all tiles that it has. Gates, if it has them: `files` (send, to the file service). A child that runs makes a check marker of 16 times
//! its number. If it gets something that nobody may have given it, it prints `won: ...`.
#![no_std]
#![no_main]

use bulkhead_lib::abi::environment::ENVIRONMENT_BASE;
use bulkhead_lib::abi::syscall::{
    ANY_ENDPOINT, MAP_EXECUTE, MAP_READ, MAP_WRITE, REPORT_DONE, SEL_FREE, SEL_KERNEL_MEMORY,
    SEL_MEMORIES, SEL_MEMORY, SEL_TILE, SEL_TILES, SHARE, SYSCALL_WORDS, Syscall,
};
use bulkhead_lib::abi::tilemux::Ecall;
use bulkhead_lib::abi::words::Name;
use bulkhead_lib::file::{CREATE, Mount, READ, TRUNCATE, WRITE};
use bulkhead_lib::gate::{MemoryGate, MessageBuffer, SendGate};
use bulkhead_lib::hal::dtu;
use bulkhead_lib::{argument, println, syscall, time};
use bulkhead_random::Random;
use core::ptr::addr_of;
use core::sync::atomic::{AtomicU32, Ordering};

bulkhead_lib::main!(main);

/// Where a child finds its code, and where its pager's range begins.
const ADDRESS: u64 = 0x1000_0000;
const PAGED: u64 = 0x3000_0000;
/// The piece of its own memory in which children live, and the first selector for what it makes and forgets.
const PIECE: u16 = SEL_FREE + 7;
const MADE: u16 = SEL_FREE + 8;
/// The last page of [`Pages`]: nobody may write there.
const WITNESS: u64 = 6 * 4096;
/// Selectors that it uses.
const PLACES: u64 = 160;

/// Children's code, room for replies, buffers of gates.
#[repr(C, align(4096))]
struct Pages {
    code: [AtomicU32; 3072],
    rest: [AtomicU32; 4096],
}

const _: () = assert!(size_of::<Pages>() == WITNESS as usize + 4096);

/// Not zero, so it is in the part of the program that is loaded.
static PAGES: Pages = Pages {
    code: [const { AtomicU32::new(0x6f) }; 3072],
    rest: [const { AtomicU32::new(1) }; 4096],
};

/// A check marker of the stack pointer: a child that runs (`slti x0, sp, 11`).
const RUNS: u32 = 0x00B1_2013;
/// Calls TileMux with every number, for ever.
const CALLS: [u32; 5] = [RUNS, 0x0018_8893, 0x00F8_F893, 0x0000_0073, 0xFF5F_F06F];
/// Writes where its pager is to place a page, for ever.
const FAULTS: [u32; 4] = [RUNS, 0x3000_0537, 0x00A5_3023, 0xFF9F_F06F];

/// Counts its stack pointer down and exits. Its offset is [`EXITS_AT`].
const EXITS: [u32; 4] = [
    0xFF01_0113,
    0xFE01_1EE3,
    0x893 | (Ecall::Exit as u32) << 20,
    0x73,
];
const EXITS_AT: usize = 64;

type Kind = (&'static str, fn(&mut Hostile));
const KINDS: [Kind; 17] = [
    ("children", Hostile::child_and_stop),
    ("living", Hostile::child_and_live),
    ("replies", Hostile::reply_late),
    ("services", Hostile::offer),
    ("buckets", Hostile::buckets),
    ("refusals", Hostile::refused_bucket),
    ("pager", Hostile::pager),
    ("revoke", Hostile::revoke),
    ("waits", Hostile::sessions),
    ("tells", Hostile::tell),
    ("copies", Hostile::copy),
    ("files", Hostile::files),
    ("lines", Hostile::lines),
    ("calls", Hostile::calls),
    ("stops", Hostile::stop_what_ends),
    ("moments", Hostile::wait_until_one_moment),
    ("device", Hostile::take_device),
];

struct Hostile {
    random: Random,
    /// Children made, and children refused, to distinguish attacks that never worked.
    children: u64,
    refused: u64,
    memory: u16,
    buffer: MessageBuffer,
    mount: Option<Mount>,
}

fn call(request: Syscall) -> Option<syscall::Results> {
    syscall::call(&request).ok()
}

fn offset(place: u64) -> u64 {
    addr_of!(PAGES) as u64 - ENVIRONMENT_BASE + place
}

impl Hostile {
    fn say(&self, rounds: u64) {
        println!(
            "{rounds} rounds, {} children, {} refused",
            self.children, self.refused
        );
    }

    fn place(&mut self) -> u16 {
        MADE + self.random.below(PLACES) as u16
    }

    fn revoke_at(selector: u16) {
        call(Syscall::Revoke { selector, keep: 0 });
    }

    /// Its own tile, one derived from it in any way, or a manager's tile.
    fn tile(&mut self, target: u16) -> u16 {
        let source = match self.random.below(3) {
            0 => SEL_TILES + self.random.below(8) as u16,
            _ => SEL_TILE,
        };
        if self.random.chance(40) {
            return SEL_TILE;
        }
        let amount = |random: &mut Random, top: u64| match random.below(3) {
            0 => random.below(top),
            1 => 0,
            _ => SHARE,
        };
        let random = &mut self.random;
        let request = Syscall::DeriveTile {
            source,
            target,
            endpoints: amount(random, 20),
            budget: amount(random, 900_000),
            period: [1_000_000, 1_000_000_000_000, 0][random.below(3) as usize],
            rate: amount(random, 1 << 24),
            burst: amount(random, 1 << 14),
            tables: amount(random, 20),
            priority: [255, 0, 9][random.below(3) as usize],
            idle: random.below(2) as u8,
            activities: SHARE,
            windows: SHARE,
        };
        match call(request) {
            Some(_) => target,
            None => SEL_TILE,
        }
    }

    /// A child with random names, numbers and offsets; most of them could live.
    fn create(&mut self, target: u16, tile: u16, purse: u16) -> bool {
        const NAMES: [&str; 6] = ["actuator", "root", "root/x", "a:b", "kernel", ""];
        let name = NAMES[self.random.below(6) as usize];
        let reply = match self.random.chance(10) {
            true => self.random.next(),
            false => offset(12288 + 256 * self.random.below(16)),
        };
        let made = call(Syscall::CreateActivity {
            target,
            tile,
            purse,
            memory: self.memory,
            reply,
            priority: self.random.below(3) as u8,
            tile_priority: [255, 0][self.random.below(2) as usize],
            name: Name::new(name).unwrap_or_default(),
        });
        self.children += u64::from(made.is_some());
        made.is_some()
    }

    fn begin(&mut self, activity: u16) {
        call(Syscall::Map {
            activity,
            address: ADDRESS,
            offset: offset(4096 * self.random.below(3)),
            pages: 1,
            rights: MAP_READ | MAP_EXECUTE | (MAP_WRITE * self.random.below(2) as u8),
        });
        call(Syscall::Start {
            activity,
            entry: ADDRESS,
            // Its number, as it reports it; or one that the kernel refuses.
            stack: match self.random.chance(10) {
                true => self.random.next(),
                false => 16 * self.children,
            },
        });
    }

    fn child_and_stop(&mut self) {
        if self.create(MADE, SEL_TILE, SEL_KERNEL_MEMORY) {
            call(Syscall::Stop { activity: MADE });
        }
        Self::revoke_at(MADE);
        // Events that it has not taken fill its purse: to continue, it must take them in the end.
        let until = 1;
        if self.random.chance(20) {
            while call(Syscall::WaitEvent { until }).is_some() {}
        }
    }

    /// A child that ends by itself at about the moment when it is stopped.
    fn stop_what_ends(&mut self) {
        if self.create(MADE, SEL_TILE, SEL_KERNEL_MEMORY) {
            call(Syscall::Map {
                activity: MADE,
                address: ADDRESS,
                offset: offset(0),
                pages: 1,
                rights: MAP_READ | MAP_EXECUTE,
            });
            call(Syscall::Start {
                activity: MADE,
                entry: ADDRESS + 4 * EXITS_AT as u64,
                stack: 16 * (1 + self.random.below(6000)),
            });
            call(Syscall::Stop { activity: MADE });
        }
        Self::revoke_at(MADE);
        while call(Syscall::WaitEvent { until: 1 }).is_some() {}
    }

    /// All programs of this kind wait until the same moments.
    fn wait_until_one_moment(&mut self) {
        let until = (time::now() / 100_000 + 1) * 100_000;
        call(Syscall::WaitEvent { until });
    }

    /// Asks for the device of its tile for a child.
    fn take_device(&mut self) {
        let gate = MADE + 1;
        if self.create(MADE, SEL_TILE, SEL_KERNEL_MEMORY) {
            call(Syscall::CreateReceive {
                target: gate,
                slots: 2,
                slot_size: 64,
            });
            let active = call(Syscall::Activate {
                gate,
                activity: MADE,
                memory: self.memory,
                offset: offset(12288 + 4096),
                replies: 0,
                endpoint: ANY_ENDPOINT,
            });
            if let Some([endpoint, ..]) = active {
                let given = call(Syscall::GiveDevice {
                    tile: SEL_TILE,
                    activity: MADE,
                    endpoint: endpoint as u16,
                    address: PAGED,
                    offset: 0,
                    size: 4096,
                });
                if given.is_some() {
                    println!("won: the device of its tile");
                }
                self.refused += 1;
            }
        }
        (MADE..=gate).for_each(Self::revoke_at);
        while call(Syscall::WaitEvent { until: 1 }).is_some() {}
    }

    fn child_and_live(&mut self) {
        let first = self.place();
        let tile = self.tile(first);
        let purse = first + 1;
        let bytes = self.random.below(1 << 13);
        let source = SEL_KERNEL_MEMORY;
        let target = purse;
        let derived = call(Syscall::DeriveKernelMemory {
            source,
            target,
            bytes,
        });
        let purse = derived.map_or(SEL_KERNEL_MEMORY, |_| purse);
        let activity = first + 2;
        if self.create(activity, tile, purse) {
            // The child may hold anything of its creator, including the creator itself.
            for _ in 0..self.random.below(4) {
                let (source, target) = (self.place(), self.place());
                call(Syscall::Delegate {
                    activity,
                    source,
                    target,
                });
                call(Syscall::Obtain {
                    activity,
                    source: self.random.below(4) as u16,
                    target,
                });
            }
            self.begin(activity);
        }
        if self.random.chance(50) {
            let selector = self.place();
            Self::revoke_at(selector);
        }
    }

    fn gate(&mut self, receive: u16, send: u16, at: u64) -> Option<(u16, u16)> {
        call(Syscall::CreateReceive {
            target: receive,
            slots: 2,
            slot_size: 192,
        });
        let label = [u64::MAX, 0, 7][self.random.below(3) as usize];
        call(Syscall::CreateSend {
            source: receive,
            target: send,
            label,
            credits: 1,
        });
        let receives = syscall::receive(receive, self.memory, offset(at)).ok()?;
        let (sends, _) = syscall::activate(send).ok()?;
        Some((receives, sends))
    }

    /// Sends to itself, ends the endpoint for the reply, lets others use it, and replies.
    fn reply_late(&mut self) {
        let there = self.gate(MADE, MADE + 1, 12288 + 4096);
        let back = self.gate(MADE + 2, MADE + 3, 12288 + 8192);
        if let (Some((input, send)), Some((answers, _))) = (there, back) {
            self.buffer.0[..8].copy_from_slice(&u64::MAX.to_le_bytes());
            let sent = dtu::send(send, &self.buffer.0[..32], answers, u64::MAX);
            let mut fetched = None;
            for _ in 0..100 {
                fetched = dtu::fetch(input).ok().flatten();
                if fetched.is_some() {
                    break;
                }
            }
            let gate = MADE + 2;
            match self.random.below(3) {
                0 => Self::revoke_at(gate),
                1 => {
                    let endpoint = answers;
                    call(Syscall::Deactivate { gate, endpoint });
                }
                _ => {
                    let endpoint = input;
                    call(Syscall::Deactivate {
                        gate: MADE,
                        endpoint,
                    });
                }
            }
            // A neighbour, or the program itself, gets the endpoint.
            for _ in 0..self.random.below(3) {
                self.gate(MADE + 4, MADE + 5, 12288 + 8192);
            }
            if sent.is_ok()
                && let Some(place) = fetched
            {
                for _ in 0..3 {
                    let _ = dtu::reply(input, place, &self.buffer.0[..32]);
                }
            }
        }
        (MADE..MADE + 6).for_each(Self::revoke_at);
    }

    /// Offers services until nothing is left to pay with.
    fn offer(&mut self) {
        let (gate, target) = (self.place(), self.place());
        if self.gate(gate, gate + 1, 12288 + 4096).is_some() {
            call(Syscall::CreateService { gate, target });
        }
        for _ in 0..8 {
            let target = self.place();
            call(Syscall::CreateService { gate, target });
        }
        if self.random.chance(20) {
            Self::revoke_at(gate);
        }
    }

    /// A tile capability with traffic of its own; every activity there needs a bucket of its own.
    fn limited(&mut self) -> u16 {
        let target = self.place();
        call(Syscall::DeriveTile {
            source: SEL_TILE,
            target,
            endpoints: SHARE,
            budget: SHARE,
            period: 0,
            rate: 1000 + self.random.below(1000),
            burst: 512,
            tables: SHARE,
            priority: 0,
            idle: 1,
            activities: SHARE,
            windows: SHARE,
        });
        target
    }

    /// Calls that are refused after they requested a bucket of their own.
    fn refused_bucket(&mut self) {
        let (tile, target) = (self.limited(), self.place());
        let made = call(Syscall::CreateActivity {
            target,
            tile,
            purse: SEL_KERNEL_MEMORY,
            memory: self.memory,
            // Not a multiple of what a receive buffer needs.
            reply: 1,
            priority: 0,
            tile_priority: 0,
            name: Name::new("refused").unwrap_or_default(),
        });
        if made.is_some() {
            println!("won: a child without a place for answers");
        }
        self.refused += 1;
        if self.random.chance(50) {
            Self::revoke_at(tile);
        }
    }

    /// The same, and some that are not refused.
    fn buckets(&mut self) {
        self.refused_bucket();
        let (tile, target) = (self.limited(), self.place());
        self.create(target, tile, SEL_KERNEL_MEMORY);
        if self.random.chance(80) {
            Self::revoke_at(tile);
        }
    }

    /// A child whose pager is its creator, in ranges of all kinds, with read-only memory.
    fn pager(&mut self) {
        let (activity, gate) = (MADE + 20, MADE + 21);
        if self.create(activity, SEL_TILE, SEL_KERNEL_MEMORY) {
            let faults = self.gate(gate, gate + 1, 12288 + 4096);
            let (source, target) = (self.memory, gate + 2);
            call(Syscall::DeriveMemory {
                source,
                target,
                offset: offset(WITNESS),
                size: 4096,
                rights: MAP_READ,
            });
            let address =
                [PAGED, ENVIRONMENT_BASE, ADDRESS, u64::MAX << 12][self.random.below(4) as usize];
            let pages = [1, 4, 1 << 18][self.random.below(3) as usize];
            call(Syscall::SetPager {
                activity,
                gate: gate + 1,
                address,
                pages,
            });
            let map = |memory, address, rights| {
                call(Syscall::MapFrom {
                    activity,
                    memory,
                    address,
                    offset: 0,
                    pages: 1,
                    rights,
                });
            };
            map(target, ENVIRONMENT_BASE, MAP_READ);
            map(target, ENVIRONMENT_BASE, MAP_READ | MAP_WRITE);
            map(target, address, MAP_READ);
            self.begin(activity);
            for _ in 0..self.random.below(20) {
                if let Some((input, _)) = faults
                    && let Ok(Some(place)) = dtu::fetch(input)
                {
                    let rights = [0, MAP_READ, 7][self.random.below(3) as usize];
                    call(Syscall::MapFrom {
                        activity,
                        memory: self.memory,
                        address: PAGED,
                        offset: 0,
                        pages: 1 + self.random.below(2),
                        rights,
                    });
                    let _ = dtu::reply(input, place, &self.buffer.0[..8]);
                }
            }
            time::sleep_until(time::now() + 50_000);
            // Nobody had a capability for writing there, TileMux included.
            let words = PAGES.rest[(WITNESS as usize - 12288) / 4..].iter();
            if words
                .into_iter()
                .any(|word| word.load(Ordering::Relaxed) != 1)
            {
                println!("won: wrote through a capability to read");
            }
        }
        (activity..activity + 4).for_each(Self::revoke_at);
    }

    /// A bush of endpoints, revoked in one call.
    fn revoke(&mut self) {
        for target in MADE..MADE + 150 {
            let source = match target {
                MADE => self.memory,
                _ => MADE + self.random.below(u64::from(target - MADE)) as u16,
            };
            call(Syscall::DeriveMemory {
                source,
                target,
                offset: 0,
                size: 64,
                rights: MAP_READ,
            });
            let _ = syscall::activate(target);
        }
        Self::revoke_at(MADE);
        (MADE..MADE + 150).for_each(Self::revoke_at);
    }

    /// Sessions with others' services and its own, closed before anybody has answered.
    fn sessions(&mut self) {
        for _ in 0..4 {
            let (service, target) = (self.random.below(1024) as u16, self.place());
            let argument = self.random.next();
            call(Syscall::OpenSession {
                service,
                target,
                argument,
            });
            let count = self.random.below(3) as u16;
            call(Syscall::Exchange {
                session: target,
                delegate: self.random.below(2) as u8,
                own: self.place(),
                count,
                argument0: self.random.below(4),
                argument1: argument,
                argument2: 0,
            });
            Self::revoke_at(target);
        }
    }

    fn tell(&mut self) {
        for _ in 0..20 {
            let value = self.random.next();
            call(Syscall::Report { value });
            let value = self.random.below(64) << 58;
            call(Syscall::Report { value });
            let activity = self.place();
            call(Syscall::Tell { activity, value });
        }
    }

    /// Takes memory away while it is copied from and to.
    fn copy(&mut self) {
        let (source, target) = (self.memory, self.place());
        call(Syscall::DeriveMemory {
            source,
            target,
            offset: offset(12288),
            size: 4096,
            rights: 3,
        });
        if let Ok((endpoint, size)) = syscall::activate(target) {
            let gate = MemoryGate::new(endpoint, size);
            let (low, high) = self.buffer.0.split_at_mut(1024);
            let _ = gate.read(self.random.below(8192), low);
            Self::revoke_at(target);
            let _ = gate.write(self.random.below(4096), high);
        }
        Self::revoke_at(target);
    }

    /// Names that were once misunderstood, and similar ones.
    fn files(&mut self) {
        let Some(mount) = &mut self.mount else {
            return;
        };
        const NAMES: [&str; 12] = [
            "é/a..", "x", "x/v..", "x/v", "v..", "..", "x/..", "x//v..", "/", "é/", "x/./v..",
            "x/é..",
        ];
        // A file, an empty folder, and the name that once meant one while it named the other.
        let _ = mount.make_folder("y");
        let wrote = mount.open("w..", WRITE | CREATE).and_then(|mut file| {
            file.write(b"kept")?;
            file.close()
        });
        if wrote.is_ok() && mount.remove("y/w..").is_ok() {
            println!("won: removed a file by the name of another");
        }
        let name = NAMES[self.random.below(12) as usize];
        match self.random.below(4) {
            0 => {
                let _ = mount.make_folder(name);
            }
            1 => {
                let _ = mount.remove(name);
            }
            2 => {
                let _ = mount.list(name, |_| ());
            }
            _ => {
                let flags = [READ, WRITE | CREATE, WRITE | CREATE | TRUNCATE];
                if let Ok(mut file) = mount.open(name, flags[self.random.below(3) as usize]) {
                    let _ = file.write(b"stolen");
                    let _ = file.read(&mut self.buffer.0[..64]);
                }
            }
        }
    }

    /// Texts of empty lines, each of which gets its writer's name.
    fn lines(&mut self) {
        const EMPTY: &str = match core::str::from_utf8(&[b'\n'; 1000]) {
            Ok(text) => text,
            Err(_) => "",
        };
        println!("{}", &EMPTY[..self.random.below(1000) as usize]);
    }

    /// Waits for something that will never come.
    fn sleep(&mut self) {
        call(Syscall::CreateSemaphore {
            target: MADE,
            value: 0,
        });
        call(Syscall::SemaphoreDown { semaphore: MADE });
    }

    /// Any call with anything, except calls that end or stop itself.
    fn calls(&mut self) {
        for _ in 0..50 {
            let random = &mut self.random;
            let mut words: [u64; SYSCALL_WORDS] = core::array::from_fn(|_| match random.below(8) {
                0..3 => u64::from(PIECE) + random.below(8),
                3 => random.below(6),
                4 => 1 << random.below(20),
                5 => random.below(32),
                6 => u64::MAX,
                _ => random.next(),
            });
            words[0] = random.below(33);
            let Ok(request) = Syscall::decode(&words) else {
                continue;
            };
            match request {
                Syscall::WaitEvent { until } if until != 1 => {}
                Syscall::SemaphoreDown { .. } => {}
                Syscall::Stop { activity: 0 } => {}
                Syscall::Revoke { selector, .. } if selector < SEL_FREE => {}
                _ => {
                    call(request);
                }
            }
        }
    }
}

fn main() -> u64 {
    let mut random = Random::new(argument::value("seed", 1));
    let wanted = argument::text("kind").unwrap_or("random");
    let rounds: u64 = argument::value("rounds", u64::MAX);
    let every: u64 = argument::value("say", 1000);
    // The last page of code has random contents.
    for (place, word) in PAGES.code.iter().enumerate() {
        let code = match place {
            0..5 => CALLS[place],
            EXITS_AT..68 => EXITS[place - EXITS_AT],
            1024..1028 => FAULTS[place - 1024],
            2048.. => random.next() as u32,
            _ => continue,
        };
        word.store(code, Ordering::Relaxed);
    }
    PAGES.rest[0].store(1, Ordering::Relaxed);
    // Sessions take the first selectors.
    let mount = SendGate::find("files").and_then(|_| Mount::connect("files").ok());
    let size = offset(7 * 4096);
    let cut = call(Syscall::CutMemory {
        source: SEL_MEMORY,
        target: PIECE,
        size,
    });
    // A manager makes memory visible wherever it may.
    for tile in 0..8 {
        let target = SEL_FREE + 300 + tile;
        call(Syscall::CutMemory {
            source: SEL_MEMORIES,
            target,
            size: 8192,
        });
        call(Syscall::ConfigureTile {
            tile: SEL_TILES + tile,
            memory: target,
            tables: 20,
        });
    }
    let mut hostile = Hostile {
        random,
        children: 0,
        refused: 0,
        memory: cut.map_or(SEL_MEMORY, |_| PIECE),
        buffer: MessageBuffer::new(),
        mount,
    };
    // As a manager it reports that everything below it has ended, and continues.
    let value = REPORT_DONE;
    call(Syscall::Report { value });
    if wanted == "sleeps" {
        hostile.sleep();
    }
    let chosen = KINDS.iter().find(|(name, _)| *name == wanted);
    for round in 0..rounds {
        let (_, act) = match chosen {
            Some(kind) => kind,
            // Its children are a part of it.
            None if round < 2 => &KINDS[1],
            None => &KINDS[hostile.random.below(KINDS.len() as u64) as usize],
        };
        act(&mut hostile);
        if (round + 1).is_multiple_of(every) {
            hostile.say(round + 1);
        }
    }
    hostile.say(rounds);
    0
}
