//! The registers of a network card: a virtio network device (Virtual I/O Device Version 1.2, OASIS) over virtio-mmio.
//!
//! Why it exists: the card and its driver must use the same offsets. Drivers bring their own table; this one is for the card and
//! the tests. What it deliberately does not know: queues, frames.
//!
//! Sections: 4.2.2 (registers), 2.1 (status), 2.7 (split queues), 5.1 (network device).

/// Virtual address at which the activity that has the card finds its registers.
pub const CARD_ADDRESS: u64 = 0x0310_0000;

/// Name of the receive gate for the card's interrupts: messages of one word, which has no meaning.
pub const INTERRUPT_GATE: &str = "interrupt";

/// Reads [`MAGIC_VALUE`].
pub const MAGIC: u64 = 0x000;
/// "virt".
pub const MAGIC_VALUE: u32 = u32::from_le_bytes(*b"virt");
/// Reads 2.
pub const VERSION: u64 = 0x004;
/// Reads [`DEVICE_NETWORK`].
pub const DEVICE_ID: u64 = 0x008;
/// A network card (section 5).
pub const DEVICE_NETWORK: u32 = 1;
/// Reads [`VENDOR`].
pub const VENDOR_ID: u64 = 0x00C;
/// "BHNC".
pub const VENDOR: u32 = u32::from_le_bytes(*b"BHNC");
/// The selected 32 feature bits of the device.
pub const DEVICE_FEATURES: u64 = 0x010;
/// Selects them.
pub const DEVICE_FEATURES_SELECT: u64 = 0x014;
/// The selected 32 feature bits that the driver accepts.
pub const DRIVER_FEATURES: u64 = 0x020;
/// Selects them.
pub const DRIVER_FEATURES_SELECT: u64 = 0x024;
/// Selects a queue.
pub const QUEUE_SELECT: u64 = 0x030;
/// Most entries of the selected queue.
pub const QUEUE_SIZE_MAX: u64 = 0x034;
/// Entries of the selected queue.
pub const QUEUE_SIZE: u64 = 0x038;
/// 1: the selected queue may be used.
pub const QUEUE_READY: u64 = 0x044;
/// Writing a queue's number announces that the queue has new entries.
pub const QUEUE_NOTIFY: u64 = 0x050;
/// Why the device interrupts: bit 0 used buffers, bit 1 configuration or status.
pub const INTERRUPT_STATUS: u64 = 0x060;
/// Written bits are cleared.
pub const INTERRUPT_ACKNOWLEDGE: u64 = 0x064;
/// Device status; writing 0 resets.
pub const STATUS: u64 = 0x070;
/// Address of the descriptors of the selected queue, lower half; the upper half follows, as for the next two.
pub const QUEUE_DESCRIPTORS: u64 = 0x080;
/// Address of the ring that the driver writes (the available ring).
pub const QUEUE_DRIVER: u64 = 0x090;
/// Address of the ring that the device writes (the used ring).
pub const QUEUE_DEVICE: u64 = 0x0A0;
/// Would change with the configuration, which never changes.
pub const CONFIGURATION_GENERATION: u64 = 0x0FC;
/// Six bytes of hardware address, two of link status.
pub const CONFIGURATION: u64 = 0x100;

/// The queue of arriving frames.
pub const RECEIVE_QUEUE: u32 = 0;
/// The queue of frames to send.
pub const TRANSMIT_QUEUE: u32 = 1;
/// Status: the driver is ready.
pub const STATUS_DRIVER_READY: u32 = 4;
/// Status: the driver accepted the features.
pub const STATUS_FEATURES: u32 = 8;
/// Status: the device found an error of its driver and must be reset.
pub const STATUS_NEEDS_RESET: u32 = 64;
/// Interrupt: buffers were used.
pub const INTERRUPT_USED: u32 = 1;
/// Interrupt: the status has changed.
pub const INTERRUPT_CHANGED: u32 = 2;
/// Feature: the configuration holds the hardware address.
pub const FEATURE_MAC: u64 = 1 << 5;
/// Feature: the configuration holds the link status.
pub const FEATURE_STATUS: u64 = 1 << 16;
/// Feature: not a legacy device.
pub const FEATURE_VERSION_1: u64 = 1 << 32;
/// Bytes before each frame in a buffer.
pub const FRAME_HEADER: usize = 12;
/// Most bytes of a frame: Ethernet with 1500 bytes of payload, without check sequence.
pub const FRAME_MAX: usize = 1514;
/// The fewest bytes of a frame: two addresses and a type.
pub const FRAME_MIN: usize = 14;
/// Descriptor flag: the chain continues.
pub const DESCRIPTOR_NEXT: u16 = 1;
/// Descriptor flag: the device writes.
pub const DESCRIPTOR_WRITE: u16 = 2;
/// Flag of the available ring: the driver wants no interrupts.
pub const NO_INTERRUPT: u16 = 1;
