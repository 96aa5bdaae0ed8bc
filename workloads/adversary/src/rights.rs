//! Attacks on kernel, TileMux and services with the rights that every application has: its activity, its purse, its tile, its memory.
//!
//! Why it exists: a program that may create something can create it often, end it at a bad moment, or leave it half-made. Each kind is one
//! way in which that once stopped or delayed others; its strength picks a variation. What it deliberately does not know: its victims.
//!
//! A child is a copy of this program without its data: code and constants of its maker, a page with an environment, a stack. The deadline
//! field of that environment, which no child needs, selects its behaviour.

use alloc::boxed::Box;
use bulkhead_lib::abi::environment::{ENVIRONMENT_BASE, Environment, PROGRAM_BASE};
use bulkhead_lib::abi::syscall::{
    MAP_EXECUTE, MAP_READ, MAP_WRITE, SEL_FREE, SEL_KERNEL_MEMORY, SEL_MEMORY, SEL_SESSIONS,
    SEL_TILE, SHARE, Syscall,
};
use bulkhead_lib::abi::words::Name;
use bulkhead_lib::hal::dtu;
use bulkhead_lib::zerocopy::IntoBytes;
use bulkhead_lib::{environment, syscall, time};
use bulkhead_random::Random;

const PAGE: u64 = 4096;
/// The first selector of one attempt.
const FIRST: u16 = SEL_FREE + 64;
/// The first selector that is not used.
const END: u16 = SEL_SESSIONS - 64;
/// Offset of a child's buffer for replies to its calls in its environment's page.
const REPLY: u64 = 2048;

/// What a child does.
#[derive(Clone, Copy)]
#[repr(u64)]
enum Role {
    /// Uses all processor time that it gets.
    Spin = 1,
    /// Waits at the semaphore that it finds at [`SEL_FREE`].
    Wait = 2,
    /// Calls the kernel without end.
    Call = 3,
    /// Ends.
    End = 4,
}

/// Begins a child. Its environment selects its behaviour.
extern "C" fn child() -> ! {
    let role = environment().deadline;
    loop {
        match role {
            2 => {
                let wait = Syscall::SemaphoreDown {
                    semaphore: SEL_FREE,
                };
                let _ = syscall::call(&wait);
            }
            3 => drop(syscall::call(&Syscall::Nothing {})),
            4 => bulkhead_lib::exit(0),
            _ => core::hint::spin_loop(),
        }
    }
}

/// Pages of a child: its environment and its stack, and buffers of receive gates.
#[repr(C, align(4096))]
struct Pages([[u8; PAGE as usize]; 4]);

/// State of these attacks from one attempt to the next.
pub struct Rights {
    pages: Option<Box<Pages>>,
    next: u16,
    /// Endpoint with a message that was never answered, and the message's offset.
    open: Option<(u16, u32)>,
}

impl Rights {
    pub const fn new() -> Self {
        Self {
            pages: None,
            next: FIRST,
            open: None,
        }
    }

    /// Does a little of one kind.
    pub fn attack(&mut self, kind: u64, strength: u64, random: &mut Random, senders: &[u16]) {
        match kind {
            14 => self.children(strength),
            15 => self.shares(strength, random),
            16 => self.replies(strength),
            17 => self.names(strength, random, senders),
            18 => self.revocations(strength),
            19 => self.services(strength),
            20 => self.refused(strength, random),
            21 => self.crowds(strength),
            _ => self.mappings(strength),
        }
    }

    /// A fresh selector; from time to time everything that was made is revoked, and the selectors start again.
    fn selector(&mut self) -> u16 {
        if self.next >= END {
            self.forget();
        }
        self.next += 1;
        self.next - 1
    }

    fn forget(&mut self) {
        for selector in FIRST..self.next {
            revoke(selector);
        }
        self.next = FIRST;
    }

    fn pages(&mut self) -> &mut Pages {
        self.pages
            .get_or_insert_with(|| Box::new(Pages([[0; PAGE as usize]; 4])))
    }

    /// Offset in its memory of one of its pages: they are in the heap, after the stack and the two unmapped pages beside the stack.
    fn offset(&mut self, page: usize) -> u64 {
        let address = self.pages().0[page].as_ptr() as u64;
        address - ENVIRONMENT_BASE - 2 * PAGE
    }

