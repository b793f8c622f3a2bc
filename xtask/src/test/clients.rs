//! Tests programs in C, C++ and Tcl with the installed library, under a temporary prefix.
//!
//! It installs as `cargo xtask install` does: in the step `c` the library that the step `build` has built, in the
//! others the release archive. Each program is compiled with pkg-config's flags and linked with the library's path;
//! each script finds the package by TCLLIBPATH. LD_LIBRARY_PATH is not used, because it would hide a package with a
//! broken path. The output of each example is compared with its shape, which is the same in every language.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use super::{Context, interface};
use crate::install::{self, Installed, Layout, Parts};
use crate::tally::Tally;
use crate::{library, shapes};

/// Time limit of one program; valgrind makes it about twenty times slower.
const ONE_PROGRAM: Duration = Duration::from_secs(60);
/// How many calls of each kind the measuring programs make here.
const FEW_CALLS: &str = "200";
/// Strict warnings, and debug information for the checkers' messages.
const STRICT: [&str; 6] = ["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-g"];

/// What both forms of the ported program print, and the book's page about it shows.
const BOTTLED: &str =
    "bottle 1 full with 20 g\nbottle 2 full with 20 g\nbottle 3 given up with 0 g\nbottle 4 full with 20 g\n";

/// A prefix with everything installed, and the outcomes of the checks so far.
struct Site<'a> {
    context: &'a Context<'a>,
    name: &'a str,
    prefix: PathBuf,
    folder: PathBuf,
    installed: Installed,
    tally: Tally,
}

/// The library of the step `build`.
pub(super) fn c(context: &Context, name: &str) -> Tally {
    let workspace = context.workspace;
    let (archive, command) = (workspace.built("libhairspring.a"), workspace.built("hairspring"));
    lay_out(context, name, archive, None, |site| site.programs(&command))
}

/// The library as it ships, and under checkers.
pub(super) fn optimised_c(context: &Context, name: &str) -> Tally {
    within(context, name, false, |site| {
        site.earlier_interface();
        site.programs(&context.workspace.release_binary("hairspring"));
        for source in ["client", "exec", "objects", "scheduling", "deletion", "memory", "misfortune"] {
            let whole = site.compile_instrumented(source);
            site.client(&format!("{source} and library under AddressSanitizer"), whole, &[]);
        }
        let client = site.compiled("client-valgrind.c", "crates/c/tests/client.c", &[]);
        // Only definite leaks: the standard library's block for a foreign thread looks like a possible one.
        let leaks = ["--leak-check=full", "--show-leak-kinds=definite", "--errors-for-leak-kinds=definite"];
        // The access to a truncated file is repeated after the signal handler, so valgrind must keep all registers
        // exact.
        let registers = "--vex-iropt-register-updates=allregs-at-mem-access";
        let valgrind = [&["valgrind", "--quiet", "--error-exitcode=9", registers], &leaks[..]].concat();
        site.client("client under valgrind", client, &valgrind);
    })
}

pub(super) fn tcl(context: &Context, name: &str) -> Tally {
    within(context, name, false, |site| {
        let mut tests = site.script("bindings/tcl/tests/hairspring.test");
        let said = site.run("hairspring.test", tests.arg(&site.folder));
        match said.and_then(|said| number(&said, "passed")) {
            Ok(passed) => site.tally.passed += passed,
            Err(why) => site.case("hairspring.test", Err(why)),
        }
        let said = site.run("example timer", &mut site.script("bindings/tcl/examples/timer.tcl"));
        site.case("example timer", said.and_then(|said| (number(&said, "calls")? == 50).then_some(()).ok_or(said)));
        site.examples("bindings/tcl/examples", "tcl", |site, source| Ok(site.script(&source.to_string_lossy())));
    })
}

