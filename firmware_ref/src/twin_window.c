/* Inputs derived from the last samples of a stream: FORMAT.md, section 19.
 *
 * The memory of a source: two sums for each input that has some; the ring of its samples; the place
 * of the next one, and how many known ones there were in a row; and for each least or largest value
 * the candidates, which are places in the ring. */

#include "twin_window.h"
#include "twin_words.h"

#if TWIN_FLOAT

#define LARGEST 4194303
#define MISSING INT32_MIN

/* The mean, the slope and the root in finer steps than samples. */
#define MEAN_STEPS  1024
#define SLOPE_STEPS 262144
#define ROOT_STEPS  1024

/* Of candidates: the place of the first, how many there are, and the first of their places. */
enum { FIRST, COUNT, PLACES };

static unsigned twini_has_sums(const twin_derived *input) {
    return input->statistic >= TWIN_MEAN;
}

static unsigned twini_has_candidates(const twin_derived *input) {
    return input->statistic == TWIN_MIN || input->statistic == TWIN_MAX;
}

/* Words of 64 bits before the ring of a source. */
static uint32_t twini_sums(const twin_source *source) {
    uint32_t words = 0;
    unsigned i;
    for (i = 0; i < source->count; i++)
        words += twini_has_sums(&source->inputs[i]) ? 2u : 0u;
    return words;
}

/* Words of 64 bits of all that a source has; 0 if a number is out of its range. */
static uint32_t twini_source_size(const twin_source *source) {
    uint32_t length = source->length, bytes = 4u * length + 4u;
    unsigned i;
    for (i = 0; i < source->count; i++) {
        const twin_derived *input = &source->inputs[i];
        uint32_t least = 2, most = 65534;
        if (twini_has_sums(input))
            most = 1024;
        if (input->statistic <= TWIN_DELTA)
            least = 1;
        if (input->statistic > TWIN_SLOPE || input->samples < least || input->samples > most ||
            input->samples > length)
            return 0;
        if (twini_has_candidates(input))
            bytes += 2u * ((uint32_t)input->samples + PLACES);
    }
    return twini_sums(source) + (bytes + 7u) / 8u;
}

uint32_t twin_window_size(const twin_windows *windows) {
    uint32_t words = 0;
    unsigned i;
    for (i = 0; i < windows->count; i++) {
        uint32_t more = twini_source_size(&windows->sources[i]);
        if (!more)
            return 0;
        words += more;
    }
    return 8u * words;
}

static void twini_empty(const twin_source *source, int64_t *memory) {
    uint32_t words = twini_source_size(source), k;
    int32_t *ring = (int32_t *)(void *)(memory + twini_sums(source));
    for (k = 0; k < words; k++)
        memory[k] = 0;
    for (k = 0; k < source->length; k++)
        ring[k] = MISSING;
}

void twin_window_reset(twin_window *window) {
    int64_t *memory = window->memory;
    unsigned i;
    window->samples = 0;
    if (!window->windows)
        return;
    for (i = 0; i < window->windows->count; i++) {
        const twin_source *source = &window->windows->sources[i];
        twini_empty(source, memory);
        memory += twini_source_size(source);
    }
}

twin_status twin_window_begin(twin_window *window, const twin_windows *windows, void *memory,
                              uint32_t size) {
    uint32_t needed = twin_window_size(windows);
    window->windows = 0;
    window->memory = (int64_t *)memory;
    window->when = 0;
    window->samples = 0;
    if (!needed)
        return TWIN_ERROR_VALUE;
    if (size < needed)
        return TWIN_ERROR_SCRATCH;
    window->windows = windows;
    twin_window_reset(window);
    return TWIN_OK;
}

/* To the nearest step, halves away from zero. A difference in float, whatever the compiler would
 * like to keep of it; the product is exact. */
static int32_t twini_step_of(const twin_source *source, float value) {
    volatile float difference = value - source->centre;
    float t = difference * source->scale;
    int32_t twice;
    if (!(t < (float)LARGEST)) /* also NaN */
        return t >= (float)LARGEST ? LARGEST : MISSING;
    if (t <= -(float)LARGEST)
        return -LARGEST;
    twice = (int32_t)(t + t);
    return (twice + 1 - (twice < 0)) >> 1;
}

/* So many units, of which the 24 most significant binary digits count: no step of it rounds. */
static float twini_counted(uint64_t count, float unit) {
    while (count >> 24) {
        count >>= 1;
        unit *= 2.0f;
    }
    return (float)(uint32_t)count * unit;
}

/* A quotient to the nearest integer, halves away from zero, in such units. */
static float twini_rounded_ratio(int64_t value, uint32_t divisor, float unit) {
    uint64_t size = value < 0 ? 0u - (uint64_t)value : (uint64_t)value;
    float ratio = twini_counted((size + divisor / 2u) / divisor, unit);
    return value < 0 ? -ratio : ratio;
}

static float twini_in_steps(int32_t steps, float unit) {
    return twini_rounded_ratio(steps, 1, unit);
}

/* The root of a square over n, both in steps. */
static float twini_deviation_of(uint64_t square, uint16_t n, float unit) {
    uint64_t rest, root = 0;
    uint64_t bit = (uint64_t)1 << 62;
    if (!square)
        return 0;
    unit *= 1.0f / (float)ROOT_STEPS;
    while (!(square >> 62)) {
        square <<= 2;
        unit *= 0.5f;
    }
    rest = square;
    for (; bit; bit >>= 2) {
        uint64_t trial = root + bit;
        root >>= 1;
        if (rest >= trial) {
            rest -= trial;
            root += bit;
        }
    }
    return twini_counted(root * ROOT_STEPS / n, unit);
}

