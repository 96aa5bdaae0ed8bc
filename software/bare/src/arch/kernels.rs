//! Small loops whose instructions per cycle follow from a pipeline's parameters.
//!
//! Why it exists: a pipeline is judged by loops of known instructions, so no compiler may choose them. A turn has 64 operations and the two
//! instructions of the loop, none of them compressed, from the beginning of a line. What it deliberately does not know: the pipeline, and how
//! long anything takes.

use core::arch::asm;
use core::hint::black_box;

/// Rows and columns of a matrix, so that three matrices fit any first level.
const ORDER: usize = 16;

/// A loop over eight lines of assembly, eight times in a turn. They may use `t0` to `t6` and `a7` (0 before the loop), `ft0` to `ft7`, `{one}` (the
/// integer 1), `{real}` (the number 1) and `{base}` (an address).
macro_rules! turns {
    ($turns:expr, $base:expr, $($line:expr),+) => {
        // SAFETY: the lines compute, load from `base`, which the caller has, and jump to their own ends; all registers that they write are named.
        unsafe {
            asm!(
                ".option push",
                ".option norvc",
                ".balign 64",
                "2:",
                ".rept 8",
                $($line,)+
                ".endr",
                "addi {turns}, {turns}, -1",
                "bnez {turns}, 2b",
                ".option pop",
                "/* {one} {real} {base} */",
                turns = inout(reg) $turns.max(1) => _,
                one = in(reg) 1u64,
                real = in(freg) 1.0f64,
                base = in(reg) $base,
                inout("t0") 0u64 => _, inout("t1") 0u64 => _, inout("t2") 0u64 => _, inout("t3") 0u64 => _,
                inout("t4") 0u64 => _, inout("t5") 0u64 => _, inout("t6") 0u64 => _, inout("a7") 0u64 => _,
                inout("ft0") 0f64 => _, inout("ft1") 0f64 => _, inout("ft2") 0f64 => _, inout("ft3") 0f64 => _,
                inout("ft4") 0f64 => _, inout("ft5") 0f64 => _, inout("ft6") 0f64 => _, inout("ft7") 0f64 => _,
                options(nostack, readonly)
            )
        }
    };
}

/// The same line eight times.
macro_rules! chain {
    ($turns:expr, $base:expr, $line:literal) => {
        turns!(
            $turns, $base, $line, $line, $line, $line, $line, $line, $line, $line
        )
    };
}

/// Eight lines with eight destinations.
macro_rules! independent {
    ($turns:expr, $base:expr, $operation:literal, $sources:literal, $($to:literal)+) => {
        turns!($turns, $base, $(concat!($operation, " ", $to, ", ", $sources)),+)
    };
}

macro_rules! integers {
    ($turns:expr, $base:expr, $operation:literal, $sources:literal) => {
        independent!($turns, $base, $operation, $sources, "t0" "t1" "t2" "t3" "t4" "t5" "t6" "a7")
    };
}

macro_rules! reals {
    ($turns:expr, $base:expr, $operation:literal, $sources:literal) => {
        independent!($turns, $base, $operation, $sources, "ft0" "ft1" "ft2" "ft3" "ft4" "ft5" "ft6" "ft7")
    };
}

/// Runs so many turns of the kernel with this name. `base` is the address of a line. Returns whether there is such a kernel.
pub fn run(name: &str, turns: u64, base: u64) -> bool {
    match name {
        "add" => integers!(turns, base, "add", "{one}, {one}"),
        "add-chain" => chain!(turns, base, "add t0, t0, {one}"),
        "multiply" => integers!(turns, base, "mul", "{one}, {one}"),
        "multiply-chain" => chain!(turns, base, "mul t0, t0, {one}"),
        "divide-chain" => chain!(turns, base, "div t0, t0, {one}"),
        "float-add" => reals!(turns, base, "fadd.d", "{real}, {real}"),
        "float-add-chain" => chain!(turns, base, "fadd.d ft0, ft0, {real}"),
        "float-multiply-chain" => chain!(turns, base, "fmul.d ft0, ft0, {real}"),
        "float-fma-chain" => chain!(turns, base, "fmadd.d ft0, ft0, {real}, {real}"),
        "float-divide-chain" => chain!(turns, base, "fdiv.d ft0, ft0, {real}"),
        "load" => integers!(turns, base, "ld", "0({base})"),
        // Over an instruction: a jump to the next one is none.
        "jump" => chain!(turns, base, "j 3f\nnop\n3:"),
        "branch" => branch(turns),
        "matrix" => matrix(turns),
        _ => return false,
    }
    true
}

/// Branches over one instruction by a bit of Marsaglia's xorshift generator (Journal of Statistical Software 8(14), 2003), which no predictor knows.
fn branch(turns: u64) {
    // SAFETY: computes, and jumps to its own ends.
    unsafe {
        asm!(
            ".option push",
            ".option norvc",
            ".balign 64",
            "2:",
            "slli {bits}, {state}, 13",
            "xor {state}, {state}, {bits}",
            "srli {bits}, {state}, 7",
            "xor {state}, {state}, {bits}",
            "slli {bits}, {state}, 17",
            "xor {state}, {state}, {bits}",
            "andi {bits}, {state}, 1024",
            "beqz {bits}, 3f",
            "addi {taken}, {taken}, 1",
            "3:",
            "addi {turns}, {turns}, -1",
            "bnez {turns}, 2b",
            ".option pop",
            turns = inout(reg) turns.max(1) => _,
            state = inout(reg) 88_172_645_463_325_252u64 => _,
            taken = inout(reg) 0u64 => _,
            bits = out(reg) _,
            options(nostack, nomem)
        );
    }
}

/// A product of two matrices in each turn.
fn matrix(turns: u64) {
    let a = black_box([[1.5f64; ORDER]; ORDER]);
    let b = black_box([[0.5f64; ORDER]; ORDER]);
    for _ in 0..turns {
        let mut product = [[0f64; ORDER]; ORDER];
        for (row, to) in a.iter().zip(&mut product) {
            for (x, column) in row.iter().zip(&b) {
                for (sum, y) in to.iter_mut().zip(column) {
                    *sum += x * y;
                }
            }
        }
        black_box(&product);
    }
}