pub(super) fn install(context: &Context, name: &str) -> Tally {
    within(context, name, true, |site| {
        let missing = site.installed.files.iter().find(|file| !file.exists());
        let whole = match (missing, site.installed.left_out.first()) {
            (None, None) => Ok(()),
            (Some(file), _) => Err(format!("{} is not there", file.display())),
            (None, Some(part)) => Err(format!("left out: {part}")),
        };
        site.case("all parts", whole);
        let command = site.prefix.join("bin/hairspring");
        site.case("command", site.run("hairspring", Command::new(&command).arg("--version")).map(drop));
        site.case("take a sheet", site.takes_a_sheet(&command));
        for (label, program, last) in [
            ("callers-c", Command::new(site.prefix.join("libexec/hairspring/callers-c")), None),
            ("callers-c pointer", Command::new(site.prefix.join("libexec/hairspring/callers-c")), Some("pointer")),
            ("callers.tcl", site.script(&site.prefix.join("libexec/hairspring/callers.tcl").to_string_lossy()), None),
        ] {
            site.case(label, site.callers(label, program, last));
        }
        site.case("DESTDIR", site.destination());
        site.case("pkg-config and CMake in a foreign project", site.foreign());
    })
}

/// The library as it ships, built together with the command.
const BUILD: [&str; 7] = ["rustc", "--quiet", "--release", "-p", "hairspring-c", "--crate-type", "staticlib"];

/// Builds the library as it ships, installs it, runs the checks, and returns their outcomes.
fn within(context: &Context, name: &str, with_command: bool, checks: impl FnOnce(&mut Site)) -> Tally {
    let workspace = context.workspace;
    let built = context.run(&format!("{name} build"), &mut workspace.cargo(&BUILD));
    if !built.succeeded() {
        return Tally::fail(name, format!("build: {}", built.how), built.tail());
    }
    let command = with_command.then(|| workspace.release_binary("hairspring"));
    lay_out(context, name, workspace.release_binary("libhairspring.a"), command, checks)
}

/// Installs a library, and the command if there is one, runs the checks, and returns their outcomes.
fn lay_out(
    context: &Context,
    name: &str,
    archive: PathBuf,
    command: Option<PathBuf>,
    checks: impl FnOnce(&mut Site),
) -> Tally {
    let folder = context.workspace.scratch(&format!("clients-{name}"));
    let _ = fs::remove_dir_all(&folder);
    let prefix = folder.join("prefix");
    let parts = Parts { command, archive, prefix: prefix.clone(), destination: None, layout: Layout::default() };
    match install::lay_out(context.workspace, &parts) {
        Ok(installed) => {
            let mut site = Site { context, name, prefix, folder, installed, tally: Tally::default() };
            checks(&mut site);
            site.tally
        }
        Err(why) => Tally::fail(name, format!("install: {why}"), ""),
    }
}