/* Let a sample at a place of the ring compete with earlier ones, of which one, at `gone`, is too
 * old. Returns the place of the best. */
static uint16_t twini_compete(uint16_t *candidates, const twin_derived *input, const int32_t *ring,
                              uint16_t place, uint16_t gone, int32_t step) {
    uint16_t *places = candidates + PLACES;
    uint16_t n = input->samples, first = candidates[FIRST], count = candidates[COUNT];
    uint32_t last;
    if (count && places[first] == gone) {
        first = (uint16_t)(first + 1u == n ? 0u : first + 1u);
        count--;
    }
    while (count) {
        int32_t other;
        last = (uint32_t)first + count - 1u;
        other = ring[places[last < n ? last : last - n]];
        if (input->statistic == TWIN_MIN ? other < step : other > step)
            break;
        count--;
    }
    last = (uint32_t)first + count;
    places[last < n ? last : last - n] = place;
    candidates[FIRST] = first;
    candidates[COUNT] = (uint16_t)(count + 1u);
    return places[first];
}

/* Update the sums of an input by a sample and the one that leaves, and compute it from them. */
static float twini_from_sums(int64_t *sums, const twin_derived *input, int32_t step, int32_t gone,
                             float unit) {
    uint32_t n = input->samples;
    if (input->statistic == TWIN_SLOPE) /* earlier ones move back by one; the oldest is at 0 */
        sums[1] += (int64_t)(n - 1u) * step - (sums[0] - gone);
    if (input->statistic == TWIN_STD)
        sums[1] += (int64_t)step * step - (int64_t)gone * gone;
    sums[0] += step - gone;
    if (input->statistic == TWIN_MEAN)
        return twini_rounded_ratio(sums[0] * MEAN_STEPS, n, unit * (1.0f / (float)MEAN_STEPS));
    if (input->statistic == TWIN_SLOPE)
        return twini_rounded_ratio(6 * (2 * sums[1] - (int64_t)(n - 1u) * sums[0]) * SLOPE_STEPS,
                                   n * (n * n - 1u), unit * (1.0f / (float)SLOPE_STEPS));
    return twini_deviation_of(
        (uint64_t)n * (uint64_t)sums[1] - (uint64_t)sums[0] * (uint64_t)sums[0], (uint16_t)n, unit);
}

static float twini_unknown(void) {
    uint32_t bits = 0x7FC00000u;
    float nan;
    TWIN_COPY(&nan, &bits, sizeof nan);
    return nan;
}

static void twini_slide(const twin_source *source, int64_t *memory, float *x) {
    int32_t *ring = (int32_t *)(void *)(memory + twini_sums(source));
    uint16_t *state = (uint16_t *)(void *)(ring + source->length), *candidates = state + 2;
    uint16_t place = state[0], known = state[1];
    int32_t step = twini_step_of(source, x[source->column]);
    int32_t present = step == MISSING ? 0 : step;
    float unit = 1.0f / source->scale;
    unsigned i;
    if (step == MISSING)
        known = 0;
    else if (known < UINT16_MAX)
        known++;
    for (i = 0; i < source->count; i++) {
        const twin_derived *input = &source->inputs[i];
        uint16_t n = input->samples;
        uint16_t before = (uint16_t)(place >= n ? place - n : place + source->length - n);
        int32_t old = ring[before];
        float value = 0;
        unsigned valid = known >= n;
        if (input->statistic == TWIN_LAG) {
            valid = old != MISSING;
            value = twini_in_steps(old, unit);
        } else if (input->statistic == TWIN_DELTA) {
            valid = known > n;
            value = twini_in_steps(valid ? step - old : 0, unit);
        } else if (twini_has_candidates(input)) {
            if (step == MISSING) {
                candidates[COUNT] = 0;
            } else {
                uint16_t best = twini_compete(candidates, input, ring, place, before, step);
                value = twini_in_steps(best == place ? step : ring[best], unit);
            }
            candidates += n + PLACES;
        } else {
            value = twini_from_sums(memory, input, present, old == MISSING ? 0 : old, unit);
            memory += 2;
        }
        /* Those that say where values are; the others are differences. */
        if (input->statistic <= TWIN_MEAN && input->statistic != TWIN_DELTA)
            value += source->centre;
        x[input->feature] = valid ? value : twini_unknown();
    }
    ring[place] = step;
    state[0] = (uint16_t)(place + 1u == source->length ? 0u : place + 1u);
    state[1] = known;
}

int twin_window_push(twin_window *window, uint32_t when, float *x) {
    const twin_windows *windows = window->windows;
    int64_t *memory = window->memory;
    unsigned i;
    if (!windows)
        return 0;
    if (window->samples && when - window->when > windows->gap)
        twin_window_reset(window);
    window->when = when;
    if (window->samples < windows->longest)
        window->samples++;
    for (i = 0; i < windows->count; i++) {
        const twin_source *source = &windows->sources[i];
        twini_slide(source, memory, x);
        memory += twini_source_size(source);
    }
    return twin_window_ready(window);
}

int twin_window_ready(const twin_window *window) {
    return window->windows && window->samples >= window->windows->longest;
}

#endif
