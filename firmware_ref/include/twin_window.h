/* Inputs derived from the last samples of a stream: lags, differences, means and the like
 * (FORMAT.md, section 19).
 *
 * What is derived is constant, and follows from training; an exported project has it, with the
 * memory that it needs, behind model_push. By hand, for the mean of the last twelve values of
 * column 0, as feature 2 of a model:
 *
 *     static const twin_derived inputs[] = {{TWIN_MEAN, 12, 2}};
 *     static const twin_source sources[] = {{inputs, 20.0f, 65536.0f, 1, 0, 12}};
 *     static const twin_windows windows = {sources, 90000, 1, 12};
 *     static int64_t memory[12];
 *     twin_window window;
 *     if (twin_window_begin(&window, &windows, memory, sizeof memory) != TWIN_OK)
 *         do_without_it();
 *     while (next_sample(x, &when))
 *         if (twin_window_push(&window, when, x))
 *             twin_predict(&model, scratch, sizeof scratch, x, &out, NULL);
 *
 * A sample is rounded to an integer, and all but the last step is exact arithmetic of integers. So
 * results are the same bits on every machine and in Python, and depend on nothing but the samples
 * of the window, after any number of samples. A sample takes a few operations for each input: those
 * of a least or largest value take more if many values leave the race at once, but two for each
 * sample on average.
 *
 * A sample that is NaN is missing, and so is every input whose window it is in; a pack may have
 * values to fill in for them. A program that calls none of this does not have it in its image. Not
 * available if TWIN_FLOAT is 0. */

#ifndef TWIN_WINDOW_H
#define TWIN_WINDOW_H

#include "twin.h"

#if TWIN_FLOAT

#ifdef __cplusplus
extern "C" {
#endif

/* Of n samples with the current one; a lag is the value n samples ago, and a delta the change since
 * then. The slope is that of least squares, for each sample; the standard deviation is divided by
 * n. */
enum { TWIN_LAG, TWIN_DELTA, TWIN_MIN, TWIN_MAX, TWIN_MEAN, TWIN_STD, TWIN_SLOPE };

/* One derived input. */
typedef struct twin_derived {
    uint16_t statistic; /* TWIN_LAG, ... */
    uint16_t samples; /* n: from 1, or 2 for all but the first two; to 65534, the last three 1024 */
    uint16_t feature; /* where it goes in x */
} twin_derived;

/* A column that inputs are derived from. */
typedef struct twin_source {
    const twin_derived *inputs;
    float centre;    /* values count from here, */
    float scale;     /* in steps of one over this: a power of two, from 2^-80 to 2^80 */
    uint16_t count;  /* of the inputs */
    uint16_t column; /* where it is in x */
    uint16_t length; /* samples to keep: the largest n of its inputs */
} twin_source;

/* All that is derived. */
typedef struct twin_windows {
    const twin_source *sources;
    uint32_t gap;     /* longest step between two samples of a window, in ticks, below 2^31 */
    uint16_t count;   /* of the sources */
    uint16_t longest; /* samples that a full window has: the largest n, or n + 1 of the first two */
} twin_windows;

/* The last samples of a stream. The fields may be read. */
typedef struct twin_window {
    const twin_windows *windows; /* NULL if it was not begun */
    int64_t *memory;
    uint32_t when;    /* time of the last sample */
    uint16_t samples; /* since it began or was reset, at most `longest` */
} twin_window;

/* Bytes of memory that a stream needs: 4 for each sample that is kept, 2 more for each that may
 * become the least or largest, 16 for each sum, and 4 to 11 for each source. 0 if a number is out
 * of its range. */
uint32_t twin_window_size(const twin_windows *windows);

/* Begin a stream in memory of `size` bytes, at a multiple of 8. TWIN_ERROR_VALUE if a number is out
 * of its range, TWIN_ERROR_SCRATCH if there is less memory than twin_window_size says; the window
 * then never becomes ready. */
twin_status twin_window_begin(twin_window *window, const twin_windows *windows, void *memory,
                              uint32_t size);

/* Forget all samples: a sensor was replaced, or something happened in between. */
void twin_window_reset(twin_window *window);

/* Add a sample, which is in the columns of `x`, and compute the derived inputs in it; NaN for one
 * that is not known. `when` is a time in ticks, of any clock that wraps around after 2^32, such as
 * millis(); 0 if there are no gaps. After a step longer than the gap, or back in time, the window
 * begins anew. Returns what twin_window_ready does. */
int twin_window_push(twin_window *window, uint32_t when, float *x);

/* 1 if the window is full; 0 if it needs more samples, and some input is not known. */
int twin_window_ready(const twin_window *window);

#ifdef __cplusplus
}
#endif

#endif

#endif