impl Site<'_> {
    /// Programs in C and C++, each with the library of the site; one of them beside a recording by this command.
    fn programs(&mut self, recorder: &Path) {
        self.case("symbols", self.symbols());
        let client = self.compiled("client.c", "crates/c/tests/client.c", &[]);
        self.client("client", client, &[]);
        let checked = self.compiled("client-asan.c", "crates/c/tests/client.c", &["-fsanitize=address,undefined"]);
        self.client("client under AddressSanitizer", checked, &[]);
        let exec = self.compiled("exec.c", "crates/c/tests/exec.c", &[]);
        self.client("executive", exec, &[]);
        let (test, loader) = ("crates/c/tests/exec.c", "crates/c/tests/loader.c");
        let loaded = self.compiled("loaded.c", test, &["-shared", "-fPIC"]);
        match self.compiled("loader.c", loader, &["-ldl"]) {
            Ok(loader) => self.client("executive that is loaded later", loaded, &[&loader.to_string_lossy()]),
            Err(why) => self.case("executive that is loaded later", Err(why)),
        }
        let objects = self.compiled("objects.c", "crates/c/tests/objects.c", &[]);
        self.client("objects of the executive", objects, &[]);
        let scheduling = self.compiled("scheduling.c", "crates/c/tests/scheduling.c", &[]);
        self.client("scheduling of the executive", scheduling, &[]);
        let deletion = self.compiled("deletion.c", "crates/c/tests/deletion.c", &[]);
        self.client("deletion of objects of the executive", deletion, &[]);
        let memory = self.compiled("memory.c", "crates/c/tests/memory.c", &[]);
        self.client("memory of the executive", memory, &[]);
        let misfortune = self.compiled("misfortune.c", "crates/c/tests/misfortune.c", &[]);
        self.client("misfortunes of the executive", misfortune, &[]);
        let tap = self.compiled("tap.c", "crates/c/tests/tap.c", &["-fsanitize=address,undefined"]);
        let said = tap.and_then(|program| self.taps(&program, recorder));
        self.case("live tap", said);
        let handler = self.compiled("handler.c", "crates/c/tests/handler.c", &[]);
        self.client("signal handler", handler, &[]);
        let plus = self.compile_plus().and_then(|program| self.run("header.cpp", &mut Command::new(program)).map(drop));
        self.case("header in C++", plus);
        let alone = self.compile_static("crates/c/examples/delay.c");
        self.case("static", alone.and_then(|program| self.run("delay-static", &mut Command::new(program)).map(drop)));
        let metric = self.compiled("thread_metric.c", "crates/c/tests/thread_metric.c", &["-O2"]);
        for backend in ["fibers", "threads"] {
            let label = format!("thread metric on {backend}");
            let said =
                metric.clone().and_then(|program| self.run(&label, Command::new(program).args([backend, "100"])));
            // A loop without a call cannot be preempted on fibers.
            let all = if backend == "fibers" { "passed 7 of 8" } else { "passed 8 of 8" };
            let whole = |said: String| if said.lines().any(|line| line == all) { Ok(()) } else { Err(said) };
            self.case(&label, said.and_then(whole));
        }
        let benchmark = self.compiled("rtos_benchmark.c", "crates/c/tests/rtos_benchmark.c", &["-O2"]);
        for (backend, all) in [("fibers", "passed 31 of 32"), ("threads", "passed 32 of 32")] {
            let label = format!("rtos-benchmark on {backend}");
            let said = benchmark
                .clone()
                .and_then(|program| self.run(&label, Command::new(program).args([backend, FEW_CALLS])));
            match said {
                Ok(said) if said == "strict 0\n" => {
                    let reason = "the system refuses real-time priorities";
                    self.tally.add(Tally::skip(&format!("{} {label}", self.name), reason, false));
                }
                Ok(said) if said.lines().any(|line| line == all) => self.case(&label, Ok(())),
                other => self.case(&label, other.and_then(Err)),
            }
        }
        let passes = self.compiled("executive.c", "crates/c/examples/executive.c", &["-O2"]);
        let said = passes.and_then(|program| self.output("example executive", &Command::new(program)));
        let expected = "samples 50\naverages 5\nearly 0\nstopped asked\nmishaps 0\n";
        let told = said.and_then(|said| if said == expected { Ok(()) } else { Err(format!("it printed\n{said}")) });
        self.case("example executive", told);
        for name in ["bottling_amx", "bottling"] {
            let label = format!("example {name}");
            let source = format!("crates/c/examples/{name}.c");
            let said = self.compiled(&format!("{name}.c"), &source, &["-O2"]);
            let said = said.and_then(|program| self.output(&label, &Command::new(program)));
            let told = said.and_then(|said| if said == BOTTLED { Ok(()) } else { Err(format!("it printed\n{said}")) });
            self.case(&label, told);
        }
        self.examples("crates/c/examples", "c", |site, source| {
            let file = source.file_name().unwrap_or_default().to_string_lossy().into_owned();
            site.compiled(&file, &source.to_string_lossy(), &["-O2"]).map(Command::new)
        });
    }

    fn case(&mut self, label: &str, outcome: Result<(), String>) {
        match outcome {
            Ok(()) => self.tally.passed += 1,
            Err(why) => self.tally.failure(&format!("{} {label}", self.name), why, ""),
        }
    }

    /// Runs a program from the root of the repository, and returns its output.
    fn run(&self, label: &str, command: &mut Command) -> Result<String, String> {
        command.current_dir(&self.context.workspace.root).env_remove("LD_LIBRARY_PATH");
        let ended = self.context.run_at_most(&format!("{} {label}", self.name), command, ONE_PROGRAM);
        if ended.succeeded() { Ok(ended.output) } else { Err(format!("{}\n{}", ended.how, ended.tail())) }
    }

    fn script(&self, path: &str) -> Command {
        let mut tclsh = Command::new("tclsh");
        tclsh.arg(path).env("TCLLIBPATH", self.prefix.join("lib"));
        tclsh
    }

    /// pkg-config's flags for the library.
    fn flags(&self, arguments: &[&str]) -> Result<Vec<String>, String> {
        let mut command = Command::new("pkg-config");
        command.args(arguments).arg("hairspring").env("PKG_CONFIG_PATH", self.prefix.join("lib/pkgconfig"));
        Ok(library::run(&mut command)?.split_whitespace().map(str::to_owned).collect())
    }

    /// Compiles a C program and returns its path.
    fn compiled(&self, name: &str, source: &str, options: &[&str]) -> Result<PathBuf, String> {
        let program = self.folder.join(name).with_extension("out");
        let mut command = library::compiler();
        command.args(STRICT).args(options).arg("-o").arg(&program).arg(self.context.workspace.root.join(source));
        command.args(self.flags(&["--cflags", "--libs"])?).arg(self.place()).args(["-lm", "-pthread"]);
        library::run(&mut command)?;
        Ok(program)
    }

    /// The linker flag with the library's path, which programs need if the loader does not search the prefix.
    fn place(&self) -> String {
        format!("-Wl,-rpath,{}", self.prefix.join("lib").display())
    }

    /// Compiles a client and the library under AddressSanitizer, so that the library's memory is checked, too. The
    /// stable compiler needs permission for this unstable option.
    fn compile_instrumented(&self, source: &str) -> Result<PathBuf, String> {
        let (workspace, target) = (self.context.workspace, format!("{}-unknown-linux-gnu", std::env::consts::ARCH));
        let folder = workspace.scratch("asan");
        let mut build = workspace.cargo(&["rustc", "--quiet", "-p", "hairspring-c", "--crate-type", "staticlib"]);
        build.args(["--target", &target, "--features", "hairspring-exec/sanitizer"]).env("CARGO_TARGET_DIR", &folder);
        build.env("RUSTC_BOOTSTRAP", "1").env("RUSTFLAGS", "-Zsanitizer=address");
        let built = self.context.run(&format!("{} build under AddressSanitizer", self.name), &mut build);
        if !built.succeeded() {
            return Err(format!("build: {}\n{}", built.how, built.tail()));
        }
        let archive = folder.join(target).join("debug/libhairspring.a");
        let program = self.folder.join(format!("{source}-instrumented.out"));
        let mut command = library::compiler();
        command.args(STRICT).arg("-fsanitize=address").arg("-o").arg(&program);
        command
            .arg(workspace.root.join(format!("crates/c/tests/{source}.c")))
            .args(self.flags(&["--cflags"])?)
            .arg(archive);
        let private = self.flags(&["--libs", "--static"])?;
        command.args(private.iter().filter(|flag| *flag != "-lhairspring")).args(["-lm", "-pthread"]);
        library::run(&mut command)?;
        Ok(program)
    }

    /// Runs the client of the live tap beside a recording of a million frames, one a microsecond.
    fn taps(&self, program: &Path, recorder: &Path) -> Result<(), String> {
        let (folder, socket) = (self.folder.join("taps"), self.folder.join("tap.sock"));
        fs::create_dir_all(&folder).map_err(|error| format!("create {}: {error}", folder.display()))?;
        let card = "virtual:1ch,32bit,1MS/s,data=counter";
        let mut record = Command::new(recorder);
        record.args([
            "record", "--quiet", "--buffer", "4MiB", "--card", card, "--frames", "1000000", "--to", "x", "--tap",
        ]);
        record.arg(&socket).current_dir(&folder).stdout(Stdio::null()).stdin(Stdio::null());
        let mut record = record.spawn().map_err(|error| format!("start the recorder: {error}"))?;
        let said = self.run("live tap", Command::new(program).arg(&self.folder).arg(&socket));
        let _ = record.kill();
        let _ = record.wait();
        if number(&said?, "checks")? > 0 { Ok(()) } else { Err("it checked nothing".to_owned()) }
    }

    fn compile_plus(&self) -> Result<PathBuf, String> {
        let program = self.folder.join("header.out");
        let mut command = Command::new("g++");
        command.args(["-std=c++11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-o"]).arg(&program);
        command.arg(self.context.workspace.root.join("crates/c/tests/header.cpp"));
        library::run(command.args(self.flags(&["--cflags", "--libs"])?).arg(self.place()))?;
        Ok(program)
    }

    /// Compiles a C program with the static library, so that it does not need the shared one.
    fn compile_static(&self, source: &str) -> Result<PathBuf, String> {
        let program = self.folder.join("static.out");
        let mut command = library::compiler();
        command.args(STRICT).arg("-o").arg(&program).arg(self.context.workspace.root.join(source));
        command.args(self.flags(&["--cflags"])?).arg(self.prefix.join("lib/libhairspring.a"));
        let private = self.flags(&["--libs", "--static"])?;
        library::run(command.args(private.iter().filter(|flag| *flag != "-lhairspring")))?;
        let needed = library::run(Command::new("readelf").arg("-d").arg(&program))?;
        if needed.contains("libhairspring") {
            return Err("the program with the static library needs the shared one".to_owned());
        }
        Ok(program)
    }

    /// Runs the client that makes every mistake, alone or under a checker.
    fn client(&mut self, label: &str, program: Result<PathBuf, String>, checker: &[&str]) {
        let outcome = program.and_then(|program| {
            let words = checker.iter().map(|word| (*word).to_owned());
            let mut words = words.chain([program.to_string_lossy().into_owned()]);
            let mut command = Command::new(words.next().unwrap_or_default());
            let said = self.run(label, command.args(words).arg(&self.folder))?;
            let checks = number(&said, "checks")?;
            if checks == 0 { Err("it checked nothing".to_owned()) } else { Ok(()) }
        });
        self.case(label, outcome);
    }

    /// Compiled programs keep working: the interface against its record, and a program of the first version with this
    /// library. A program of today with a library of the first version must be refused at its start, not in the middle.
    fn earlier_interface(&mut self) {
        let root = &self.context.workspace.root;
        match interface::ABIDIFF.missing(self.context.workspace) {
            Some(missing) => {
                let name = format!("{} interface against its record", self.name);
                self.tally.add(Tally::skip(&name, missing.to_string(), missing.installable));
            }
            None => {
                let held = interface::holds(root, &self.folder.join("interface"));
                self.case("interface against its record", held);
            }
        }
        let first = self.folder.join("first-version");
        let built = interface::Interface::recorded(root).and_then(|old| old.library(&first));
        let program = built.as_ref().map_err(String::clone).and_then(|old| {
            let source = root.join(interface::RECORD).join("client.c");
            self.linked("first-version.out", &first, &source, old, &self.prefix.join("lib"))
        });
        self.client("program of the first version", program, &[]);
        let newer = built.and_then(|old| {
            let (source, lib) = (root.join("crates/c/tests/objects.c"), self.prefix.join("lib"));
            let new = lib.join("libhairspring.so");
            let program = self.linked("newer.out", &self.prefix.join("include"), &source, &new, &first)?;
            let ended = Command::new(&program).env_remove("LD_LIBRARY_PATH").output();
            let ended = ended.map_err(|error| format!("run {}: {error}", program.display()))?;
            let said = String::from_utf8_lossy(&ended.stderr);
            if !ended.status.success() && said.contains("version `HAIRSPRING_1.1' not found") {
                return Ok(());
            }
            Err(format!("with {} it ended with {}: {said}", old.display(), ended.status))
        });
        self.case("program of today with a library of the first version", newer);
    }

    /// Compiles a program with the headers of one folder, links it with one library, and lets it look for it in another
    /// folder.
    fn linked(
        &self,
        name: &str,
        headers: &Path,
        source: &Path,
        library: &Path,
        place: &Path,
    ) -> Result<PathBuf, String> {
        let program = self.folder.join(name);
        let mut command = library::compiler();
        command.args(STRICT).arg("-I").arg(headers).arg("-o").arg(&program).arg(source).arg(library);
        command.arg(format!("-Wl,-rpath,{}", place.display())).arg("-pthread");
        library::run(&mut command)?;
        Ok(program)
    }

    /// The library exports exactly the header's functions, each with its version.
    fn symbols(&self) -> Result<(), String> {
        let shared = self.prefix.join("lib/libhairspring.so");
        let mut declared = BTreeSet::new();
        for header in ["include/hairspring.h", "include/hairspring_exec.h", "include/hairspring_tap.h"] {
            declared.append(&mut library::declared(
                &fs::read_to_string(self.prefix.join(header)).map_err(|error| error.to_string())?,
            ));
        }
        let listed = library::run(Command::new("nm").args(["-D", "--defined-only"]).arg(&shared))?;
        let names = listed.lines().filter_map(|line| line.rsplit(' ').next()).filter(|name| name.starts_with("hs_"));
        let exported: BTreeSet<String> = names.map(str::to_owned).collect();
        let map = self.context.workspace.root.join(library::MAP);
        let wanted = library::versions(&fs::read_to_string(map).map_err(|error| error.to_string())?);
        if let Some(odd) = wanted.symmetric_difference(&exported).next() {
            return Err(format!("{odd} is exported but not in {}, or the other way round", library::MAP));
        }
        let named: BTreeSet<String> =
            wanted.iter().filter_map(|name| name.split('@').next()).map(str::to_owned).collect();
        if let Some(odd) = named.symmetric_difference(&declared).next() {
            return Err(format!("{odd} is in {} but not in a header, or the other way round", library::MAP));
        }
        let dynamic = library::run(Command::new("readelf").arg("-d").arg(&shared))?;
        if wanted.is_empty() || !dynamic.contains(&format!("[{}]", library::soname())) {
            return Err(format!("there is no function, or no SONAME {}", library::soname()));
        }
        // Fibers switch stacks: the loader must not take the library for one that works with shadow stacks.
        let notes = library::run(Command::new("readelf").args(["-n", "-W"]).arg(&shared))?;
        if notes.contains("SHSTK") {
            return Err(format!("it is marked for shadow stacks:\n{notes}"));
        }
        Ok(())
    }

    /// Runs the example of each shape, and compares.
    fn examples(&mut self, folder: &str, ending: &str, command: impl Fn(&Self, &Path) -> Result<Command, String>) {
        let shapes = match shapes::read(self.context.workspace) {
            Ok(shapes) => shapes,
            Err(why) => return self.case("shapes", Err(why)),
        };
        for shape in shapes {
            let source = Path::new(folder).join(&shape.name).with_extension(ending);
            let label = format!("example {}", shape.name);
            let output = command(self, &source).and_then(|command| self.output(&label, &command));
            self.case(&label, output.and_then(|output| shape.check(&output)));
        }
    }

    /// The standard output of a program; messages for people on standard error have no shape.
    fn output(&self, label: &str, command: &Command) -> Result<String, String> {
        let words = self.folder.join("words");
        let mut shell = Command::new("sh");
        shell.args(["-c", "exec \"$@\" 2> \"$0\""]).arg(&words).arg(command.get_program()).args(command.get_args());
        shell.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        self.run(label, &mut shell).map_err(|why| format!("{why}\n{}", fs::read_to_string(&words).unwrap_or_default()))
    }

    /// The library takes a sheet by the installed command.
    fn takes_a_sheet(&self, command: &Path) -> Result<(), String> {
        let script = self.folder.join("take.tcl");
        let text = "package require hairspring\nset sheet [hairspring take_sheet -only clocks.read.now -quick yes]\n\
                    puts \"rows [dict get [$sheet contents] rows]\"\n";
        fs::write(&script, text).map_err(|error| format!("write {}: {error}", script.display()))?;
        let said = self.run("take.tcl", self.script(&script.to_string_lossy()).env("HAIRSPRING", command))?;
        if number(&said, "rows")? == 0 { Err("the sheet has no row".to_owned()) } else { Ok(()) }
    }

    /// Checks that a measuring program prints one JSON object with samples of each kind.
    fn callers(&self, label: &str, mut program: Command, last: Option<&str>) -> Result<(), String> {
        let file = self.folder.join("word");
        fs::write(&file, [0; 8192]).map_err(|error| format!("write {}: {error}", file.display()))?;
        let said = self.run(label, program.arg(&file).arg(FEW_CALLS).args(last))?;
        let printed: serde_json::Value = serde_json::from_str(&said).map_err(|error| format!("{error} in {said}"))?;
        for kind in ["now", "delay_1us", "word_read", "word_write"] {
            let (first, later) = (printed[kind]["first_ns"].as_f64(), printed[kind]["later_ns"].as_array());
            let samples = later.map(|later| later.iter().filter_map(serde_json::Value::as_f64).collect::<Vec<_>>());
            if !(first.is_some_and(|first| first > 0.0)
                && samples.is_some_and(|later| later.iter().any(|ns| *ns > 0.0)))
            {
                return Err(format!("{kind} has no first call or no later ones: {}", printed[kind]));
            }
        }
        Ok(())
    }

    /// With DESTDIR all files lie below it, and their contents name only the prefix.
    fn destination(&self) -> Result<(), String> {
        let destination = self.folder.join("destination");
        let parts = Parts {
            command: None,
            archive: self.prefix.join("lib/libhairspring.a"),
            prefix: "/opt/hairspring".into(),
            destination: Some(destination.clone()),
            layout: Layout::default(),
        };
        let installed = install::lay_out(self.context.workspace, &parts)?;
        let inside = destination.join("opt/hairspring");
        if let Some(outside) = installed.files.iter().find(|file| !file.starts_with(&inside)) {
            return Err(format!("{} lies outside of the destination", outside.display()));
        }
        let description =
            fs::read_to_string(inside.join("lib/pkgconfig/hairspring.pc")).map_err(|error| error.to_string())?;
        if !description.starts_with("prefix=/opt/hairspring\n") {
            return Err(format!("hairspring.pc has another prefix:\n{description}"));
        }
        Ok(())
    }

    /// A project with a build system of its own finds the library by CMake, after the whole installation was moved, and
    /// by pkg-config.
    fn foreign(&self) -> Result<(), String> {
        let (root, moved, build) =
            (&self.context.workspace.root, self.folder.join("moved"), self.folder.join("foreign"));
        library::run(Command::new("cp").arg("-a").arg(&self.prefix).arg(&moved))?;
        let mut configure = Command::new("cmake");
        configure.arg("-S").arg(root.join("crates/c/tests/foreign")).arg("-B").arg(&build);
        configure.arg(format!("-DCMAKE_PREFIX_PATH={}", moved.display()));
        configure.arg(format!("-DEXAMPLE={}", root.join("crates/c/examples/delay.c").display()));
        configure.env("PKG_CONFIG_PATH", self.prefix.join("lib/pkgconfig"));
        self.run("cmake", &mut configure)?;
        self.run("cmake --build", Command::new("cmake").arg("--build").arg(&build))?;
        for (program, needed) in [("hairspring", Some(&moved)), ("static", None), ("HAIRSPRING", Some(&self.prefix))] {
            let program = build.join(program);
            let said = self.run(&format!("foreign {}", program.display()), &mut Command::new(&program))?;
            number(&said, "late_ns")?;
            let loaded = library::run(Command::new("ldd").arg(&program))?;
            let found = loaded.lines().find(|line| line.contains("libhairspring.so"));
            let is_there =
                |prefix: &&PathBuf| found.is_some_and(|line| line.contains(&*prefix.join("lib").to_string_lossy()));
            if !needed.as_ref().map_or(found.is_none(), is_there) {
                return Err(format!("{} has the wrong library: {found:?}", program.display()));
            }
        }
        Ok(())
    }
}

/// The number in a line `key number`.
fn number(said: &str, key: &str) -> Result<u64, String> {
    let value = said.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' '));
    value.and_then(|value| value.parse().ok()).ok_or_else(|| format!("it printed no line {key} with a number:\n{said}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_read_from_its_line() {
        assert_eq!(number("passed 12\nfailed 0\n", "passed"), Ok(12));
        assert!(number("passed\n", "passed").is_err());
        assert!(number("", "passed").is_err());
    }
}
