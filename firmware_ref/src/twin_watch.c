/* Coverage that holds under drift, and flags that report drift.
 *
 * Shares and ratios are in units of 1/1024, so that products and quotients fit into 32 bits. */

#include "twin_watch.h"
#include "twin_model.h"

#if TWIN_INTERVALS

#if defined(__GNUC__)
#define TWIN_FILL (void)__builtin_memset
#else
#define TWIN_FILL (void)memset
#endif

enum { OUTSIDE, SCALE, ABOVE, BELOW, WORSE, TESTS }; /* the bits of their flags */

#define ONE           1024u
#define LARGEST_RATIO 65535u
#define FORGET        65535u

/* The unit of alpha makes its steps whole numbers. It leaves 0 .. ALL by one step at most, unless a
 * truth is missed by the widest possible interval, or a prediction is exact. */
#define RATE    40
#define ALL     (RATE * (int32_t)1000)
#define A_STEP  1000
#define IN_DEBT ((int32_t)1 << 20)

/* A sum that reaches this raises its flag. If scores are independent, the chance that a query
 * starts such a climb is below exp(-32 x), with E exp(x (score - usual)) = 1. An event with half
 * the usual share has an x of 1.25 or more. Scales of any distribution have 0.46 or more, as long
 * as their mean is that in calibration: the worst case is 0 and MOST_SCALE and nothing in between.
 * Normal errors have 1.7, and the worst unbiased errors, all as large as half the interval, 0.5. */
#define ENOUGH      (32 * ONE)
#define USUAL_BIAS  (ONE / 4)
#define USUAL_SCALE (ONE + ONE / 2)
#define MOST_SCALE  (3 * ONE)

/* As bytes: "TWW" and the version, the fields as words, CRC-32 of all of these. */
#define MAGIC   0x575754u
#define VERSION 1u
enum { WORDS = TWIN_WATCH_BYTES / 4, FIELDS = WORDS - 2 };

typedef char twini_watch_is_words[sizeof(twin_watch) == 4 * FIELDS ? 1 : -1];
typedef char twini_watch_is_small[sizeof(twin_watch) <= 64 ? 1 : -1];

/* Identifies a pack, as hardly any two calibrations yield the same numbers. */
static uint32_t twini_watch_mark(const twin_model *model) {
    twin_flash at = model->intervals;
    uint32_t crc = UINT32_MAX, left = 8 + 2 * twini_u32(at + 28);
    for (; left; left--) {
        crc = twini_crc_bits(crc, twini_u32(at));
        at += 4;
    }
    return crc;
}

static unsigned twini_watches(const twin_watch *watch, const twin_model *model) {
    return watch->level && model->kernel && model->intervals && twini_targets(model) == 1;
}

static int32_t twini_clip(int32_t value, int32_t least, int32_t most) {
    return value < least ? least : value > most ? most : value;
}

/* The quantile at which intervals leave out `alpha`: on straight lines from nothing at level 0
 * through the levels of the pack. Beyond the last of them it grows by a quarter each time alpha is
 * halved, as in the tails of Student's t with three degrees of freedom. If nothing is to be left
 * out, it is the largest possible. A level that is invalid or out of order is skipped: nobody has
 * checked these numbers. */
static uint32_t twini_quantile(const twin_model *model, int32_t alpha) {
    twin_flash at = model->intervals + 32;
    uint32_t left = twini_u32(at - 4), level = 0, quantile = 0;
    if (alpha <= 0)
        return UINT32_MAX;
    if (alpha >= ALL)
        return 0;
    for (;;) {
        uint32_t above, more, wanted = (uint32_t)(ALL - alpha);
        if (left) {
            left--;
            above = RATE * twini_u32(at);
            more = twini_u32(at + 4);
            at += 8;
            if (above <= level || above >= (uint32_t)ALL || more < quantile)
                continue;
            more -= quantile;
        } else {
            above = level + ((uint32_t)ALL - level + 1) / 2;
            more = quantile / 4 + 1;
            if (more > UINT32_MAX - quantile)
                more = UINT32_MAX - quantile;
        }
        if (wanted <= above) {
            wanted -= level;
            above -= level;
            return quantile + more / above * wanted + more % above * wanted / above;
        }
        level = above;
        quantile += more;
    }
}

/* Set the interval of the next prediction. */
static void twini_adapt(const twin_watch *watch, twin_model *model) {
    uint64_t quantile = twini_quantile(model, watch->alpha);
    if (watch->stretch > ONE)
        quantile = (quantile * watch->stretch) >> 10;
    model->quantile = quantile >> 32 ? UINT32_MAX : (uint32_t)quantile;
}

