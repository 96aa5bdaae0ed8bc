//! The device tree that a platform without an operating system hands to its program.
//!
//! Why it exists: on QEMU's `virt` machine, software finds the address of a flattened device tree in `a1`, and firmware
//! such as OpenSBI does not start without it. What it deliberately does not know: what the program does with it.

use crate::error::Error;
use bulkhead_abi::memory_map::{
    CLINT_BASE, CLINT_SIZE, DMA_BASE, DMA_SIZE, EXIT_BASE, EXIT_PASS, MEMORY_BASE, UART_BASE,
    UART_SIZE,
};
use bulkhead_abi::plic::source;
use bulkhead_machine::config::{PlatformConfig, TileConfig};
use bulkhead_machine::tcm::TcmMap;
use vm_fdt::{FdtWriter, FdtWriterResult};

/// Handle of the first hart's interrupt controller; the handles of the others follow.
const HART_INTERRUPTS: u32 = 1;
/// Interrupt numbers of the CLINT at a hart: machine software and machine timer (privileged specification).
const CLINT_INTERRUPTS: [u32; 2] = [3, 7];
/// Input clock of the console, as on QEMU's `virt`; the rate of characters is not modelled.
const UART_CLOCK: u32 = 3_686_400;

/// The part of a chip that a tree describes.
pub struct Part<'a> {
    /// The tile.
    pub tile: &'a TileConfig,
    /// Numbers of the harts.
    pub harts: &'a [u64],
    /// Address and size of each range of the memory.
    pub memory: &'a [(u64, u64)],
    /// Arguments of the program, if any.
    pub arguments: &'a str,
    /// The ports of the harts, in the same order, if they reach the chip's doorbells.
    pub bells: &'a [u16],
}

impl Part<'_> {
    /// The tree.
    ///
    /// # Errors
    /// If the tree cannot be written.
    pub fn tree(&self, config: &PlatformConfig) -> Result<Vec<u8>, Error> {
        write(config, self).map_err(|error| Error::Machine(format!("device tree: {error}")))
    }
}

/// The tree of the platform's first tile, with all of its harts and `memory` bytes of memory.
///
/// # Errors
/// If the tree cannot be written.
pub fn device_tree(config: &PlatformConfig, memory: u64) -> Result<Vec<u8>, Error> {
    let numbers: Vec<u64> = harts(config).into_iter().map(u64::from).collect();
    let ports: Vec<u16> = (0..numbers.len() as u16).collect();
    let whole = Part {
        tile: &config.tiles[0],
        harts: &numbers,
        memory: &[(MEMORY_BASE, memory)],
        arguments: "",
        bells: &ports,
    };
    whole.tree(config)
}

/// The doorbells of the chip, if the harts reach them: where their registers are, the number of each hart of `/cpus` there, and its source at
/// the tile's interrupt controller.
fn doorbells(
    tree: &mut FdtWriter,
    config: &PlatformConfig,
    part: &Part<'_>,
) -> FdtWriterResult<()> {
    if config.doorbells.is_none() || part.bells.is_empty() {
        return Ok(());
    }
    // They are the last part beside the tiles.
    let place = config.beside().count() - 1;
    let base = DMA_BASE + place as u64 * DMA_SIZE;
    let all = config.bells();
    let first = all.iter().position(|hart| hart.tile == part.tile.id);
    let first = first.expect("each tile has harts") as u32;
    let node = tree.begin_node(&format!("doorbells@{base:x}"))?;
    tree.property_string("compatible", "bulkhead,doorbells")?;
    tree.property_array_u64("reg", &[base, DMA_SIZE])?;
    let ports = || part.bells.iter().map(|port| u32::from(*port));
    let numbers: Vec<u32> = ports().map(|port| first + port).collect();
    tree.property_array_u32("bulkhead,bells", &numbers)?;
    let sources: Vec<u32> = ports().map(|port| source(place as u32, port)).collect();
    tree.property_array_u32("bulkhead,sources", &sources)?;
    tree.end_node(node)
}

/// Numbers of the first tile's harts.
pub fn harts(config: &PlatformConfig) -> Vec<u16> {
    let cluster = config.tiles[0].cluster.as_ref();
    cluster.map_or_else(|| vec![0], |cluster| cluster.harts.clone())
}