    /// Creates an activity on its own tile, in its own memory. Returns its selector, its number and its endpoints for calls.
    fn create(&mut self, tile: u16, purse: u16, priority: u8) -> Option<(u16, [u64; 3])> {
        let (target, page) = (self.selector(), self.offset(0));
        let create = Syscall::CreateActivity {
            target,
            tile,
            purse,
            memory: SEL_MEMORY,
            reply: page + REPLY,
            priority: 0,
            tile_priority: priority,
            name: Name::new("child")?,
        };
        let [id, send, receive, ..] = syscall::call(&create).ok()?;
        Some((target, [id, send, receive]))
    }

    /// Maps code, environment and stack of a child, and starts it.
    fn start(&mut self, target: u16, ids: [u64; 3], role: Role) -> bool {
        let own = environment();
        let (page, stack) = (self.offset(0), self.offset(1));
        let top = self.pages().0[1].as_ptr() as u64 + PAGE;
        let copy = Environment {
            activity: ids[0] as u16,
            syscall_send: ids[1] as u16,
            syscall_reply: ids[2] as u16,
            syscall_buffer: ENVIRONMENT_BASE + REPLY,
            deadline: role as u64,
            gates: 0,
            arguments: 0,
            ..*own
        };
        let bytes = copy.as_bytes();
        self.pages().0[0][..bytes.len()].copy_from_slice(bytes);
        // Everything below its maker's buffers is code, constants and data that a child does not change.
        let code = (own.stack_bottom - PAGE - PROGRAM_BASE) / PAGE;
        let map = |address, offset, pages, rights| {
            let map = Syscall::Map {
                activity: target,
                address,
                offset,
                pages,
                rights,
            };
            syscall::call(&map).is_ok()
        };
        map(ENVIRONMENT_BASE, page, 1, MAP_READ | MAP_WRITE)
            && map(PROGRAM_BASE, PAGE, code, MAP_READ | MAP_EXECUTE)
            && map(top - PAGE, stack, 1, MAP_READ | MAP_WRITE)
            && syscall::call(&Syscall::Start {
                activity: target,
                entry: child as extern "C" fn() -> ! as usize as u64,
                stack: top,
            })
            .is_ok()
    }

    /// Children come and go, and nobody asks how they ended.
    fn children(&mut self, strength: u64) {
        let Some((target, ids)) = self.create(SEL_TILE, SEL_KERNEL_MEMORY, 0) else {
            return self.forget();
        };
        match strength % 4 {
            // Never started.
            0 => {}
            1 => drop(self.start(target, ids, Role::Spin)),
            2 => drop(self.start(target, ids, Role::End)),
            // Nothing is mapped: it ends at its first instruction.
            _ => {
                let _ = syscall::call(&Syscall::Start {
                    activity: target,
                    entry: PROGRAM_BASE,
                    stack: 0,
                });
            }
        }
        if strength % 4 >= 2 {
            time::sleep_until(time::now() + 5000);
        }
        match strength & 4 {
            0 => drop(syscall::call(&Syscall::Stop { activity: target })),
            _ => revoke(target),
        }
    }

    /// Asks for processor time with periods and priorities that it was not given, for children that use all of it.
    fn shares(&mut self, strength: u64, random: &mut Random) {
        let own = environment().period.max(1_000_000);
        let period = match strength % 4 {
            0 => 1000 * own * 1000,
            1 => own,
            2 => 20_000,
            _ => 1 + random.next() % (1 << 40),
        };
        let tile = self.selector();
        // As much as there is, as urgent as it may be.
        let tries = [255, 200, 128, 64, 16, 4, 1, 0]
            .map(|priority| [10, 8, 5, 2, 1].map(|part| (part, priority)));
        let got = tries.as_flattened().iter().find(|(part, priority)| {
            let cpu = (period / 10 * part, period);
            syscall::call(&derive_tile(tile, cpu, (SHARE, SHARE), *priority)).is_ok()
        });
        let priority = got.map_or(255, |got| got.1);
        let derived = self.create(tile, SEL_KERNEL_MEMORY, priority);
        let created = derived.or_else(|| self.create(SEL_TILE, SEL_KERNEL_MEMORY, 255));
        if let Some((target, ids)) = created {
            let role = match strength & 4 {
                0 => Role::Spin,
                _ => Role::Call,
            };
            let _ = self.start(target, ids, role);
            time::sleep_until(time::now() + 500_000);
            revoke(target);
        }
        revoke(tile);
    }

