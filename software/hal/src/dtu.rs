//! The registers of the tile's data transfer unit, as typed commands.
//!
//! Why it exists: every part of the system talks to the unit, and the message path must be a handful of loads and stores. What it
//! deliberately does not know: translation faults and retries (left to the callers), gates.
//!
//! The unprivileged page has the same address in every address space, so this works in any mode.

use bulkhead_abi::dtu::{
    self, Awaited, Command, CurrentActivity, DtuError, Endpoint, Opcode, PrivilegedOpcode,
};
use bulkhead_abi::memory_map::DTU_BASE;
use core::arch::asm;

/// Reads a register of the unit.
#[inline(always)]
pub fn read(offset: u64) -> u64 {
    debug_assert!(offset < bulkhead_abi::memory_map::DTU_SIZE);
    // SAFETY: the address is in the unit's window, which is not Rust memory; a missing right traps.
    unsafe { ((DTU_BASE + offset) as *const u64).read_volatile() }
}

/// Writes a register of the unit that starts nothing.
#[inline(always)]
pub fn write(offset: u64, value: u64) {
    debug_assert!(offset < bulkhead_abi::memory_map::DTU_SIZE);
    // SAFETY: as for `read`; commands go through `start`, so no Rust memory changes because of this.
    unsafe { ((DTU_BASE + offset) as *mut u64).write_volatile(value) }
}

/// Starts a command: earlier accesses to memory come before it, and the compiler must assume that memory changes.
#[inline(always)]
fn start(offset: u64, value: u64) {
    // SAFETY: an ordered store into the unit's window. The addresses and sizes that the unit will use were given by
    // callers of this module that hold the buffers borrowed, and are checked by the unit's TLB.
    unsafe {
        asm!("fence rw, o", "sd {value}, 0({address})", value = in(reg) value, address = in(reg) DTU_BASE + offset,
             options(nostack));
    }
}

/// Starts an unprivileged command and waits for its end.
#[inline(always)]
fn run(command: Command) -> Result<(), DtuError> {
    start(dtu::COMMAND, command.0);
    wait()
}

/// Waits for the end of the running command.
#[inline(always)]
fn wait() -> Result<(), DtuError> {
    loop {
        let state = Command(read(dtu::COMMAND));
        if state.opcode() == 0 {
            return match state.error() {
                0 => Ok(()),
                code => Err(error(code)),
            };
        }
    }
}

#[cold]
fn error(code: u8) -> DtuError {
    DtuError::from_code(code).unwrap_or(DtuError::UnknownCommand)
}

/// A send endpoint and the receive endpoint for replies, in the form used by commands: in bits 23..8 and 63..32.
#[derive(Clone, Copy, Debug)]
pub struct Line(u64);

impl Line {
    /// Over a send endpoint. The replies will come to `reply`.
    #[inline(always)]
    pub const fn new(endpoint: u16, reply: u16) -> Self {
        Self((endpoint as u64) << 8 | (reply as u64) << 32)
    }

    /// The send endpoint.
    #[inline(always)]
    pub const fn endpoint(self) -> u16 {
        (self.0 >> 8) as u16
    }

    /// Where replies come to.
    #[inline(always)]
    pub const fn reply(self) -> u16 {
        (self.0 >> 32) as u16
    }

    /// Sends `data`. The receiver's reply will come with `label`.
    ///
    /// # Errors
    /// What the unit says; [`DtuError::TranslationFault`] if the page of `data` is not in its TLB.
    #[inline(always)]
    pub fn send(self, data: &[u8], label: u64) -> Result<(), DtuError> {
        write(dtu::ARGUMENT, label);
        stage(data);
        run(Command(self.0 | Opcode::Send as u64))
    }
}

/// Sends `data` over a send endpoint. The receiver's reply will come to `reply` with `label`.
///
/// # Errors
/// As for [`Line::send`].
#[inline(always)]
pub fn send(endpoint: u16, data: &[u8], reply: u16, label: u64) -> Result<(), DtuError> {
    Line::new(endpoint, reply).send(data, label)
}

/// A message in the buffer of a receive endpoint, in the form used by commands: the endpoint in bits 23..8, the offset in bits 63..32.
#[derive(Clone, Copy, Debug)]
pub struct Slot(u64);

impl Slot {
    /// The message at an offset, as returned by [`fetch`].
    #[inline(always)]
    pub const fn new(endpoint: u16, offset: u64) -> Self {
        Self((endpoint as u64) << 8 | offset << 32)
    }

    #[inline(always)]
    const fn command(self, opcode: Opcode) -> Command {
        Command(self.0 | opcode as u64)
    }

    /// Replies and acknowledges the message.
    ///
    /// # Errors
    /// As for [`send`].
    #[inline(always)]
    pub fn reply(self, data: &[u8]) -> Result<(), DtuError> {
        stage(data);
        self.reply_staged()
    }

