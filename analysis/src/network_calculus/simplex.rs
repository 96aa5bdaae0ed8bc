//! Linear programs in exact fractions, as small as the parameters of one path.
//!
//! Why it is here: a bound must not depend on rounding, and solvers compute in floating point. It does not know what the program is
//! about.

use crate::exact::Exact;
use num_traits::{Signed, Zero};

/// The least `costs x` over all `x >= 0` with `row x >= limit` for every (row, limit), for costs that are not negative; `None` if no `x`
/// keeps to all rows.
///
/// Solves the dual program, max `limit y` with `y >= 0` and `sum_i row_i y_i <= costs`, of which `y = 0` is a solution because no cost is
/// negative, with the rule that never cycles (R. G. Bland, *New finite pivoting rules for the simplex method*, Mathematics of Operations
/// Research 2(2), 1977). Both programs have the same value.
pub(super) fn least_value(rows: &[(Vec<Exact>, Exact)], costs: &[Exact]) -> Option<Exact> {
    let (columns, height) = (rows.len(), costs.len());
    // Columns: y, then one slack for each cost, then the right-hand side.
    let width = columns + height + 1;
    let mut table = vec![vec![Exact::zero(); width]; height];
    for (line, row) in table.iter_mut().enumerate() {
        for (column, (factors, _)) in rows.iter().enumerate() {
            row[column] = factors[line].clone();
        }
        row[columns + line] = Exact::from_integer(1.into());
        row[width - 1] = costs[line].clone();
    }
    // The gain of a unit of each variable.
    let mut gains = vec![Exact::zero(); width];
    for (column, (_, limit)) in rows.iter().enumerate() {
        gains[column] = limit.clone();
    }
    let mut basis: Vec<usize> = (columns..columns + height).collect();
    while let Some(enter) = (0..width - 1).find(|&column| gains[column].is_positive()) {
        let bounded = (0..height).filter(|&line| table[line][enter].is_positive());
        let ratio = |line: &usize| {
            (
                &table[*line][width - 1] / &table[*line][enter],
                basis[*line],
            )
        };
        // Nothing limits the gain: the first program has no solution.
        let leave = bounded.min_by_key(ratio)?;
        let pivot = table[leave][enter].recip();
        for value in &mut table[leave] {
            *value = &*value * &pivot;
        }
        let line = table[leave].clone();
        let others = table.iter_mut().enumerate();
        let others = others.filter(|(index, _)| *index != leave);
        for row in others.map(|(_, row)| row).chain([&mut gains]) {
            let factor = row[enter].clone();
            if !factor.is_zero() {
                for (value, of_line) in row.iter_mut().zip(&line) {
                    *value -= &factor * of_line;
                }
            }
        }
        basis[leave] = enter;
    }
    Some(-gains[width - 1].clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exact::{integer, ratio};
    use proptest::prelude::*;

    fn program(rows: &[(&[i32], i32)]) -> Vec<(Vec<Exact>, Exact)> {
        let row = |(row, limit): &(&[i32], i32)| {
            (row.iter().map(|&f| integer(f)).collect(), integer(*limit))
        };
        rows.iter().map(row).collect()
    }

    #[test]
    fn by_hand() {
        // x + y >= 2, x + 3 y >= 3: the corner (3/2, 1/2) costs 2 x + 3 y = 9/2; the others, (0, 2) and (3, 0), cost 6.
        let rows = program(&[(&[1, 1], 2), (&[1, 3], 3)]);
        assert_eq!(least_value(&rows, &[integer(2), integer(3)]), ratio(9, 2));
        // x >= 1 and -x >= 0 contradict each other.
        let rows = program(&[(&[1], 1), (&[-1], 0)]);
        assert_eq!(least_value(&rows, &[integer(1)]), None);
    }

    proptest! {
        /// In two dimensions the least value is at a crossing of two lines that keeps to all rows.
        #[test]
        fn equals_the_best_corner(rows in prop::collection::vec((-4i32..5, -4i32..5, -6i32..7), 1..6), cost in (0i32..5, 0i32..5)) {
            let lines: Vec<_> = rows.iter().copied().chain([(1, 0, 0), (0, 1, 0)]).collect();
            let mut best: Option<Exact> = None;
            for a in &lines {
                for b in &lines {
                    let det = a.0 * b.1 - a.1 * b.0;
                    if det == 0 { continue; }
                    let x = ratio(a.2 * b.1 - a.1 * b.2, det).unwrap();
                    let y = ratio(a.0 * b.2 - a.2 * b.0, det).unwrap();
                    let keeps = lines.iter().all(|l| integer(l.0) * &x + integer(l.1) * &y >= integer(l.2));
                    let value = integer(cost.0) * &x + integer(cost.1) * &y;
                    if keeps && best.as_ref().is_none_or(|b| value < *b) { best = Some(value); }
                }
            }
            let rows: Vec<_> = rows.iter().map(|r| (vec![integer(r.0), integer(r.1)], integer(r.2))).collect();
            prop_assert_eq!(least_value(&rows, &[integer(cost.0), integer(cost.1)]), best);
        }
    }
}