    /// A receive gate of its own, active. Returns its selector and its endpoint.
    fn receiver(&mut self, page: usize, at: u64) -> Option<(u16, u16)> {
        let (target, offset) = (self.selector(), self.offset(page) + at);
        let create = Syscall::CreateReceive {
            target,
            slots: 2,
            slot_size: 256,
        };
        syscall::call(&create).ok()?;
        let endpoint = syscall::receive(target, SEL_MEMORY, offset).ok()?;
        Some((target, endpoint))
    }

    /// Sends to itself, directs the reply to an endpoint that it gives up, and replies when another activity may have that endpoint.
    fn replies(&mut self, strength: u64) {
        if let Some((endpoint, offset)) = self.open.take() {
            let forged = [0xAB; 64];
            let _ = dtu::reply(endpoint, offset, &forged);
            return self.forget();
        }
        let receivers = (self.receiver(2, 0), self.receiver(3, 0));
        let (Some((to, endpoint)), Some((answers, reply))) = receivers else {
            return self.forget();
        };
        let send = self.selector();
        let create = Syscall::CreateSend {
            source: to,
            target: send,
            label: strength,
            // Unlimited or one.
            credits: if strength & 1 == 0 { 1 } else { 255 },
        };
        let _ = syscall::call(&create);
        let Some(from) = activate(send) else {
            return self.forget();
        };
        if dtu::send(from, &[0; 64], reply, 0x1BAD_1DEA).is_err() {
            return self.forget();
        }
        let gone = match strength & 2 {
            0 => Syscall::Deactivate {
                gate: answers,
                endpoint: reply,
            },
            _ => Syscall::Revoke {
                selector: answers,
                keep: 0,
            },
        };
        let _ = syscall::call(&gone);
        if let Ok(Some(offset)) = dtu::fetch(endpoint) {
            self.open = Some((endpoint, offset));
        }
        // Another activity gets the endpoint meanwhile: a neighbour, or a child that is made for that.
        if strength & 4 != 0 {
            let _ = self.create(SEL_TILE, SEL_KERNEL_MEMORY, 0);
        }
        time::sleep_until(time::now() + 2000 * (1 + strength % 64));
    }

    /// Requests of the file service with misleading names, to any service that listens.
    fn names(&mut self, strength: u64, random: &mut Random, senders: &[u16]) {
        const NAMES: [&str; 10] = [
            "\u{e9}/a..",
            "x/v..",
            "../a",
            "a//b",
            "/./.",
            "a/../../b",
            "...",
            "\u{1f6a2}/..",
            "a\0b/c",
            " ",
        ];
        let mut request = [0; 240];
        let operation = [5, 6, 1, 3, 4, 2, 7][random.below(7) as usize];
        request[..8].copy_from_slice(&u64::to_le_bytes(operation));
        // Some requests have a word before the path.
        let at = if operation == 1 || operation == 4 {
            16
        } else {
            8
        };
        request[8] = random.next() as u8 & 15;
        let name = NAMES[(strength.wrapping_add(random.below(2)) % 10) as usize].as_bytes();
        request[at..at + name.len()].copy_from_slice(name);
        for &sender in senders {
            let _ = dtu::send(sender, &request[..at + 224], environment().call_reply, 0);
        }
        time::sleep_until(time::now() + 5000);
    }

    /// Makes many endpoints of one capability and revokes that capability.
    fn revocations(&mut self, strength: u64) {
        let first = self.next;
        let count = 8 << (strength % 5);
        for number in 0..count {
            let target = self.selector();
            if target < first {
                return;
            }
            let derive = Syscall::DeriveMemory {
                source: match (number, strength & 8) {
                    (0, _) => SEL_MEMORY,
                    (_, 0) => first,
                    _ => target - 1,
                },
                target,
                offset: 0,
                size: 64,
                rights: MAP_READ,
            };
            if syscall::call(&derive).is_err() || activate(target).is_none() {
                break;
            }
        }
        revoke(first);
        self.next = first;
    }

    /// Offers services until there is no more room for one.
    fn services(&mut self, strength: u64) {
        let Some((gate, _)) = self.receiver(2, 0) else {
            return self.forget();
        };
        for _ in 0..40 {
            let target = self.selector();
            if syscall::call(&Syscall::CreateService { gate, target }).is_err() {
                break;
            }
        }
        // Or it keeps them.
        if strength & 1 == 1 {
            self.forget();
        }
    }

