//! Multiple tests: limits the false findings over many rows.

/// Declares rows such that at most the share `rate` of them is expected to be false: the step-up procedure of Benjamini
/// and Hochberg (1995), which holds if the rows depend on each other positively, as rows of a chapter do. If nothing
/// differs, `rate` is the probability that any row is declared.
pub fn benjamini_hochberg(p: &[f64], rate: f64) -> Vec<bool> {
    let mut sorted = p.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let allowed = |rank: usize| rate * (rank + 1) as f64 / p.len() as f64;
    let last = (0..sorted.len()).rev().find(|rank| sorted[*rank] <= allowed(*rank));
    p.iter().map(|p| last.is_some_and(|last| *p <= sorted[last])).collect()
}

/// Declares rows such that the probability of any false one is at most `level`: the step-down procedure of Holm (1979).
/// For decisions, such as failing a build, rather than for reading.
pub fn holm(p: &[f64], level: f64) -> Vec<bool> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_unstable_by(|a, b| p[*a].total_cmp(&p[*b]));
    let mut declared = vec![false; p.len()];
    for (rank, row) in order.into_iter().enumerate() {
        if p[row] > level / (p.len() - rank) as f64 {
            break;
        }
        declared[row] = true;
    }
    declared
}