/* a / b, at most LARGEST_RATIO; 0 / 0 is 0. */
static uint32_t twini_ratio(uint32_t a, uint32_t b) {
    uint32_t ratio = LARGEST_RATIO;
    /*@ assert cases: a < 4194304 || a >= 4194304; */
    if (a >> 6 < b) {
        while (a >> 22) {
            a >>= 1;
            b >>= 1;
        }
        ratio = (a << 10) / b;
    } else if (!a) {
        ratio = 0;
    }
    return ratio < LARGEST_RATIO ? ratio : LARGEST_RATIO;
}

/* Page's CUSUM: the score for the flag, less the usual score, added up and kept at or above 0. */
static void twini_test(twin_watch *watch, unsigned number, uint32_t score, uint32_t usual) {
    uint32_t sum = watch->sums[number] + score;
    sum = sum > usual ? sum - usual : 0;
    if (sum >= ENOUGH) {
        sum = ENOUGH;
        watch->flags |= 1u << number;
    }
    watch->sums[number] = sum;
}

/* This many rows as a share of those in the calibration: little is known from few rows. */
static uint32_t twini_rows(const twin_model *model, uint32_t rows) {
    uint32_t all = twini_u16(model->intervals + 16);
    return rows * ONE / (all ? all : 1) + 1;
}

/* The share of an event to take as usual if it had this share in calibration: twice that, or
 * halfway to all of them, plus some rows. */
TWIN_NOT_INLINE static uint32_t twini_usual(const twin_model *model, uint32_t share,
                                            uint32_t rows) {
    uint32_t more = (ONE - share) / 2;
    return share + (more < share ? more : share) + twini_rows(model, rows);
}

/* The level whose interval errors are compared with, at any requested coverage: 90 %, or else the
 * highest below, or else the lowest. Higher ones are known from fewer errors, and at lower ones
 * errors that are merely skewed would look biased. */
static twin_flash twini_error_level(const twin_model *model) {
    twin_flash at = model->intervals + 32;
    uint32_t left = twini_u32(at - 4);
    while (--left && twini_u32(at + 8) <= 900)
        at += 8;
    return at;
}

static void twini_count_prediction(twin_watch *watch, const twin_model *model, uint32_t scale,
                                   unsigned outside) {
    uint32_t ratio = twini_ratio(scale, twini_u32(model->intervals + 20));
    watch->predictions++;
    watch->outside += outside;
    watch->scales += ratio;
    if (watch->predictions > FORGET) {
        watch->predictions >>= 1;
        watch->outside >>= 1;
        watch->scales >>= 1;
    }
    twini_test(watch, OUTSIDE, outside ? ONE : 0,
               twini_usual(model, twini_u32(model->intervals + 24) >> 6, 8));
    twini_test(watch, SCALE, ratio < MOST_SCALE ? ratio : MOST_SCALE,
               USUAL_SCALE + twini_rows(model, 8));
}

/* Adapts future intervals. `missed` is whether the interval given at the time missed the target,
 * `now` whether the one that would be given now misses it.
 *
 * Only the latter moves alpha: truths about intervals from before it last moved would make it swing
 * more, the later they are. The excess of the former is owed, and paid back over some 256 truths by
 * aiming at fewer misses. If truths are not late, the two are the same, nothing is ever owed, and
 * this is adaptive conformal inference as published. Sums are taken modulo 2^32, so that nothing
 * overflows whatever state was restored. */
static void twini_steer(twin_watch *watch, uint32_t error, unsigned missed, unsigned now) {
    int32_t aim = 1000 - (int32_t)watch->level, owed = twini_clip(watch->owed / 256, -aim, aim);
    uint32_t step = (uint32_t)(aim - owed) - (now ? A_STEP : 0);
    uint32_t more = (uint32_t)(missed - now) * A_STEP - (uint32_t)owed;
    watch->alpha = twini_clip((int32_t)((uint32_t)watch->alpha + step), -A_STEP, ALL + A_STEP);
    watch->owed = twini_clip((int32_t)((uint32_t)watch->owed + more), -IN_DEBT, IN_DEBT);
    /* Up by eight steps, down by one, towards what one error in nine exceeds. */
    if (error > watch->stretch)
        watch->stretch += watch->stretch / 16;
    else if (watch->stretch > ONE / 4)
        watch->stretch -= watch->stretch / 128;
}

