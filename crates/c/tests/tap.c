// The live tap from C: reads a recording of one channel of 32 bits whose samples count the frames (data=counter), until its end.
// Arguments: the folder of the test, the path of the tap.
#define _GNU_SOURCE
#include "check.h"
#include <hairspring_tap.h>
#include <string.h>
#include <unistd.h>

static const int64_t PATIENCE = INT64_C(60000000000);

static void mistakes(const char *path)
{
    hs_tap *tap = NULL;
    hs_tap_about about = { .size = 0 };
    hs_tap_piece piece = { .size = sizeof piece };
    uint8_t bytes[64];
    int state;
    IS(HS_E_NOT_FOUND, hs_tap_open("/nonexistent/tap", &tap));
    IS(HS_E_RANGE, hs_tap_open("no name", &tap));
    IS(HS_E_NULL, hs_tap_open(NULL, &tap));
    IS(HS_E_NULL, hs_tap_open(path, NULL));
    CHECK(tap == NULL);
    IS(HS_OK, hs_tap_open(path, &tap));
    IS(HS_E_RANGE, hs_tap_describe(tap, &about));
    IS(HS_E_NULL, hs_tap_describe(tap, NULL));
    IS(HS_E_NEGATIVE, hs_tap_wait(tap, 1, -1, &state));
    IS(HS_E_NULL, hs_tap_read(tap, NULL, sizeof bytes, &piece));
    piece.size = 1;
    IS(HS_E_RANGE, hs_tap_read(tap, bytes, sizeof bytes, &piece));
    IS(HS_E_HANDLE, hs_window_free((hs_window *)tap));
    IS(HS_OK, hs_tap_state(tap, NULL, NULL, NULL));
    IS(HS_OK, hs_tap_free(tap));
    IS(HS_E_FREED, hs_tap_free(tap));
    IS(HS_OK, hs_tap_free(NULL));
}

int main(int count, char **words)
{
    CHECK(count == 3);
    const char *path = words[2];
    hs_tap *tap;
    // The recorder is just starting.
    for (int tries = 0; hs_tap_open(path, &tap) != HS_OK; tries++) {
        CHECK(tries < 6000);
        usleep(10000);
    }
    mistakes(path);
    hs_tap_about about = { .size = sizeof about };
    IS(HS_OK, hs_tap_describe(tap, &about));
    CHECK(about.channels == 1 && about.container == HS_TAP_I32 && about.grain_bytes == 4 && about.rate_frames == 1000000);
    int state = HS_TAP_RUNNING;
    uint64_t seen = 0, missed = 0, first = UINT64_MAX, all_missed, lost;
    static int32_t samples[4096];
    hs_tap_piece piece = { .size = sizeof piece };
    for (;;) {
        IS(HS_OK, hs_tap_wait(tap, 4096, PATIENCE, &state));
        IS(HS_OK, hs_tap_read(tap, samples, sizeof samples, &piece));
        if (piece.frames == 0) {
            CHECK(piece.first_frame == UINT64_MAX);
            if (state != HS_TAP_RUNNING)
                break;
            continue;
        }
        if (first == UINT64_MAX)
            first = piece.first_frame - piece.missed_frames;
        missed += piece.missed_frames;
        CHECK(piece.first_frame == first + seen + missed && piece.bytes == 4 * piece.frames);
        for (uint64_t frame = 1; frame < piece.frames; frame++)
            CHECK(samples[frame] == samples[0] + (int32_t)frame);
        seen += piece.frames;
    }
    CHECK(state == HS_TAP_FINISHED && seen > 0 && first + seen + missed == 1000000);
    IS(HS_OK, hs_tap_state(tap, &state, &all_missed, &lost));
    CHECK(all_missed == missed && lost == 0 && state == HS_TAP_FINISHED);
    IS(HS_OK, hs_tap_skip_to_newest(tap, 10));
    IS(HS_OK, hs_tap_read(tap, samples, sizeof samples, &piece));
    CHECK(piece.frames == 10 && piece.first_frame == 999990);
    IS(HS_OK, hs_tap_free(tap));
    printf("checks %d\n", checks);
    return 0;
}
