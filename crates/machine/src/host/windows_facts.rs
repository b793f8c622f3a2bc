//! The facts of a Windows machine, and whether it is one: Wine identifies itself.
//!
//! Some facts come from the page that the Windows kernel shares with every process (`KUSER_SHARED_DATA` of the Windows
//! Driver Kit): how `QueryPerformanceCounter` gets its value, and how long the machine was suspended. Under Wine the
//! host is asked through the files of its kernel, which Wine shows under `\\?\unix`.

use std::ffi::{CStr, c_char};
use std::io::Error;
use std::ptr;

use windows_sys::Wdk::System::SystemInformation::NtQueryTimerResolution;
use windows_sys::Wdk::System::SystemServices::RtlGetVersion;
use windows_sys::Win32::System::LibraryLoader::{GetModuleHandleA, GetProcAddress};
use windows_sys::Win32::System::SystemInformation::{
    ComputerNameDnsHostname, GetComputerNameExW, GetTickCount64, GlobalMemoryStatusEx, MEMORYSTATUSEX, OSVERSIONINFOW,
};
use windows_sys::Win32::System::Threading::{
    ALL_PROCESSOR_GROUPS, GetActiveProcessorCount, GetCurrentProcess, GetPriorityClass, HIGH_PRIORITY_CLASS,
    NORMAL_PRIORITY_CLASS, REALTIME_PRIORITY_CLASS,
};

use super::x86_64;
use crate::facts::{Fact, Facts, Unread};

/// Address of the page that the kernel shares with every process, and offsets in it.
const SHARED_PAGE: usize = 0x7ffe_0000;
const INTERRUPT_TIME_BIAS: usize = 0x3b0;
const QPC_BYPASS_ENABLED: usize = 0x3c6;
/// `QueryPerformanceCounter` reads the TSC in user mode; and does so by the page of a hypervisor.
const BYPASS: u8 = 0x01;
const BYPASS_BY_HYPERVISOR_PAGE: u8 = 0x02;

/// Where Wine shows the host's files.
const HOST_CLOCKSOURCE: &str = r"\\?\unix\sys\devices\system\clocksource\clocksource0\current_clocksource";
const HOST_CPUINFO: &str = r"\\?\unix\proc\cpuinfo";

pub(super) fn read(frequency_hz: i64, cpus_allowed: usize) -> Facts {
    let version = || version().ok_or_else(|| unread("RtlGetVersion failed"));
    let not_wine = || unread("this is not Wine");
    let facts = vec![
        Fact { id: "host.name", label: "Host name", value: host_name(), private: true },
        fact("host.os", "Operating system", version().map(|version| format!("Windows {version}"))),
        fact("host.wine", "Made under", wine().ok_or_else(not_wine)),
        fact("cpu.model", "CPU model", cpu_model()),
        fact("cpu.online", "CPUs online", Ok(cpus_online().to_string())),
        fact("cpu.memory", "Memory", memory()),
        fact("kernel.release", "Kernel release", version()),
        fact("kernel.clocksource", "Clock source", clocksource(frequency_hz)),
        fact("kernel.qpc_rate", "Rate of QueryPerformanceCounter", Ok(format!("{frequency_hz} Hz"))),
        fact("kernel.timer_resolution", "Timer resolution", timer_resolution()),
        fact(
            "kernel.hypervisor",
            "Hypervisor",
            Ok(x86_64::hypervisor().unwrap_or_else(|| "none that CPUID names".to_owned())),
        ),
        fact("limits.priority_class", "Priority class", Ok(priority_class())),
        fact("limits.cpus_allowed", "CPUs allowed", Ok(cpus_allowed.to_string())),
        fact("load.uptime", "Time since boot", Ok(uptime())),
    ];
    let threads_unread = Some(Unread {
        reason: "threads are not listed on Windows".to_owned(),
        remedy: Some("look at them with Process Explorer".to_owned()),
    });
    Facts { facts, threads: Vec::new(), threads_unread }
}

fn fact(id: &'static str, label: &'static str, value: Result<String, Unread>) -> Fact {
    Fact { id, label, value, private: false }
}

fn unread(reason: &str) -> Unread {
    Unread { reason: reason.to_owned(), remedy: None }
}

/// Wine by its name and version, with the system that it runs on; none on Windows.
pub(super) fn wine() -> Option<String> {
    type Version = unsafe extern "system" fn() -> *const c_char;
    type HostVersion = unsafe extern "system" fn(*mut *const c_char, *mut *const c_char);
    // SAFETY: ntdll is in every process and never leaves it; both names end in NUL.
    let (version, host) = unsafe {
        let ntdll = GetModuleHandleA(c"ntdll.dll".as_ptr().cast());
        let symbol = |name: &CStr| GetProcAddress(ntdll, name.as_ptr().cast());
        (symbol(c"wine_get_version")?, symbol(c"wine_get_host_version"))
    };
    // SAFETY: only Wine's ntdll exports it, with this signature (its `include/wine/library.h`); the text is constant.
    let version = unsafe { CStr::from_ptr(std::mem::transmute::<_, Version>(version)()) };
    let mut names = [ptr::null(); 2];
    if let Some(host) = host {
        let [system, release] = &mut names;
        // SAFETY: as above; the call stores the addresses of two texts that live as long as the process.
        unsafe { std::mem::transmute::<_, HostVersion>(host)(system, release) };
    }
    // SAFETY: an address that was stored is that of such a text; the others are null.
    let text = |name: *const c_char| (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) }.to_string_lossy());
    let names: Vec<_> = names.into_iter().filter_map(text).collect();
    let host = if names.is_empty() { "an unknown host".to_owned() } else { names.join(" ") };
    Some(format!("Wine {} on {host}", version.to_string_lossy()))
}

