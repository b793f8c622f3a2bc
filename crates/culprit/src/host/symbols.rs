//! [`Symbols`]: the kernel's functions by their addresses.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::sync::Arc;

/// The kernel's functions, sorted by address; read at the first lookup.
#[derive(Debug, Default)]
pub(crate) struct Symbols {
    functions: Option<Vec<(u64, Arc<str>)>>,
}

impl Symbols {
    /// The function at this address; `None` if this process may not see the kernel's addresses.
    pub(crate) fn name(&mut self, address: u64) -> Option<Arc<str>> {
        let functions = self.functions.get_or_insert_with(|| read().unwrap_or_default());
        let place = functions.binary_search_by_key(&address, |function| function.0).ok()?;
        functions.get(place).map(|function| Arc::clone(&function.1))
    }
}

/// `ffffffff81000000 T _stext`; an unprivileged reader sees only zeros as addresses.
fn read() -> std::io::Result<Vec<(u64, Arc<str>)>> {
    let mut functions = Vec::new();
    let mut lines = BufReader::new(File::open("/proc/kallsyms")?);
    let mut line = String::new();
    while lines.read_line(&mut line)? > 0 {
        let mut words = line.split_whitespace();
        if let (Some(address), Some("t" | "T" | "w" | "W"), Some(name)) = (words.next(), words.next(), words.next()) {
            match u64::from_str_radix(address, 16) {
                Ok(0) | Err(_) => {}
                Ok(address) => functions.push((address, Arc::from(name))),
            }
        }
        line.clear();
    }
    functions.sort_by_key(|function| function.0);
    Ok(functions)
}