/* `error` is how far off the prediction was, relative to half the interval of twini_error_level. */
static void twini_count_target(twin_watch *watch, twin_model *model, uint32_t error, unsigned above,
                               unsigned missed, unsigned now) {
    uint32_t score = error < ONE ? error : ONE;
    twini_steer(watch, error, missed, now);
    twini_adapt(watch, model);
    watch->targets++;
    watch->covered += !missed;
    if (watch->targets > FORGET) {
        watch->targets >>= 1;
        watch->covered >>= 1;
    }
    if (!above)
        score = 0 - score;
    twini_test(watch, ABOVE, ONE + score, ONE + USUAL_BIAS);
    twini_test(watch, BELOW, ONE - score, ONE + USUAL_BIAS);
    twini_test(watch, WORSE, error > ONE ? ONE : 0,
               twini_usual(model, 1000 - twini_u32(twini_error_level(model)), 6));
}

/* `off` is how far off the prediction was. */
static void twini_count_error(twin_watch *watch, twin_model *model, uint32_t off, uint32_t scale,
                              unsigned above, unsigned missed) {
    uint32_t half = twini_product(twini_u32(twini_error_level(model) + 4), scale, TWIN_WIDTH_SHIFT);
    twini_count_target(watch, model, twini_ratio(off, half), above, missed,
                       off > twini_product(model->quantile, scale, TWIN_WIDTH_SHIFT));
}

twin_status twin_watch_begin(twin_watch *watch, twin_model *model, uint16_t thousandths) {
    twin_status status = model->kernel && twini_targets(model) > 1
                             ? TWIN_ERROR_TARGETS
                             : twin_set_coverage(model, thousandths);
    TWIN_FILL(watch, 0, sizeof *watch);
    if (!status) {
        watch->pack = twini_watch_mark(model);
        watch->level = thousandths;
        watch->alpha = ALL - RATE * (int32_t)thousandths;
        watch->stretch = ONE;
    }
    return status;
}

void twin_watch_add_prediction_raw(twin_watch *watch, const twin_model *model,
                                   const twin_raw *given) {
    if (twini_watches(watch, model) && given->intervals)
        twini_count_prediction(watch, model, given->scale, given->outside != 0);
}

void twin_watch_add_target_raw(twin_watch *watch, twin_model *model, const twin_raw *given,
                               int32_t target) {
    unsigned above = target > given->mean;
    uint32_t off = (uint32_t)target - (uint32_t)given->mean;
    if (!above)
        off = 0 - off;
    if (twini_watches(watch, model) && given->intervals && target != INT32_MIN)
        twini_count_error(watch, model, off, given->scale, above,
                          target < given->low || target > given->high);
}

#if TWIN_FLOAT

/* a / b truncated to an integer; NaN and what is negative becomes large. Only a volatile makes
 * every compiler round the quotient. */
static uint32_t twini_quotient(float a, float b) {
    volatile float quotient = a / b;
    float rounded = quotient;
    return rounded >= 0 && rounded < 4294967296.0f ? (uint32_t)rounded : UINT32_MAX;
}

#if TWIN_TARGET_CURVE

/* A measured value in the units of an estimate, or the nearest to it that there is. */
static int32_t twini_nearest_estimate(const twin_model *model, float value) {
    int32_t estimate = twini_target_of(model, value);
    if (estimate == INT32_MIN) /* too far off, to either side */
        estimate =
            twin_estimate_raw(model, value > twin_target(model, INT32_MIN) ? INT32_MAX : INT32_MIN);
    return estimate;
}

/* The least scale of which the target curve makes what was given: bit by bit, as its inverse has no
 * better form. */
static uint32_t twini_scale_before(const twin_model *model, const twin_prediction *given) {
    int32_t mean = twini_nearest_estimate(model, given->mean);
    uint32_t scale = 0, bit;
    for (bit = (uint32_t)1 << 31; bit; bit >>= 1)
        if (twini_deviation(model, mean, scale | bit, 16) < given->scale)
            scale |= bit;
    return scale + 1;
}

/* Errors on the curve are compared before it, where scale and interval are the same to both sides.
 */
static void twini_count_before(twin_watch *watch, twin_model *model, const twin_prediction *given,
                               float target, unsigned missed) {
    unsigned above = target > given->mean;
    uint32_t off = (uint32_t)twini_nearest_estimate(model, target) -
                   (uint32_t)twini_nearest_estimate(model, given->mean);
    twini_count_error(watch, model, above ? off : 0 - off, twini_scale_before(model, given), above,
                      missed);
}

#endif

