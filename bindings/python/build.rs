//! Records the compiler and flags of the build, which every sheet lists in its conditions.

use std::env;
use std::process::Command;

fn main() {
    let variable = |name: &str| env::var(name).unwrap_or_default();
    let rustc = env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    let output = Command::new(rustc).arg("--version").output();
    let compiler = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default();
    println!("cargo:rustc-env=HAIRSPRING_COMPILER={compiler}");
    println!(
        "cargo:rustc-env=HAIRSPRING_FLAGS={}, opt-level {}, {}, Python module",
        variable("PROFILE"),
        variable("OPT_LEVEL"),
        variable("TARGET")
    );
    println!("cargo:rerun-if-changed=build.rs");
}