    /// The same with the data named by [`stage`], if no other command came in between.
    ///
    /// # Errors
    /// As for [`send`].
    #[inline(always)]
    pub fn reply_staged(self) -> Result<(), DtuError> {
        run(self.command(Opcode::Reply))
    }

    /// Frees it.
    ///
    /// # Errors
    /// What the unit says.
    #[inline(always)]
    pub fn acknowledge(self) -> Result<(), DtuError> {
        start(dtu::COMMAND, self.command(Opcode::Acknowledge).0);
        skip();
        wait()
    }
}

/// Names the data of a reply ahead of time, while what decides about the reply is still being loaded.
#[inline(always)]
pub fn stage(data: &[u8]) {
    // The size is usually known sooner than the address.
    write(dtu::SIZE, data.len() as u64);
    write(dtu::ADDRESS, data.as_ptr() as u64);
}

/// Replies to the message at `offset` of a receive endpoint and acknowledges it.
///
/// # Errors
/// As for [`send`].
#[inline(always)]
pub fn reply(endpoint: u16, offset: u32, data: &[u8]) -> Result<(), DtuError> {
    Slot::new(endpoint, offset.into()).reply(data)
}

/// Reads from a memory endpoint. The buffer must not cross a page.
///
/// # Errors
/// As for [`send`].
#[inline(always)]
pub fn read_memory(endpoint: u16, offset: u64, buffer: &mut [u8]) -> Result<(), DtuError> {
    read_memory_while(endpoint, offset, buffer, || ())
}

/// Like [`read_memory`], running a function until that is done.
///
/// # Errors
/// As for [`send`].
#[inline(always)]
pub fn read_memory_while(
    endpoint: u16,
    offset: u64,
    buffer: &mut [u8],
    meanwhile: impl FnOnce(),
) -> Result<(), DtuError> {
    write(dtu::ARGUMENT, offset);
    stage(buffer);
    start(dtu::COMMAND, Command::new(Opcode::Read, endpoint, 0).0);
    meanwhile();
    wait()
}

/// Writes to a memory endpoint. The data must not cross a page.
///
/// # Errors
/// As for [`send`].
#[inline(always)]
pub fn write_memory(endpoint: u16, offset: u64, data: &[u8]) -> Result<(), DtuError> {
    write_memory_while(endpoint, offset, data, || ())
}

/// Like [`write_memory`], running a function until that is done.
///
/// # Errors
/// As for [`send`].
#[inline(always)]
pub fn write_memory_while(
    endpoint: u16,
    offset: u64,
    data: &[u8],
    meanwhile: impl FnOnce(),
) -> Result<(), DtuError> {
    write(dtu::ARGUMENT, offset);
    stage(data);
    start(dtu::COMMAND, Command::new(Opcode::Write, endpoint, 0).0);
    meanwhile();
    wait()
}

/// Fetches the next unread message of a receive endpoint. Returns its offset in the buffer.
///
/// # Errors
/// What the unit says.
#[inline(always)]
pub fn fetch(endpoint: u16) -> Result<Option<u32>, DtuError> {
    Ok(fetch_offset(endpoint)?.map(|offset| offset as u32))
}

/// Like [`fetch`], for [`Slot::new`].
///
/// # Errors
/// What the unit says.
#[inline(always)]
pub fn fetch_offset(endpoint: u16) -> Result<Option<u64>, DtuError> {
    // Nothing in memory has to come first: the message is read through the offset that this returns.
    write(dtu::COMMAND, Command::new(Opcode::Fetch, endpoint, 0).0);
    skip();
    fetched()
}

/// What was fetched, as soon as the command is done.
#[inline(always)]
fn fetched() -> Result<Option<u64>, DtuError> {
    loop {
        let state = Command(read(dtu::COMMAND));
        // Read immediately: if the command is done, this is its result.
        let offset = read(dtu::ARGUMENT);
        if state.opcode() == 0 {
            return match state.error() {
                0 => Ok((offset != dtu::NO_MESSAGE).then_some(offset)),
                code => Err(error(code)),
            };
        }
    }
}

/// Like [`fetch`], with the hart's [cycle](crate::csr::cycle) in which it began. The unit's clock is a device, and reading it takes longer
/// than the command.
///
/// # Errors
/// What the unit says.
#[inline(always)]
pub fn fetch_timed(endpoint: u16) -> Result<(Option<u64>, u64), DtuError> {
    write(dtu::COMMAND, Command::new(Opcode::Fetch, endpoint, 0).0);
    let cycle = crate::csr::cycle();
    // With that and the store itself, the command has its eight cycles; any delay here keeps every client waiting.
    nothing::<2>();
    Ok((fetched()?, cycle))
}

/// Lets a few cycles pass. Short commands (fetch, acknowledge) take about ten cycles; reading the command register too early costs another
/// read and a mispredicted branch.
#[inline(always)]
fn skip() {
    nothing::<6>();
}

/// Lets this many cycles pass.
#[inline(always)]
fn nothing<const CYCLES: usize>() {
    // SAFETY: does nothing.
    unsafe {
        asm!(".rept {cycles}", "nop", ".endr", cycles = const CYCLES, options(nomem, nostack))
    };
}