/* The scale of a prediction, in sixteenths. */
static uint32_t twini_raw_scale(const twin_model *model, const twin_prediction *given) {
    uint32_t bits = twini_u32(twini_scaling(model) + 4);
    float gain;
#if TWIN_TARGET_CURVE
    if (model->target_curve)
        return twini_scale_before(model, given);
#endif
    TWIN_COPY(&gain, &bits, sizeof gain);
    return twini_quotient(given->scale * 16, gain);
}

void twin_watch_add_prediction(twin_watch *watch, const twin_model *model,
                               const twin_prediction *given) {
    if (twini_watches(watch, model) && given->intervals)
        twini_count_prediction(watch, model, twini_raw_scale(model, given), given->outside != 0);
}

static void twini_count_apart(twin_watch *watch, twin_model *model, const twin_prediction *given,
                              float target, unsigned missed) {
    unsigned above = target > given->mean;
    volatile float off = above ? target - given->mean : given->mean - target;
    uint32_t scales = twini_quotient(off * 65536, given->scale);
    twini_count_target(watch, model, twini_ratio(scales, twini_u32(twini_error_level(model) + 4)),
                       above, missed, scales > model->quantile);
}

void twin_watch_add_target(twin_watch *watch, twin_model *model, const twin_prediction *given,
                           float target) {
    unsigned missed = target < given->low || target > given->high;
    uint32_t bits;
    TWIN_COPY(&bits, &target, sizeof bits);
    if (twini_watches(watch, model) && given->intervals && ~bits & 0x7F800000u) {
#if TWIN_TARGET_CURVE
        if (model->target_curve)
            twini_count_before(watch, model, given, target, missed);
        else
#endif
            twini_count_apart(watch, model, given, target, missed);
    }
}

#endif

/* Both at most 65535. */
static uint32_t twini_thousandths(uint32_t part, uint32_t whole) {
    return whole ? 1000 * part / whole : 0;
}

uint32_t twin_watch_coverage(const twin_watch *watch) {
    return twini_thousandths(watch->covered, watch->targets);
}

uint32_t twin_watch_outside(const twin_watch *watch) {
    return twini_thousandths(watch->outside, watch->predictions);
}

uint32_t twin_watch_scale(const twin_watch *watch) {
    return watch->predictions ? twini_thousandths(watch->scales / watch->predictions, ONE) : 0;
}

uint32_t twin_watch_flags(const twin_watch *watch) {
    return watch->flags;
}

void twin_watch_clear(twin_watch *watch, uint32_t flags) {
    unsigned i;
    watch->flags &= ~flags;
    for (i = 0; i < TESTS; i++)
        if (flags >> i & 1)
            watch->sums[i] = 0;
}

/* CRC of words; 0 if they include their CRC. */
static uint32_t twini_watch_sum(const uint32_t *words, unsigned count) {
    uint32_t crc = UINT32_MAX;
    while (count--)
        crc = twini_crc_bits(crc, *words++);
    return crc;
}

void twin_watch_save(const twin_watch *watch, uint8_t *bytes) {
    uint32_t words[WORDS];
    unsigned i;
    words[0] = MAGIC | (uint32_t)VERSION << 24;
    TWIN_COPY(words + 1, watch, sizeof *watch);
    words[WORDS - 1] = twini_watch_sum(words, WORDS - 1);
    for (i = 0; i < TWIN_WATCH_BYTES; i++)
        bytes[i] = (uint8_t)(words[i / 4] >> 8 * (i % 4));
}

twin_status twin_watch_restore(twin_watch *watch, twin_model *model, const uint8_t *bytes) {
    uint32_t words[WORDS];
    unsigned i;
    if (!model->kernel)
        return TWIN_ERROR_MODEL;
    if (twini_targets(model) > 1)
        return TWIN_ERROR_TARGETS;
    for (i = 0; i < WORDS; i++, bytes += 4)
        words[i] = bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
                   (uint32_t)bytes[3] << 24;
    if ((words[0] & 0xFFFFFFu) != MAGIC)
        return TWIN_ERROR_MAGIC;
    if (words[0] >> 24 != VERSION)
        return TWIN_ERROR_VERSION;
    if (twini_watch_sum(words, WORDS))
        return TWIN_ERROR_BODY_CRC;
    if (!model->intervals || words[1] != twini_watch_mark(model) || words[2] > 999)
        return TWIN_ERROR_LEVEL;
    TWIN_COPY(watch, words + 1, sizeof *watch);
    twini_adapt(watch, model);
    return TWIN_OK;
}

#endif