fn write(config: &PlatformConfig, part: &Part<'_>) -> FdtWriterResult<Vec<u8>> {
    let tile = part.tile;
    let timebase = u32::try_from(config.timebase_hz).unwrap_or(u32::MAX);
    let mut tree = FdtWriter::new()?;
    let root = tree.begin_node("")?;
    tree.property_u32("#address-cells", 2)?;
    tree.property_u32("#size-cells", 2)?;
    tree.property_string("compatible", "riscv-virtio")?;
    tree.property_string("model", &format!("bulkhead,{}", config.name))?;

    let chosen = tree.begin_node("chosen")?;
    if !part.arguments.is_empty() {
        tree.property_string("bootargs", part.arguments)?;
    }
    if tile.uart {
        tree.property_string("stdout-path", &format!("/soc/serial@{UART_BASE:x}"))?;
    }
    tree.end_node(chosen)?;

    let base = part.memory.first().map_or(0, |(base, _)| *base);
    let node = tree.begin_node(&format!("memory@{base:x}"))?;
    tree.property_string("device_type", "memory")?;
    let ranges = part.memory.iter().flat_map(|(base, size)| [*base, *size]);
    tree.property_array_u64("reg", &ranges.collect::<Vec<u64>>())?;
    tree.end_node(node)?;

    let cpus = tree.begin_node("cpus")?;
    tree.property_u32("#address-cells", 1)?;
    tree.property_u32("#size-cells", 0)?;
    tree.property_u32("timebase-frequency", timebase)?;
    let numbers = part.harts;
    for (number, handle) in numbers.iter().zip(HART_INTERRUPTS..) {
        let cpu = tree.begin_node(&format!("cpu@{number:x}"))?;
        tree.property_string("device_type", "cpu")?;
        tree.property_u32("reg", u32::try_from(*number).unwrap_or(u32::MAX))?;
        tree.property_string("status", "okay")?;
        tree.property_string("compatible", "riscv")?;
        let cluster = tile.cluster.as_ref();
        let isa = match cluster.is_some_and(|cluster| cluster.capacity.is_some()) {
            true => "rv64imafdc_zicsr_zifencei_ssqosid",
            false => "rv64imafdc_zicsr_zifencei",
        };
        tree.property_string("riscv,isa", isa)?;
        tree.property_string("mmu-type", "riscv,sv39")?;
        let interrupts = tree.begin_node("interrupt-controller")?;
        tree.property_u32("#interrupt-cells", 1)?;
        tree.property_null("interrupt-controller")?;
        tree.property_string("compatible", "riscv,cpu-intc")?;
        tree.property_phandle(handle)?;
        tree.end_node(interrupts)?;
        tree.end_node(cpu)?;
    }
    tree.end_node(cpus)?;
    let syscon = HART_INTERRUPTS + numbers.len() as u32;

    let soc = tree.begin_node("soc")?;
    tree.property_u32("#address-cells", 2)?;
    tree.property_u32("#size-cells", 2)?;
    tree.property_string("compatible", "simple-bus")?;
    tree.property_null("ranges")?;
    let clint = tree.begin_node(&format!("clint@{CLINT_BASE:x}"))?;
    tree.property_string_list(
        "compatible",
        vec!["sifive,clint0".to_owned(), "riscv,clint0".to_owned()],
    )?;
    tree.property_array_u64("reg", &[CLINT_BASE, CLINT_SIZE])?;
    let handles = (HART_INTERRUPTS..syscon).flat_map(|hart| CLINT_INTERRUPTS.map(|i| [hart, i]));
    let interrupts: Vec<u32> = handles.flatten().collect();
    tree.property_array_u32("interrupts-extended", &interrupts)?;
    tree.end_node(clint)?;
    doorbells(&mut tree, config, part)?;
    let map = TcmMap::new(config);
    let mut at = map.base(tile.id).unwrap_or(0);
    for memory in &tile.tcm {
        let sram = tree.begin_node(&format!("sram@{at:x}"))?;
        tree.property_string("compatible", "mmio-sram")?;
        tree.property_array_u64("reg", &[at, memory.size])?;
        tree.end_node(sram)?;
        at += memory.size;
    }
    if tile.uart {
        let serial = tree.begin_node(&format!("serial@{UART_BASE:x}"))?;
        tree.property_string("compatible", "ns16550a")?;
        tree.property_array_u64("reg", &[UART_BASE, UART_SIZE])?;
        tree.property_u32("clock-frequency", UART_CLOCK)?;
        tree.end_node(serial)?;
    }
    if tile.exit {
        let test = tree.begin_node(&format!("test@{EXIT_BASE:x}"))?;
        tree.property_string_list(
            "compatible",
            vec![
                "sifive,test1".to_owned(),
                "sifive,test0".to_owned(),
                "syscon".to_owned(),
            ],
        )?;
        tree.property_array_u64("reg", &[EXIT_BASE, 0x1000])?;
        tree.property_phandle(syscon)?;
        tree.end_node(test)?;
        let poweroff = tree.begin_node("poweroff")?;
        tree.property_string("compatible", "syscon-poweroff")?;
        tree.property_u32("regmap", syscon)?;
        tree.property_u32("offset", 0)?;
        tree.property_u32("value", EXIT_PASS)?;
        tree.end_node(poweroff)?;
    }
    tree.end_node(soc)?;
    tree.end_node(root)?;
    tree.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::convert::convert;
    use bulkhead_model::{LoadOptions, load_platform};

    /// The numbers are those that programs get as arguments, and who does not reach the doorbells finds none.
    #[test]
    fn doorbells_are_in_the_trees_of_whom_they_serve() {
        let platform = load_platform("tx2", &LoadOptions::default()).expect("it is there");
        let config = convert(&platform);
        let tile = &config.tiles[1];
        let tree = |bells: &[u16]| {
            let part = Part {
                tile,
                harts: &[4, 5],
                memory: &[(MEMORY_BASE, 1 << 20)],
                arguments: "",
                bells,
            };
            part.tree(&config).expect("it can be written")
        };
        let has = |tree: &[u8], bytes: &[u8]| tree.windows(bytes.len()).any(|part| part == bytes);
        let name = b"bulkhead,doorbells\0";
        assert!(!has(&tree(&[]), name));
        let found = tree(&[0, 1]);
        assert!(has(&found, name));
        let base = platform.doorbells_base().expect("it has some");
        let reg = [base.to_be_bytes(), DMA_SIZE.to_be_bytes()].concat();
        assert!(has(&found, &reg));
        let place = platform.doorbells_place().expect("it has some");
        let words = |of: &dyn Fn(u16) -> u32| [of(0).to_be_bytes(), of(1).to_be_bytes()].concat();
        assert!(has(
            &found,
            &words(&|port| platform.bell(tile.id, port) as u32)
        ));
        assert!(has(&found, &words(&|port| source(place, port.into()))));
    }
}
