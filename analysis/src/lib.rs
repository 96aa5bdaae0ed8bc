//! Bounds: the worst that a system may do, computed from its description alone.
//!
//! Why it exists: a measurement shows what happened, a bound shows what can happen. The two must stay independent, so this crate reads
//! the model and deliberately knows nothing of the simulated machine; parameters reach it only through the description. Verdicts are
//! decided in exact integer or rational arithmetic. Floating point is used for only two things: text (shares, widths, areas, ratios),
//! and the curves from which the study of [`mc2`] generates costs. Those are tables, filled once by a portable `exp` and rounded up to
//! integers ([`mc2::inflation`]); every later decision, including the stopping rule, is exact.

pub mod admission;
pub mod communication;
pub mod exact;
mod judgement;
pub mod kernel;
pub mod mc2;
pub mod network_calculus;
pub mod one_shot;
pub mod one_shot_clocks;
mod one_shot_kernel;
mod one_shot_mesh;
pub mod one_shot_rivals;
#[cfg(doctest)]
pub mod pages;
pub mod plan;
pub mod schedulability;
pub mod server;
mod tiled_kernel;

#[cfg(test)]
mod tests {
    /// A page whose example has no test would rot.
    #[test]
    fn every_page_on_an_analysis_is_tested() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/analyses");
        let tested = include_str!("pages.rs");
        let mut pages = 0;
        for entry in std::fs::read_dir(folder).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            assert!(tested.contains(&format!("analyses/{name}\"")), "{name}");
            pages += 1;
        }
        assert!(pages >= 20);
    }
}
