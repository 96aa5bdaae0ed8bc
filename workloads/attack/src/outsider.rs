//! A hostile program of small tricks, each with numbers that nobody honest would choose; it goes on until it is stopped.
//!
//! Arguments: `kind` (`random`, or one of [`KINDS`]), `seed` (1), `rounds` (without end), `say` (1000): after how many it says how far it is.
//! Needs nothing of its description; with kernel memory, endpoints and page tables it can do more. Gates, if it has them: `files` (send, to the
//! file service). If it gets something that nobody may have given it, it says `won: ...`.
#![no_std]
#![no_main]

use bulkhead_lib::abi::environment::ENVIRONMENT_BASE;
use bulkhead_lib::abi::memory_map::DTU_BASE;
use bulkhead_lib::abi::syscall::{
    KERNEL_LABEL, MAP_EXECUTE, MAP_LAZY, MAP_READ, MAP_WRITE, SEL_ACTIVITY, SEL_FREE,
    SEL_KERNEL_MEMORY, SEL_MEMORY, SEL_TILE, SHARE, Syscall,
};
use bulkhead_lib::abi::tilemux::Ecall;
use bulkhead_lib::abi::words::Name;
use bulkhead_lib::file::{CREATE, Mount, WRITE};
use bulkhead_lib::gate::{MessageBuffer, SendGate};
use bulkhead_lib::hal::{dtu, user};
use bulkhead_lib::{argument, lines, println, syscall, time};
use bulkhead_random::Random;
use core::ptr::addr_of;
use core::sync::atomic::{AtomicU64, Ordering};

bulkhead_lib::main!(main);

/// What it makes and forgets, and how many selectors it plays with.
const MADE: u16 = SEL_FREE + 8;
const PLACES: u16 = 120;
/// The piece of its own memory that children live in, and the one behind it that may be cleared: nothing of its own is there.
const PIECE: u16 = SEL_FREE + 7;
const SPOIL: u16 = SEL_FREE + 6;

/// Room for replies and buffers, page by page, and behind that [`SPOIL`]; not zero, so it is loaded.
#[repr(C, align(4096))]
struct Room([u8; 16 * 4096]);
static ROOM: Room = Room([1; 16 * 4096]);

