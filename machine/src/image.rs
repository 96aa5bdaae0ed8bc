//! Programs as files: ELF images (their owner publishes them here).
