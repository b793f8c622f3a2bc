// hairspring_tap.h: the live tap: frames of a recording that another process makes, while it makes it. For Linux.
//
// Written by `cargo xtask gen` from crates/c; do not edit.
//
// Conventions, besides those of hairspring.h
//   * The recorder does not know its readers and never waits for them. A reader that is too slow misses frames, and counts them.
//   * A tap is read by one call at a time. Calls that read and calls of another thread at the same time: the second gets HS_E_BUSY.


#ifndef HAIRSPRING_TAP_H
#define HAIRSPRING_TAP_H

#include "hairspring.h"

// The recorder is there.
#define HS_TAP_RUNNING 0

// The source produced everything, or its file or connection ended.
#define HS_TAP_FINISHED 1

// The recording was stopped.
#define HS_TAP_STOPPED 2

// The source stopped at its first loss.
#define HS_TAP_OVERRUN 3

// The device or connection failed.
#define HS_TAP_FAILED 4

// The recorder has died, or ended without a word.
#define HS_TAP_GONE 5

// Signed, 1 byte.
#define HS_TAP_I8 1

// Unsigned, 1 byte.
#define HS_TAP_U8 2

// Signed, 2 bytes.
#define HS_TAP_I16 3

// Unsigned, 2 bytes.
#define HS_TAP_U16 4

// Signed, 4 bytes.
#define HS_TAP_I32 5

// IEEE 754, 4 bytes.
#define HS_TAP_F32 6

// Signed 12-bit values, two in three bytes.
#define HS_TAP_PACKED12 7

// One bit for each digital line; a frame is whole bytes.
#define HS_TAP_BITS 8

// A reader of a live tap.
typedef struct hs_tap hs_tap;

// Layout and rate of a stream. They do not change while the tap is open.
typedef struct hs_tap_about {
    // sizeof(struct hs_tap_about), set by the caller.
    size_t size;
    // The number of channels, or of digital lines.
    uint32_t channels;
    // Bits of a sample that carry information.
    uint32_t resolution_bits;
    // How a sample is stored: HS_TAP_I16 and so on. All are little-endian.
    int container;
    // The process of the recorder, as the kernel states it.
    int32_t recorder_pid;
    // The sample rate as a fraction: frames, and the seconds that they take. 0 and 0 without a clock.
    uint64_t rate_frames;
    // See rate_frames.
    uint64_t rate_seconds;
    // The smallest piece that is whole frames and whole bytes: its frames, 1 or 2, and its bytes.
    uint64_t grain_frames;
    // See grain_frames.
    uint64_t grain_bytes;
    // Capacity of the recorder's ring. A reader that is further behind misses frames.
    uint64_t capacity_bytes;
    // The identity of the recording.
    uint8_t recording_id[16];
} hs_tap_about;

// Result of a read.
typedef struct hs_tap_piece {
    // sizeof(struct hs_tap_piece), set by the caller.
    size_t size;
    // How many frames were copied; 0 if no new frame is there.
    uint64_t frames;
    // How many bytes they have.
    uint64_t bytes;
    // The number of the first frame, as the source counts; UINT64_MAX if it is no longer known, or if there is
    // none.
    uint64_t first_frame;
    // Frames that this reader was too slow for, before the first.
    uint64_t missed_frames;
} hs_tap_piece;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Opens the tap that `hairspring record --tap NAME` offers: by its name, or by the path of its socket. Waits at most
// five seconds for the recorder. The first read begins with the frames that come from now on. HS_E_NOT_FOUND (no
// recorder offers it), HS_E_IO (also: this user may not look on), HS_E_STATE (what answers is no tap of this version),
// HS_E_RANGE (no name), HS_E_TEXT.
int hs_tap_open(const char *name,
                struct hs_tap **tap);

// Returns layout and rate of the stream. HS_E_RANGE (the size is not set), HS_E_BUSY.
int hs_tap_describe(const struct hs_tap *tap, struct hs_tap_about *about);

// Waits until `frames` frames can be read (at most those of half the ring), the stream has ended, or the time is over;
// 0 does not wait, less is HS_E_NEGATIVE. Writes what has become of the stream to `state`: HS_TAP_RUNNING and so on.
// The recorder does not wake readers; the call looks every 1 to 20 ms. HS_E_BUSY.
int hs_tap_wait(struct hs_tap *tap,
                uint64_t frames,
                int64_t at_most_ns,
                int *state);

// Copies the frames that come next to `bytes`, at most as many as fit. Stops before a gap of the source, so that the
// frames of a piece follow each other. Copies nothing if no new frame is there. Never waits. Real-time safe.
// HS_E_RANGE (the size is not set), HS_E_BUSY.
int hs_tap_read(struct hs_tap *tap,
                void *bytes,
                size_t room_bytes,
                struct hs_tap_piece *piece);

// Goes on with the newest frames: `frames` of them, at most those of half the ring. Those that are passed over do not
// count as missed. Real-time safe. HS_E_BUSY.
int hs_tap_skip_to_newest(struct hs_tap *tap,
                          uint64_t frames);

// What has become of the stream (HS_TAP_RUNNING and so on), the frames that this reader was too slow for, and those
// that the source lost: UINT64_MAX if the recorder died while it wrote that. Each place may be NULL. HS_E_BUSY.
int hs_tap_state(const struct hs_tap *tap,
                 int *state,
                 uint64_t *missed_frames,
                 uint64_t *lost_frames);

// Closes a tap. NULL is allowed. HS_E_FREED, HS_E_BUSY.
int hs_tap_free(struct hs_tap *tap);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* HAIRSPRING_TAP_H */
