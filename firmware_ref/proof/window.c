/* Windows over any samples: N_PUSHES of them, more than enough for every place of the rings to be
 * used again, at any times, with NaN, infinities and resets. The statistic is N_STATISTIC. */

#include "proof.h"

#include "twin_window.h"

static const twin_derived derived = {N_STATISTIC, N_SAMPLES, 1};
static twin_source source = {&derived, 0, N_SCALE, 1, 0, N_SAMPLES};
static twin_windows windows = {&source, 0, 1, N_SAMPLES + 1};
static int64_t memory[N_MEMORY / 8];

static void push(twin_window *window) {
    float x[2];
    FILL(x, sizeof *x);
    if (twin_window_push(window, ANY(0, UINT32_MAX), x))
        Frama_C_show_each_ready(window->samples);
    //@ assert derived: window->windows != 0 ==> \initialized(x + 1);
}

void main(void) {
    twin_window window;
    uint32_t i, needed, size = ANY(0, UINT32_MAX);
    windows.gap = ANY(0, UINT32_MAX);
    FILL(&source.centre, sizeof source.centre);
    needed = twin_window_size(&windows);
    //@ assert needed: needed == N_MEMORY;
    Frama_C_show_each_needed(needed);
    if (twin_window_begin(&window, &windows, memory, size) != TWIN_OK) {
        twin_window_reset(&window);
        push(&window);
        Frama_C_show_each_refused(size);
        return;
    }
    for (i = 0; i < N_PUSHES; i++)
        push(&window);
    Frama_C_show_each_end(window.samples);
}