    /// Activities whose creation fails at each possible point, with a traffic limit of their own.
    fn refused(&mut self, strength: u64, random: &mut Random) {
        let (tile, purse) = (self.selector(), self.selector());
        let rate = 1 << (10 + strength % 12);
        let derive = derive_tile(tile, (SHARE, 0), (rate, 4096), 0);
        let derived = syscall::call(&derive).is_ok();
        let _ = syscall::call(&Syscall::DeriveKernelMemory {
            source: SEL_KERNEL_MEMORY,
            target: purse,
            bytes: random.below(8) * 64,
        });
        let tile = if derived { tile } else { SEL_TILE };
        let _ = self.create(tile, purse, 0);
        // The selector is taken already.
        self.next -= 1;
        let _ = self.create(tile, SEL_KERNEL_MEMORY, 0);
        self.forget();
    }

    /// Children wait at a semaphore that nobody raises.
    fn crowds(&mut self, strength: u64) {
        let semaphore = self.selector();
        let value = 0;
        let target = semaphore;
        let _ = syscall::call(&Syscall::CreateSemaphore { target, value });
        for _ in 0..14 {
            // All of them live in the same pages, one after the other: a waiting child needs none.
            let Some((target, ids)) = self.create(SEL_TILE, SEL_KERNEL_MEMORY, 0) else {
                break;
            };
            let _ = syscall::call(&Syscall::Delegate {
                activity: target,
                source: semaphore,
                target: SEL_FREE,
            });
            if !self.start(target, ids, Role::Wait) {
                break;
            }
            time::sleep_until(time::now() + 50_000);
        }
        time::sleep_until(time::now() + 10_000 * (1 + strength % 32));
        if strength & 1 == 1 {
            let _ = syscall::call(&Syscall::SemaphoreUp { semaphore });
        }
        self.forget();
    }

    /// Pagers over pages in use, and read-only memory for TileMux to write to.
    fn mappings(&mut self, strength: u64) {
        let Some((gate, _)) = self.receiver(2, 0) else {
            return self.forget();
        };
        let (send, piece) = (self.selector(), self.selector());
        let _ = syscall::call(&Syscall::CreateSend {
            source: gate,
            target: send,
            label: 0,
            credits: 1,
        });
        let offset = self.offset(3);
        let _ = syscall::call(&Syscall::DeriveMemory {
            source: SEL_MEMORY,
            target: piece,
            offset,
            size: PAGE,
            rights: MAP_READ,
        });
        let Some((activity, ids)) = self.create(SEL_TILE, SEL_KERNEL_MEMORY, 0) else {
            return self.forget();
        };
        let address = match strength & 1 {
            0 => ENVIRONMENT_BASE,
            _ => PROGRAM_BASE,
        };
        let _ = syscall::call(&Syscall::SetPager {
            activity,
            gate: send,
            address,
            pages: 1 + strength % 16,
        });
        let map = |rights| {
            let map = Syscall::MapFrom {
                activity,
                memory: piece,
                address,
                offset: 0,
                pages: 1,
                rights,
            };
            let _ = syscall::call(&map);
        };
        map(MAP_READ);
        map(MAP_READ | MAP_WRITE);
        if strength & 2 != 0 {
            let _ = self.start(activity, ids, Role::End);
        }
        let _ = syscall::call(&Syscall::Start {
            activity,
            entry: PROGRAM_BASE,
            stack: 0,
        });
        time::sleep_until(time::now() + 5000);
        map(0);
        self.forget();
    }
}

/// A tile capability with this processor time and traffic; it shares everything else.
fn derive_tile(target: u16, cpu: (u64, u64), traffic: (u64, u64), priority: u8) -> Syscall {
    Syscall::DeriveTile {
        source: SEL_TILE,
        target,
        endpoints: SHARE,
        budget: cpu.0,
        period: cpu.1,
        rate: traffic.0,
        burst: traffic.1,
        tables: SHARE,
        priority,
        idle: 1,
        activities: SHARE,
        windows: SHARE,
    }
}

fn activate(gate: u16) -> Option<u16> {
    syscall::activate(gate).ok().map(|(endpoint, _)| endpoint)
}

fn revoke(selector: u16) {
    let _ = syscall::call(&Syscall::Revoke { selector, keep: 0 });
}
