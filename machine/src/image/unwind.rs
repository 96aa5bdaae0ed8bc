//! The callers of a function: walks a stack using the call frame information that compilers write (DWARF 5, section 6.4).
//!
//! Why it exists: the place of a fault shows what broke, and its callers show why. Programs need no frame pointers for this and run
//! unchanged: Rust writes `.eh_frame` anyway, and C compilers write `.debug_frame` with `-g`. What it deliberately does not know:
//! machines; its caller provides registers and memory.

use super::Resolver;
use gimli::{CfaRule, RegisterRule, UnwindContext, UnwindSection};
use object::{Object as _, ObjectSection as _};

/// Registers of the calling convention: return address and stack pointer.
const RA: usize = 1;
const SP: usize = 2;

type Reader<'a> = gimli::EndianSlice<'a, gimli::LittleEndian>;

/// Walks stacks of one program.
pub struct Unwinder<'a> {
    resolver: &'a Resolver,
    exceptions: gimli::EhFrame<Reader<'a>>,
    debug: gimli::DebugFrame<Reader<'a>>,
    bases: gimli::BaseAddresses,
}

impl<'a> Unwinder<'a> {
    /// An unwinder for an ELF file and its resolver. Missing or damaged information only makes walks shorter.
    pub fn new(bytes: &'a [u8], resolver: &'a Resolver) -> Self {
        let file = object::File::parse(bytes).ok();
        let section = |name: &str| file.as_ref().and_then(|file| file.section_by_name(name));
        let data = |name: &str| section(name).and_then(|section| section.data().ok());
        let address = |name: &str| section(name).map_or(0, |section| section.address());
        let mut debug = gimli::DebugFrame::new(
            data(".debug_frame").unwrap_or_default(),
            gimli::LittleEndian,
        );
        debug.set_address_size(8);
        let mut exceptions =
            gimli::EhFrame::new(data(".eh_frame").unwrap_or_default(), gimli::LittleEndian);
        exceptions.set_address_size(8);
        Self {
            resolver,
            exceptions,
            debug,
            bases: gimli::BaseAddresses::default()
                .set_eh_frame(address(".eh_frame"))
                .set_text(address(".text")),
        }
    }

    /// Program counters from the innermost function outwards, `pc` first; those of callers point into their call instructions.
    /// `read` returns a word of memory; at most `most` frames are walked.
    pub fn walk(
        &self,
        mut pc: u64,
        registers: &[u64; 32],
        read: &dyn Fn(u64) -> Option<u64>,
        most: usize,
    ) -> Vec<u64> {
        let mut registers = *registers;
        let mut all = vec![pc];
        let mut innermost = true;
        while all.len() < most {
            let before = registers[SP];
            let stepped = self
                .step(&self.exceptions, pc, &registers, read)
                .or_else(|| self.step(&self.debug, pc, &registers, read));
            registers = match stepped {
                // A caller that did not save its return address (it called a function that never returns) has lost it.
                Some((_, false)) if !innermost => break,
                // Every caller's frame is above its callee's; a stack that does not go up is broken or at its end.
                Some((next, _)) if next[SP] > before || innermost && next[SP] == before => next,
                Some(_) => break,
                // An innermost function without information (assembly, a jump to nowhere) has not saved its return address.
                None if innermost => registers,
                None => break,
            };
            // The address of the call, not of the instruction after it.
            let Some(caller) = registers[RA].checked_sub(1) else {
                break;
            };
            if !self.resolver.is_code(caller) {
                break;
            }
            (pc, innermost) = (caller, false);
            all.push(pc);
        }
        all
    }

    /// Registers of the caller, and whether the function had saved its return address.
    fn step<S: UnwindSection<Reader<'a>>>(
        &self,
        section: &S,
        pc: u64,
        registers: &[u64; 32],
        read: &dyn Fn(u64) -> Option<u64>,
    ) -> Option<([u64; 32], bool)> {
        let mut context = UnwindContext::new();
        let row = section
            .unwind_info_for_address(&self.bases, &mut context, pc, S::cie_from_offset)
            .ok()?;
        let CfaRule::RegisterAndOffset { register, offset } = row.cfa() else {
            return None;
        };
        let base = registers.get(usize::from(register.0))?;
        let frame = base.wrapping_add_signed(*offset);
        let mut next = *registers;
        for (number, value) in next.iter_mut().enumerate().skip(1) {
            let register = gimli::Register(number as u16);
            *value = match row.register(register) {
                RegisterRule::Offset(offset) => read(frame.wrapping_add_signed(offset))?,
                RegisterRule::ValOffset(offset) => frame.wrapping_add_signed(offset),
                RegisterRule::Register(other) => *registers.get(usize::from(other.0))?,
                // The function has not changed registers without a rule.
                _ => *value,
            };
        }
        next[SP] = frame;
        let rule = row.register(gimli::Register(RA as u16));
        let saved = !matches!(rule, RegisterRule::Undefined | RegisterRule::SameValue);
        Some((next, saved))
    }
}
