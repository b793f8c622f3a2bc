// bcryptprimitives.dll with the one function that Rust's standard library takes from it: random bytes for its hash maps.
// Windows has it since Windows 10; Wine since version 8.18, which lies after Debian 12's.

#include <windows.h>
// After windows.h, which it needs.
#include <ntsecapi.h>

__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE buffer, SIZE_T length);

BOOL WINAPI ProcessPrng(PBYTE buffer, SIZE_T length) {
    const SIZE_T most = 1u << 30;
    while (length > 0) {
        const SIZE_T part = length < most ? length : most;
        if (!RtlGenRandom(buffer, (ULONG)part)) return FALSE;
        buffer += part;
        length -= part;
    }
    return TRUE;
}