/// The source behind `QueryPerformanceCounter`, under the names that Linux has for the same.
pub(super) fn clocksource(frequency_hz: i64) -> Result<String, Unread> {
    if let Some(wine) = wine() {
        let read = std::fs::read_to_string(HOST_CLOCKSOURCE);
        let source = read.map_err(|error| unread(&format!("{wine} does not show its host's clock source: {error}")))?;
        return Ok(source.trim().to_owned());
    }
    let flags = bypass_flags();
    match (flags & BYPASS, flags & BYPASS_BY_HYPERVISOR_PAGE, frequency_hz) {
        (0, _, 3_579_545) => Ok("acpi_pm".to_owned()),
        (0, _, 14_318_180) => Ok("hpet".to_owned()),
        (0, ..) => Err(unread("QueryPerformanceCounter is a system call, and Windows does not say what it reads")),
        (_, 0, _) => Ok("tsc".to_owned()),
        _ => Ok("hyperv_clocksource_tsc_page".to_owned()),
    }
}

/// Whether the kernel relies on the counter's constancy: Windows by letting user mode read its clock from it, the host
/// of Wine by its flags.
pub(super) fn kernel_says_constant() -> bool {
    if wine().is_none() {
        return bypass_flags() & BYPASS != 0;
    }
    let text = std::fs::read_to_string(HOST_CPUINFO).unwrap_or_default();
    let flags = text.lines().find(|line| line.starts_with("flags")).unwrap_or_default();
    ["constant_tsc", "nonstop_tsc"].iter().all(|flag| flags.split_whitespace().any(|word| word == *flag))
}

/// How long the machine has been suspended since it was started, in units of 100 ns.
#[inline]
pub(super) fn suspended_units() -> i64 {
    // SAFETY: Windows maps the page readable at this address into every process, and this field lies in it since
    // Windows 7; the kernel writes it as one aligned word.
    unsafe { ptr::read_volatile((SHARED_PAGE + INTERRUPT_TIME_BIAS) as *const i64) }
}

fn bypass_flags() -> u8 {
    // SAFETY: as above; this field lies in the page since Windows 8.
    unsafe { ptr::read_volatile((SHARED_PAGE + QPC_BYPASS_ENABLED) as *const u8) }
}

fn host_name() -> Result<String, Unread> {
    let mut name = [0_u16; 256];
    let mut length = 256;
    // SAFETY: the buffer has the stated length; the call writes no more and stores how much it wrote.
    let named = unsafe { GetComputerNameExW(ComputerNameDnsHostname, name.as_mut_ptr(), &raw mut length) } != 0;
    let written = name.get(..length as usize).filter(|_| named);
    written.map(String::from_utf16_lossy).ok_or_else(|| unread(&Error::last_os_error().to_string()))
}

fn version() -> Option<String> {
    let mut version = OSVERSIONINFOW {
        dwOSVersionInfoSize: u32::try_from(size_of::<OSVERSIONINFOW>()).unwrap_or(0),
        dwMajorVersion: 0,
        dwMinorVersion: 0,
        dwBuildNumber: 0,
        dwPlatformId: 0,
        szCSDVersion: [0; 128],
    };
    // SAFETY: the call fills the structure, which contains its own size.
    let status = unsafe { RtlGetVersion(&raw mut version) };
    (status >= 0).then(|| format!("{}.{}.{}", version.dwMajorVersion, version.dwMinorVersion, version.dwBuildNumber))
}

fn cpu_model() -> Result<String, Unread> {
    let brand = raw_cpuid::CpuId::new().get_processor_brand_string();
    brand.map(|brand| brand.as_str().trim().to_owned()).ok_or_else(|| unread("CPUID states no brand"))
}

fn cpus_online() -> u32 {
    // SAFETY: the call takes a plain number.
    unsafe { GetActiveProcessorCount(ALL_PROCESSOR_GROUPS) }
}

fn memory() -> Result<String, Unread> {
    // SAFETY: all zeros is a valid structure of numbers.
    let mut status: MEMORYSTATUSEX = unsafe { std::mem::zeroed() };
    status.dwLength = u32::try_from(size_of::<MEMORYSTATUSEX>()).unwrap_or(0);
    // SAFETY: the call fills the structure, which contains its own size.
    if unsafe { GlobalMemoryStatusEx(&raw mut status) } == 0 {
        return Err(unread(&Error::last_os_error().to_string()));
    }
    Ok(format!("{} MiB", status.ullTotalPhys >> 20))
}

fn timer_resolution() -> Result<String, Unread> {
    let (mut coarsest, mut finest, mut current) = (0, 0, 0);
    // SAFETY: the call stores three numbers at the addresses it is given.
    let status = unsafe { NtQueryTimerResolution(&raw mut coarsest, &raw mut finest, &raw mut current) };
    if status < 0 {
        return Err(unread(&format!("NtQueryTimerResolution: status {status:#x}")));
    }
    let micros = |units: u32| f64::from(units) / 10.0;
    Ok(format!("{} µs now, {} to {} µs possible", micros(current), micros(finest), micros(coarsest)))
}

fn priority_class() -> String {
    // SAFETY: the handle means this process, which may always be asked.
    match unsafe { GetPriorityClass(GetCurrentProcess()) } {
        NORMAL_PRIORITY_CLASS => "normal".to_owned(),
        HIGH_PRIORITY_CLASS => "high".to_owned(),
        REALTIME_PRIORITY_CLASS => "real-time".to_owned(),
        other => format!("{other:#x}"),
    }
}

fn uptime() -> String {
    // SAFETY: the call takes nothing and cannot fail.
    let seconds = unsafe { GetTickCount64() } / 1_000;
    format!("{} h {} min", seconds / 3_600, seconds / 60 % 60)
}
