//! `cargo xtask test`: what it runs, and in which order.

use crate::steps::{Beside, Steps};
use anyhow::Result;
use campaigns::shutdown_cycles::Mode;
use campaigns::{
    bad_input, clients, dashboard, differential, exporter, extension_soak, fuzz, import, isolation,
    kill_cycles, list_append, memory, prometheus, redo_capacity, round_trip, shutdown_cycles,
    sysbench_scripts, torture, tpcc,
};
use lab::command::{cargo, target_directory};
use lab::release_build::Profile;
use lab::server_process::{Kind, Program};
use lab::system_packages;
use std::time::Duration;

/// The tests. One build of everything: the feature is off in the lints, the documentation and the release
/// program.
const TESTS: [&str; 4] = ["test", "--workspace", "--features", "untorn-server/opensrv"];

/// Runs it.
pub fn run(steps: &mut Steps, quick: bool) {
    // Some crate tests drive the server with stock clients too.
    steps.step("packages", system_packages::install_missing);
    before_tests(steps);
    // Tests wait more than they compute: what is built meanwhile costs little time.
    let builds = (!quick).then(|| {
        Beside::begin("release build and fuzz targets", || {
            Profile::Quick.build_beside()?;
            fuzz::build_beside()
        })
    });
    tests(steps);
    let Some(builds) = builds else { return };
    steps.join(builds);
    steps.step("crash states", || torture::quick(Profile::Quick));
    steps.step("fuzz targets", || fuzz::run(&fuzz::SHORT));
    let program = steps.build_server(Profile::Quick);
    steps.with(program, end_to_end);
}

/// Format and lints; the tests are built.
fn before_tests(steps: &mut Steps) {
    steps.step("format", || cargo(&["fmt", "--all", "--check"], &[]));
    steps.step("lints", || cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"], &[]));
    steps.step("build of the tests", || cargo(&[&TESTS[..], &["--no-run", "--quiet"]].concat(), &[]));
}

/// Tests, models, packages, documentation.
fn tests(steps: &mut Steps) {
    steps.step("tests", || cargo(&[&TESTS[..], &["--no-fail-fast"]].concat(), &[]));
    steps.step("loom models", || {
        let target = target_directory().join("loom");
        let target = target.to_string_lossy();
        let crates = ["-p", "untorn-redo", "-p", "untorn-pagestore", "-p", "untorn-txn"];
        let arguments = [&["test", "--release", "--lib"], &crates[..], &["loom_"]].concat();
        // Each model is a program of its own: not worth optimizing through all crates.
        let quick = [("CARGO_PROFILE_RELEASE_LTO", "off"), ("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16")];
        let place = [("RUSTFLAGS", "--cfg loom"), ("CARGO_TARGET_DIR", &*target)];
        cargo(&arguments, &[place, quick].concat())
    });
    steps.step("crates as they would be published", package);
    steps.step("documentation", || {
        cargo(
            &["doc", "--workspace", "--no-deps", "--document-private-items"],
            &[("RUSTDOCFLAGS", "-D warnings")],
        )
    });
}

/// Makes the archives of all crates but those that are ours alone. They are not built: the workspace was, and
/// what an archive lacks shows in its list.
fn package() -> Result<()> {
    let ours = ["xtask", "untorn-torture", "untorn-campaigns", "untorn-lab"];
    let without = ours.iter().flat_map(|package| ["--exclude", package]);
    // The steps before have downloaded all that the versions are taken from.
    let arguments = ["package", "--workspace", "--no-verify", "--allow-dirty", "--offline"];
    cargo(&arguments.into_iter().chain(without).collect::<Vec<_>>(), &[])
}

/// The parts of it that need a server.
pub fn end_to_end(steps: &mut Steps, program: &Program) {
    steps.step("packages", system_packages::install_missing);
    steps.step("clients", || clients::run(program));
    steps.step("sysbench", || sysbench_scripts::all(program, None));
    steps.step("memory", || memory::run(program, memory::SHORT));
    steps.step("redo capacity", || redo_capacity::run(program, Duration::from_secs(20), 16));
    steps.step("isolation", || isolation::run(program));
    steps.step("list-append histories", || list_append::run(program, &list_append::SHORT));
    steps.step("random statements", || differential::check(program));
    steps.step("kill cycles", || kill_cycles::run(program, 10, None));
    steps.step("TPC-C", || tpcc::run(program, &tpcc::short()));
    steps.step("file system shutdowns", || shutdown_cycles::run(program, 20, Mode::Both, None));
    steps.step("bad input", || bad_input::run(program, None, None));
    steps.step("soak of the extension", || extension_soak::run(program, &extension_soak::SHORT));
    steps.step("import into MariaDB and back", || import::check(program));
    steps.step("dumps there and back", || round_trip::run(program, &round_trip::short()));
    if program.kind == Kind::Untorn {
        steps.step("client libraries", || clients::applications::short(program));
        steps.step("dashboard", || dashboard::run(program, None));
        steps.step("mysqld_exporter", || exporter::run(program));
        steps.step("Prometheus", || prometheus::run(program));
        without_io_uring(steps, &program.without_io_uring());
    }
}

/// The same once more over epoll and threads, which take over where the kernel refuses io_uring.
pub fn without_io_uring(steps: &mut Steps, program: &Program) {
    steps.step("clients, without io_uring", || clients::run(program));
    steps.step("sysbench, without io_uring", || sysbench_scripts::one(program, "oltp_read_write", 16));
    steps.step("kill cycles, without io_uring", || kill_cycles::run(program, 2, None));
}