type Kind = (&'static str, fn(&mut Outsider));
const KINDS: [Kind; 23] = [
    ("semaphores", Outsider::semaphores),
    ("grafts", Outsider::grafts),
    ("pages", Outsider::pages),
    ("cuts", Outsider::cuts),
    ("purses", Outsider::purses),
    ("tiles", Outsider::tiles),
    ("numbers", Outsider::endpoint_numbers),
    ("lends", Outsider::lends),
    ("late-yes", Outsider::late_yes),
    ("own-server", Outsider::own_server),
    ("looks", Outsider::looks),
    ("waits", Outsider::waits),
    ("texts", Outsider::texts),
    ("translations", Outsider::translations),
    ("flushes", Outsider::flushes),
    ("windows", Outsider::windows),
    ("names", Outsider::names),
    ("maps", Outsider::maps),
    ("words", Outsider::words),
    ("long-names", Outsider::long_names),
    ("heirs", Outsider::heirs),
    ("seasons", Outsider::seasons),
    ("registers", Outsider::registers),
];

struct Outsider {
    random: Random,
    children: u64,
    buffer: MessageBuffer,
    mount: Option<Mount>,
}

static REFUSED: AtomicU64 = AtomicU64::new(0);

fn call(request: Syscall) -> Option<syscall::Results> {
    let done = syscall::call(&request).ok();
    REFUSED.fetch_add(done.is_none().into(), Ordering::Relaxed);
    done
}

/// An offset into its memory of a page of [`ROOM`].
fn room(page: u64) -> u64 {
    addr_of!(ROOM) as u64 - ENVIRONMENT_BASE + 4096 * page
}

impl Outsider {
    fn revoke(&mut self, selector: u16) {
        let keep = u8::from(self.random.chance(10));
        call(Syscall::Revoke { selector, keep });
    }

    fn forget(&mut self) {
        for selector in MADE..MADE + PLACES {
            let _ = syscall::call(&Syscall::Revoke { selector, keep: 0 });
        }
        let until = 1;
        while syscall::call(&Syscall::WaitEvent { until }).is_ok() {}
    }

    fn place(&mut self) -> u16 {
        MADE + self.random.below(PLACES.into()) as u16
    }

    /// A number that somebody forgot to think of.
    fn odd(&mut self) -> u64 {
        let random = &mut self.random;
        match random.below(8) {
            0 => 0,
            1 => 1,
            2 => u64::MAX,
            3 => 1 << random.below(64),
            4 => (1u64 << random.below(64)).wrapping_sub(1),
            5 => u64::MAX - random.below(4096),
            6 => 4096 * random.below(64),
            _ => random.below(5000),
        }
    }

    fn child(&mut self, target: u16, tile: u16, purse: u16, name: &str) -> bool {
        let reply = room(self.random.below(4));
        let made = call(Syscall::CreateActivity {
            target,
            tile,
            purse,
            memory: PIECE,
            reply,
            priority: self.random.below(3) as u8,
            tile_priority: 0,
            name: Name::new(name).unwrap_or_default(),
        });
        self.children += u64::from(made.is_some());
        made.is_some()
    }

    fn receive(&mut self, gate: u16, slots: u8, size: u16) -> Option<u16> {
        call(Syscall::CreateReceive {
            target: gate,
            slots,
            slot_size: size,
        })?;
        syscall::receive(gate, PIECE, room(4)).ok()
    }

    /// Semaphores full to the brim, given away, taken back, raised and lowered by whoever still has one.
    fn semaphores(&mut self) {
        let value = [0, 1, u32::MAX, u32::MAX - 1][self.random.below(4) as usize];
        let target = MADE;
        call(Syscall::CreateSemaphore { target, value });
        let activity = MADE + 1;
        let lives = self.child(activity, SEL_TILE, SEL_KERNEL_MEMORY, "sleeper");
        for _ in 0..6 {
            let semaphore = MADE + 2 + self.random.below(4) as u16;
            match self.random.below(5) {
                0 if lives => {
                    let source = MADE;
                    let target = self.place();
                    call(Syscall::Delegate {
                        activity,
                        source,
                        target,
                    });
                    call(Syscall::Obtain {
                        activity,
                        source: target,
                        target: semaphore,
                    });
                }
                1 => drop(call(Syscall::SemaphoreUp { semaphore: MADE })),
                2 => drop(call(Syscall::SemaphoreUp { semaphore })),
                3 if value > 100 => drop(call(Syscall::SemaphoreDown { semaphore: MADE })),
                _ => self.revoke(semaphore),
            }
        }
        if self.random.chance(50) {
            call(Syscall::Stop { activity });
        }
        self.forget();
    }

    /// Gives a child its own activity, purse and tile, and ends them from the wrong end.
    fn grafts(&mut self) {
        let activity = MADE;
        if self.child(activity, SEL_TILE, SEL_KERNEL_MEMORY, "graft") {
            for source in [SEL_ACTIVITY, SEL_KERNEL_MEMORY, SEL_TILE, SEL_MEMORY, MADE] {
                let target = self.place();
                call(Syscall::Delegate {
                    activity,
                    source,
                    target,
                });
                let back = self.place();
                call(Syscall::Obtain {
                    activity,
                    source: target,
                    target: back,
                });
                if self.random.chance(30) {
                    let selector = self.place();
                    call(Syscall::Revoke { selector, keep: 1 });
                }
            }
            // What the child was given of this one's own memory ends with the child, not this one.
            if self.random.chance(50) {
                call(Syscall::Stop { activity });
            }
        }
        self.forget();
    }

    /// A child with a pager for a range, and the pager's memory; none if it cannot be made.
    fn paged(&mut self, address: u64, pages: u64) -> Option<(u16, u16)> {
        let (activity, gate, memory) = (MADE, MADE + 1, MADE + 3);
        if !self.child(activity, SEL_TILE, SEL_KERNEL_MEMORY, "paged") {
            return None;
        }
        self.receive(gate, 1, 64);
        call(Syscall::CreateSend {
            source: gate,
            target: gate + 1,
            label: KERNEL_LABEL,
            credits: 1,
        });
        call(Syscall::SetPager {
            activity,
            gate: gate + 1,
            address,
            pages,
        });
        call(Syscall::DeriveMemory {
            source: PIECE,
            target: memory,
            offset: 0,
            size: room(8),
            rights: 7,
        });
        Some((activity, memory))
    }

    /// A child whose pager shows it other memory where the registers of its unit are, and takes it back.
    fn registers(&mut self) {
        let first = DTU_BASE - 4096 * self.random.below(3);
        if let Some((activity, memory)) = self.paged(first, 3) {
            if self.random.chance(50) {
                call(Syscall::Start {
                    activity,
                    entry: first,
                    stack: 0,
                });
            }
            for rights in [MAP_READ | MAP_WRITE, MAP_READ, 0] {
                call(Syscall::MapFrom {
                    activity,
                    memory,
                    address: DTU_BASE,
                    offset: 0,
                    pages: 1,
                    rights,
                });
            }
        }
        self.forget();
    }

    /// A child with a pager, which shows it anything anywhere, and takes the memory away in the middle.
    fn pages(&mut self) {
        let address = 0x3000_0000 + 4096 * self.random.below(1024);
        let pages = 1 + self.random.below(600);
        if let Some((activity, memory)) = self.paged(address, pages) {
            for _ in 0..10 {
                let at = address.wrapping_add(4096 * self.random.below(pages + 2));
                let (offset, pages) = (4096 * self.random.below(8), self.random.below(70));
                let rights = self.random.below(9) as u8;
                call(Syscall::MapFrom {
                    activity,
                    memory,
                    address: at,
                    offset,
                    pages,
                    rights,
                });
            }
            if self.random.chance(50) {
                call(Syscall::Start {
                    activity,
                    entry: address,
                    stack: 0,
                });
            }
            self.revoke(memory);
        }
        self.forget();
    }

    /// Memory in as many pieces as there may be, some of them cut again.
    fn cuts(&mut self) {
        for target in MADE..MADE + PLACES {
            let source = if target > MADE && self.random.chance(60) {
                MADE + self.random.below(u64::from(target - MADE)) as u16
            } else {
                SPOIL
            };
            let size = match self.random.below(4) {
                0 => self.odd(),
                _ => 64 << self.random.below(8),
            };
            call(Syscall::CutMemory {
                source,
                target,
                size,
            });
        }
        self.forget();
    }

    /// A purse in a purse, and so on, and whatever hangs on them.
    fn purses(&mut self) {
        let mut source = SEL_KERNEL_MEMORY;
        for target in MADE..MADE + PLACES {
            let bytes = match self.random.below(6) {
                0 => self.odd(),
                _ => 16_000 - 100 * u64::from(target - MADE),
            };
            if call(Syscall::DeriveKernelMemory {
                source,
                target,
                bytes,
            })
            .is_some()
            {
                source = target;
            }
        }
        self.child(MADE + PLACES - 1, SEL_TILE, source, "poor");
        if self.random.chance(50) {
            self.revoke(MADE);
        }
        self.forget();
    }

    /// Tile capabilities below each other with all sorts of quotas; children in some of them.
    fn tiles(&mut self) {
        let mut source = SEL_TILE;
        for target in MADE..MADE + 20 {
            let made = Syscall::DeriveTile {
                source,
                target,
                endpoints: if self.random.chance(50) {
                    SHARE
                } else {
                    self.odd() % 20
                },
                budget: if self.random.chance(50) {
                    SHARE
                } else {
                    self.odd()
                },
                period: self.odd(),
                rate: if self.random.chance(50) {
                    SHARE
                } else {
                    self.odd()
                },
                burst: if self.random.chance(50) {
                    SHARE
                } else {
                    self.odd()
                },
                tables: if self.random.chance(50) {
                    SHARE
                } else {
                    self.odd() % 20
                },
                priority: self.odd() as u8,
                idle: self.random.below(2) as u8,
                activities: if self.random.chance(50) {
                    SHARE
                } else {
                    self.odd() % 4
                },
                windows: if self.random.chance(50) {
                    SHARE
                } else {
                    self.odd() % 2
                },
            };
            if call(made).is_some() {
                source = target;
                if self.random.chance(20) {
                    self.child(target + 20, source, SEL_KERNEL_MEMORY, "deep");
                }
            }
        }
        self.forget();
    }

    /// Wants every endpoint of its tile by its number: TileMux's, the kernel's channels, its neighbours'.
    fn endpoint_numbers(&mut self) {
        call(Syscall::DeriveMemory {
            source: PIECE,
            target: MADE,
            offset: 0,
            size: 64,
            rights: MAP_READ,
        });
        for _ in 0..20 {
            let endpoint = match self.random.below(3) {
                0 => self.random.below(12) as u16,
                1 => self.odd() as u16,
                _ => self.random.below(200) as u16,
            };
            let request = Syscall::Activate {
                gate: MADE,
                activity: SEL_ACTIVITY,
                memory: SEL_MEMORY,
                offset: 0,
                replies: self.random.below(2) as u8,
                endpoint,
            };
            if call(request).is_some() && endpoint < 10 {
                println!("won: endpoint {endpoint} of TileMux");
            }
            let gate = MADE;
            call(Syscall::Deactivate { gate, endpoint });
            call(Syscall::Senders { endpoint });
        }
        self.forget();
    }

    /// Lends memory, sends messages and takes everything away while they are under way.
    fn lends(&mut self) {
        let (gate, send) = (MADE, MADE + 1);
        let slots = 1 << self.random.below(3);
        let Some(input) = self.receive(gate, slots, 192) else {
            return self.forget();
        };
        let label = self.odd();
        call(Syscall::CreateSend {
            source: gate,
            target: send,
            label,
            credits: slots,
        });
        if let Ok((endpoint, _)) = syscall::activate(send) {
            for _ in 0..3 {
                let _ = dtu::send(endpoint, &self.buffer.0[..32], input, label);
                match self.random.below(4) {
                    0 => self.revoke(send),
                    1 => {
                        let endpoint = input;
                        call(Syscall::Deactivate { gate, endpoint });
                    }
                    2 => drop(call(Syscall::Deactivate {
                        gate: send,
                        endpoint,
                    })),
                    _ => {}
                }
                let _ = syscall::receive(gate, PIECE, room(5));
                let _ = syscall::activate(send);
                while let Ok(Some(offset)) = dtu::fetch(input) {
                    let _ = match self.random.below(3) {
                        0 => dtu::reply(input, offset, &self.buffer.0[..64]),
                        1 => dtu::acknowledge(input, offset),
                        _ => break,
                    };
                }
            }
        }
        self.forget();
    }

    /// Asks itself for a session, and says yes when it is too late, with numbers of its choice.
    fn late_yes(&mut self) {
        let (gate, service, session) = (MADE, MADE + 1, MADE + 2);
        let Some(input) = self.receive(gate, 4, 192) else {
            return self.forget();
        };
        call(Syscall::CreateService {
            gate,
            target: service,
        });
        // Each time it waits for itself until the kernel's patience ends.
        if self.random.chance(30) {
            let argument = self.odd();
            let answer = syscall::call(&Syscall::OpenSession {
                service,
                target: session,
                argument,
            });
            if answer.is_ok() {
                println!("won: a session that nobody has agreed to");
            }
            if let Ok(Some(offset)) = dtu::fetch(input) {
                self.buffer.0[..8].fill(0);
                self.buffer.0[8..16].copy_from_slice(&argument.to_le_bytes());
                let _ = dtu::reply(input, offset, &self.buffer.0[..16]);
            }
        }
        if syscall::call(&Syscall::Query { selector: session }).is_ok() {
            println!("won: a session that came too late");
        }
        self.forget();
    }

    /// Offers services over gates that go, and offers them again.
    fn own_server(&mut self) {
        let gate = MADE;
        self.receive(gate, 2, 128);
        for target in MADE + 1..MADE + 6 {
            call(Syscall::CreateService { gate, target });
            if self.random.chance(30) {
                self.revoke(gate);
                self.receive(gate, 2, 128);
            }
            if self.random.chance(30) {
                self.revoke(target);
            }
        }
        self.forget();
    }

    /// Asks about everything.
    fn looks(&mut self) {
        for _ in 0..30 {
            let selector = self.odd() as u16;
            call(Syscall::Query { selector });
            call(Syscall::Usage { selector });
            let endpoint = selector;
            call(Syscall::Senders { endpoint });
            let (modules, key) = (self.random.below(6) as u16, self.odd());
            let target = MADE;
            call(Syscall::OpenModule {
                modules,
                target,
                key,
            });
        }
        self.forget();
    }

    /// Waits for other endpoints than its own, for moments that are over or never come near, and gives its turn away.
    fn waits(&mut self) {
        for _ in 0..30 {
            let endpoint = match self.random.below(3) {
                0 => u64::from(u16::MAX),
                1 => self.random.below(200),
                _ => self.odd(),
            };
            let until = match self.random.below(3) {
                0 => 1 + self.random.below(1000),
                1 => time::now(),
                _ => time::now() + self.random.below(20_000),
            };
            user::ecall(Ecall::Wait, endpoint, until);
            user::ecall(Ecall::Yield, self.odd(), 0);
        }
    }

    /// Texts from anywhere, of any length.
    fn texts(&mut self) {
        for _ in 0..20 {
            let address = match self.random.below(3) {
                0 => ENVIRONMENT_BASE + room(16) - self.random.below(200),
                1 => self.odd(),
                _ => ENVIRONMENT_BASE + self.random.below(room(16)),
            };
            let length = match self.random.below(3) {
                0 => self.odd(),
                _ => self.random.below(130),
            };
            user::ecall(Ecall::Print, address, length);
        }
    }

    fn translations(&mut self) {
        for _ in 0..60 {
            let (address, rights) = (self.odd(), self.odd());
            let allowed = user::ecall(Ecall::Translate, address, rights) == 0;
            // The first pages belong to nobody, and the registers of the unit are no memory.
            if allowed && rights & 3 != 0 && address < ENVIRONMENT_BASE {
                println!("won: {address:#x}");
            }
        }
    }

    /// Writes back and dirties all that it has.
    fn flushes(&mut self) {
        let page = self.random.below(8) as usize * 4096;
        lines::write_back(&ROOM.0[page..page + 8192]);
    }

    /// Shows memory of all sizes to its tile.
    fn windows(&mut self) {
        for target in MADE..MADE + 4 {
            let size = 4096 * self.random.below(4) + self.random.below(2) * 64;
            call(Syscall::CutMemory {
                source: SPOIL,
                target,
                size,
            });
            let tables = self.odd();
            let request = Syscall::ConfigureTile {
                tile: SEL_TILE,
                memory: target,
                tables,
            };
            if call(request).is_some() {
                println!("won: a window");
            }
        }
        self.forget();
    }

    fn names(&mut self) {
        const NAMES: [&str; 8] = [
            "a-name-of-as-many-letters-as-go",
            "root",
            "sensor",
            "kernel",
            "TileMux",
            "nobody",
            "actuator:17",
            "high",
        ];
        for target in MADE..MADE + 3 {
            let name = NAMES[self.random.below(8) as usize];
            if self.child(target, SEL_TILE, SEL_KERNEL_MEMORY, name) {
                call(Syscall::Stop { activity: target });
            }
        }
        self.forget();
    }

    /// A child with all pages in odd places, lazy ones among them.
    fn maps(&mut self) {
        let activity = MADE;
        if self.child(activity, SEL_TILE, SEL_KERNEL_MEMORY, "mapped") {
            for _ in 0..8 {
                let address = match self.random.below(3) {
                    0 => 0x0300_0000,
                    1 => self.odd(),
                    _ => 4096 * self.random.below(1 << 26),
                };
                let lazy = self.random.below(2) as u8 * MAP_LAZY;
                let rights = MAP_READ | (self.random.below(4) as u8 * MAP_WRITE) | lazy;
                let (offset, pages) = (self.odd(), self.odd());
                call(Syscall::Map {
                    activity,
                    address,
                    offset,
                    pages,
                    rights: rights & (15 | MAP_EXECUTE),
                });
            }
            let (entry, stack) = (self.odd(), self.odd());
            call(Syscall::Start {
                activity,
                entry,
                stack,
            });
            // Whoever starts twice is refused.
            if self.random.chance(50) {
                call(Syscall::Stop { activity });
            }
        }
        self.forget();
    }

    /// Words for its manager and its children without a pause.
    fn words(&mut self) {
        let activity = MADE;
        self.child(activity, SEL_TILE, SEL_KERNEL_MEMORY, "told");
        for topic in 0..40u64 {
            let value = topic << 58 | self.random.below(1 << 20);
            call(Syscall::Tell { activity, value });
            let value = self.odd() >> 1;
            call(Syscall::Report { value });
        }
        self.forget();
    }

    /// Files with names as long as a message allows.
    fn long_names(&mut self) {
        let Some(mount) = &mut self.mount else {
            return;
        };
        const LONG: &str = match core::str::from_utf8(&[b'n'; 320]) {
            Ok(text) => text,
            Err(_) => "",
        };
        let length = 1 + self.random.below(319) as usize;
        let name = &LONG[..length];
        if let Ok(mut file) = mount.open(name, WRITE | CREATE) {
            file.seek(self.random.next());
            let _ = file.write(b"far");
            let _ = file.close();
        }
        let _ = mount.make_folder(name);
        let _ = mount.remove(name);
    }

    /// Children in a piece of its memory that goes before they do.
    fn heirs(&mut self) {
        let (memory, activity) = (MADE, MADE + 1);
        call(Syscall::CutMemory {
            source: SPOIL,
            target: memory,
            size: 3 * 4096,
        });
        let made = call(Syscall::CreateActivity {
            target: activity,
            tile: SEL_TILE,
            purse: SEL_KERNEL_MEMORY,
            memory,
            reply: 4096,
            priority: 0,
            tile_priority: 0,
            name: Name::new("heir").unwrap_or_default(),
        });
        self.children += u64::from(made.is_some());
        call(Syscall::Map {
            activity,
            address: ENVIRONMENT_BASE,
            offset: 0,
            pages: 3,
            rights: MAP_READ | MAP_EXECUTE,
        });
        call(Syscall::Start {
            activity,
            entry: ENVIRONMENT_BASE + 8,
            stack: 0,
        });
        self.revoke(memory);
        self.forget();
    }

    /// All at once, at the moments at which others begin their jobs.
    fn seasons(&mut self) {
        time::sleep_until((time::now() / 1_000_000 + 1) * 1_000_000);
        let gate = MADE;
        for target in MADE..MADE + 60 {
            let source = if target == MADE { PIECE } else { target - 1 };
            call(Syscall::DeriveMemory {
                source,
                target,
                offset: 0,
                size: 64,
                rights: MAP_READ,
            });
            let _ = syscall::activate(target);
        }
        self.revoke(gate);
        self.forget();
    }
}

fn main() -> u64 {
    let wanted = argument::text("kind").unwrap_or("random");
    let rounds: u64 = argument::value("rounds", u64::MAX);
    let every: u64 = argument::value("say", 1000);
    let mount = SendGate::find("files").and_then(|_| Mount::connect("files").ok());
    for (target, size) in [(PIECE, room(8)), (SPOIL, room(16) - room(8))] {
        let source = SEL_MEMORY;
        let cut = Syscall::CutMemory {
            source,
            target,
            size,
        };
        if let Err(error) = syscall::call(&cut) {
            println!("no memory to play with: {error:?}");
            return 1;
        }
    }
    let mut outsider = Outsider {
        random: Random::new(argument::value("seed", 1)),
        children: 0,
        buffer: MessageBuffer::new(),
        mount,
    };
    let chosen = KINDS.iter().find(|(name, _)| *name == wanted);
    for round in 1..=rounds {
        let any = outsider.random.below(KINDS.len() as u64) as usize;
        let (_, act) = chosen.unwrap_or(&KINDS[any]);
        act(&mut outsider);
        if round.is_multiple_of(every) {
            println!(
                "{round} rounds, {} children, {} refused",
                outsider.children,
                REFUSED.load(Ordering::Relaxed)
            );
        }
    }
    0
}