/// Frees the slot of a fetched message.
///
/// # Errors
/// What the unit says.
#[inline(always)]
pub fn acknowledge(endpoint: u16, offset: u32) -> Result<(), DtuError> {
    Slot::new(endpoint, offset.into()).acknowledge()
}

/// Sleeps until a message for `endpoint` ([`dtu::NO_ENDPOINT`]: any) is unread, `timeout` nanoseconds have passed (0: forever) or an
/// interrupt comes. The caller checks for what it waits for: the hart continues when the command has ended, whatever the reason, so there
/// is nothing to wait for here.
#[inline(always)]
pub fn sleep(endpoint: u16, timeout: u64) {
    write(dtu::ARGUMENT, timeout);
    start(dtu::COMMAND, Command::new(Opcode::Sleep, endpoint, 0).0);
}

/// Nanoseconds since reset.
#[inline(always)]
pub fn time() -> u64 {
    read(dtu::TIME)
}

/// Privileged commands complete before the next instruction.
fn privileged(opcode: PrivilegedOpcode, argument: u64) {
    write(dtu::PRIVILEGED_ARGUMENT, argument);
    start(dtu::PRIVILEGED_COMMAND, opcode as u64);
}

/// The running activity.
#[inline]
pub fn current_activity() -> CurrentActivity {
    CurrentActivity(read(dtu::CURRENT_ACTIVITY))
}

/// Makes `next` the running activity and returns the old one with its unread messages.
pub fn exchange_activity(next: CurrentActivity) -> CurrentActivity {
    privileged(PrivilegedOpcode::ExchangeActivity, next.0);
    CurrentActivity(read(dtu::PRIVILEGED_ARGUMENT))
}

/// From now on, lets messages interrupt that the register `index` selects, replacing its previous selection.
pub fn set_awaited(index: usize, awaited: Awaited) {
    write(dtu::AWAITED + 8 * index as u64, awaited.0);
}

/// Lets the unit use a page for an activity. `rights`: [`dtu::TLB_READ`], [`dtu::TLB_WRITE`].
pub fn insert_translation(activity: u16, virtual_page: u64, physical_page: u64, rights: u64) {
    let second = physical_page | u64::from(activity) << 48;
    write(dtu::PRIVILEGED_ARGUMENT2, second);
    privileged(PrivilegedOpcode::InsertTlb, virtual_page | rights);
}

/// Forgets all translations.
pub fn invalidate_translations() {
    privileged(PrivilegedOpcode::InvalidateTlb, 0);
}

/// Starts the tile's second hart, if it has one, at a tile-physical address in machine mode.
pub fn start_second(address: u64) {
    privileged(PrivilegedOpcode::StartSecond, address);
}

/// Arms the timer, or disarms it with 0.
pub fn set_timer(nanoseconds: u64) {
    privileged(PrivilegedOpcode::SetTimer, nanoseconds);
}

/// The unprivileged registers of an activity that is not running.
#[derive(Clone, Copy, Default, Debug)]
pub struct SavedCommand {
    command: u64,
    address: u64,
    size: u64,
    argument: u64,
}

/// Ends the running command, if there is one: it is aborted or awaited. Returns the register.
pub fn end_command() -> u64 {
    let command = read(dtu::COMMAND);
    if Command(command).opcode() == 0 {
        return command;
    }
    privileged(PrivilegedOpcode::AbortCommand, 0);
    // What can no longer be undone ends by itself.
    loop {
        let command = read(dtu::COMMAND);
        if Command(command).opcode() == 0 {
            return command;
        }
    }
}

/// Takes the command registers from the running activity; a running command is aborted or awaited.
pub fn save_command() -> SavedCommand {
    SavedCommand {
        command: end_command(),
        address: read(dtu::ADDRESS),
        size: read(dtu::SIZE),
        argument: read(dtu::ARGUMENT),
    }
}

/// Gives the command registers back. Opcode 0 starts nothing and leaves the old outcome to be read.
pub fn restore_command(saved: &SavedCommand) {
    write(dtu::ADDRESS, saved.address);
    write(dtu::SIZE, saved.size);
    write(dtu::ARGUMENT, saved.argument);
    write(dtu::COMMAND, saved.command);
}

/// The register words of an endpoint of this tile.
pub fn endpoint(index: u16) -> Endpoint {
    Endpoint::unpack(core::array::from_fn(|word| {
        read(endpoint_offset(index) + 8 * word as u64)
    }))
}

/// Configures an endpoint of this tile; works on a privileged unit only.
pub fn set_endpoint(index: u16, endpoint: &Endpoint) {
    for (word, value) in endpoint.pack().into_iter().enumerate() {
        write(endpoint_offset(index) + 8 * word as u64, value);
    }
}

/// Offset of an endpoint's registers.
pub const fn endpoint_offset(index: u16) -> u64 {
    dtu::ENDPOINTS + index as u64 * dtu::ENDPOINT_STRIDE
}
