/* twinedge: regression with twin networks on small devices.
 *
 * A twin network predicts the difference between the targets of two points. One network and K
 * stored points, the anchors, thus make K predictions: their mean is the prediction, their spread
 * says how sure it is. A .twin pack holds networks, anchors and scaling; this library evaluates it
 * in place.
 *
 *     static uint32_t scratch[1024];
 *     twin_model model;
 *     twin_prediction out;
 *     if (twin_open(&model, pack, sizeof pack) == TWIN_OK &&
 *         twin_predict(&model, scratch, sizeof scratch, x, &out, NULL) == TWIN_OK)
 *         use(out.mean, out.spread);
 *
 * Errors stick: a model that was not opened does not predict, a run that was not begun does not
 * step, and reading it returns a status, never a number.
 *
 * There is no allocation, no global state, and no libc except memcpy and memset. All memory is the
 * caller's. An open model is only read, so threads may share one; each needs its own scratch. All
 * computation between the floats at both ends is in integers, and the result is the same to the
 * last bit on every machine (FORMAT.md). Flags that would change that, such as -ffast-math, are
 * refused at compile time. */

#ifndef TWIN_H
#define TWIN_H

#include "twin_config.h"
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Version of the library, and the versions of packs that it reads (FORMAT.md, section 1). */
#define TWIN_VERSION_MAJOR 0
#define TWIN_VERSION_MINOR 1
#define TWIN_VERSION_PATCH 0
#define TWIN_VERSION       "0.1.0"
#define TWIN_PACK_OLDEST   1
#define TWIN_PACK_NEWEST   3

/* Adds version and settings to a name, so that a program and a library compiled with different
 * ones do not link:
 * twin_settings_v0_1_block2_flash0_float1_near1_silu1_wide1_text1_partial1_host0_ends1_map1_target1_targets1.
 */
#define TWIN_CONFIGURED(name)                                                                      \
    TWIN_SPELL(name, TWIN_VERSION_MAJOR, TWIN_VERSION_MINOR, TWIN_BLOCK, TWIN_FLASH, TWIN_FLOAT,   \
               TWIN_NEIGHBORS, TWIN_SILU, TWIN_INT16, TWIN_TEXT, TWIN_PARTIAL, TWIN_HOST,          \
               TWIN_INTERVALS, TWIN_MAP, TWIN_TARGET_CURVE, TWIN_TARGETS)
#define TWIN_SPELL(name, v, w, b, m, f, n, s, i, t, p, h, e, c, u, o)                              \
    TWIN_SPELLED(name, v, w, b, m, f, n, s, i, t, p, h, e, c, u, o)
/* clang-format off */
#define TWIN_SPELLED(name, v, w, b, m, f, n, s, i, t, p, h, e, c, u, o)                            \
    name##_v##v##_##w##_block##b##_flash##m##_float##f##_near##n##_silu##s##_wide##i##_text##t##_partial##p##_host##h##_ends##e##_map##c##_target##u##_targets##o
/* clang-format on */

/* Where programs are linked statically, every file that includes this refers to such a name, even
 * if it calls nothing: in a section for debuggers, which no image contains, and which linkers check
 * even if they remove what is unused. */
#if defined(__GNUC__) && defined(__ELF__) && !defined(__unix__)
#define TWIN_SETTINGS_NAMED 1
#else
#define TWIN_SETTINGS_NAMED 0
#endif
#define TWIN_QUOTE(words)  TWIN_QUOTED(words)
#define TWIN_QUOTED(words) #words
#define TWIN_SETTINGS      TWIN_QUOTE(TWIN_CONFIGURED(twin_settings))
#if TWIN_SETTINGS_NAMED
__asm__(".pushsection .debug_twin_settings,\"\"\n\t"
        ".long " TWIN_SETTINGS "\n\t"
        ".popsection");
#endif

/* What a function returns: TWIN_OK; a negative number on error; or TWIN_MORE if all is well but
 * there is more to do. */
typedef enum twin_status {
    TWIN_OK = 0,
    TWIN_MORE = 1,

    /* Why twin_open refuses a pack, as in FORMAT.md, section 10. */
    TWIN_ERROR_TRUNCATED = -1,  /* the end is missing */
    TWIN_ERROR_LENGTH = -2,     /* longer than its header says */
    TWIN_ERROR_MAGIC = -3,      /* not a pack */
    TWIN_ERROR_VERSION = -4,    /* a version that this library does not read */
    TWIN_ERROR_HEADER_CRC = -5, /* damaged */
    TWIN_ERROR_BODY_CRC = -6,   /* damaged */
    TWIN_ERROR_HEADER = -7,     /* describes an impossible network */
    TWIN_ERROR_SECTION = -8,    /* a section is missing or malformed */
    TWIN_ERROR_PADDING = -9,    /* bytes that must be zero are not */
    TWIN_ERROR_VALUE = -10,     /* a number out of its range */
    TWIN_ERROR_OVERFLOW = -11,  /* weights so large that a sum could overflow */

    /* Errors of the caller. */
    TWIN_ERROR_ALIGNMENT = -12,   /* a pack must start at a multiple of 4 */
    TWIN_ERROR_UNSUPPORTED = -13, /* the pack needs what twin_config.h leaves out */
    TWIN_ERROR_SCRATCH = -14,     /* less scratch than twin_scratch_size says */
    TWIN_ERROR_QUERY = -15,       /* a feature is not a number (raw: -32768) */
    TWIN_ERROR_MODEL = -16,       /* the model is not open: twin_open refused, or is not done */
    TWIN_ERROR_EARLY = -17,       /* nothing was evaluated yet */
    TWIN_ERROR_LEVEL = -18,       /* the pack has no intervals of that coverage */
    TWIN_ERROR_TARGET = -19,      /* a measured value is not a number, or far too large */

    /* Errors of a store (twin_store.h). */
    TWIN_ERROR_STORE = -20,   /* this storage and memory cannot hold a store */
    TWIN_ERROR_OTHER = -21,   /* the points in it have different columns or targets */
    TWIN_ERROR_FULL = -22,    /* there is no room for another point */
    TWIN_ERROR_STORAGE = -23, /* it could not be read, erased or programmed */

    /* Why a release is refused (twin_release.h, twin_slots.h). */
    TWIN_ERROR_UNSIGNED = -24,  /* the pack has no signature */
    TWIN_ERROR_SIGNATURE = -25, /* the signature is not of this pack, or of no known key */
    TWIN_ERROR_IDENTITY = -26,  /* the pack has no identity */
    TWIN_ERROR_UNTESTED = -27,  /* the pack has no self-test */
    TWIN_ERROR_SELF_TEST = -28, /* it does not answer as it must */
    TWIN_ERROR_SCHEMA = -29,    /* its columns or targets are not those of the pack in use */
    TWIN_ERROR_COUNTER = -30,   /* older than what the device still accepts */
    TWIN_ERROR_TRIAL = -31,     /* a trial is in the way; or there is none */

    /* Of the caller, for packs of several targets. */
    TWIN_ERROR_TARGETS = -32 /* the pack has fewer targets, or more */
} twin_status;

/* A place in a pack. If TWIN_FLASH is 2, twin_open takes the pack's address as a number. */
#if TWIN_FLASH == 2
typedef uint32_t twin_flash;
typedef uint32_t twin_pack;
#else
typedef const uint8_t *twin_flash;
typedef const void *twin_pack;
#endif

struct twin_kernel;

/* An open pack: twin_open fills it, and it points into the pack, which must stay in place. A copy
 * is as good as the original. The fields may be read. */
typedef struct twin_model {
    const struct twin_kernel *kernel; /* the code that evaluates layers */
    twin_flash scaling;               /* the sections of the pack */
    twin_flash twins;
    twin_flash curve;
    twin_flash counts;
    twin_flash anchors;
    twin_flash values;     /* targets of the anchors */
    uint32_t twin_size;    /* bytes of one twin in the pack */
    uint16_t anchor_size;  /* bytes of the features of one anchor in the pack */
    uint16_t features;     /* numbers in a query */
    uint16_t hidden[3];    /* widths of the hidden layers */
    uint16_t twin_count;   /* networks */
    uint16_t anchor_count; /* anchors of all twins */
    uint16_t neighbors;    /* nearest anchors of each twin that predict; 0: all predict */
    uint16_t members;      /* estimates in one prediction */
    uint8_t layers;        /* hidden layers */
    uint8_t silu;          /* 1 silu, 0 relu */
    uint8_t wide;          /* 1 for 16-bit kernels, 0 for 8-bit ones */
    uint8_t flags;         /* bit 0: the twins were trained on neighbors only; bit 1: intervals */
    uint8_t targets;       /* numbers that are predicted */
#if TWIN_MAP
    uint16_t inputs; /* numbers that the twins take: with a map, what it makes of a query */
#endif
#if TWIN_INTERVALS
    twin_flash intervals; /* sections of the pack; 0 if it has none */
    twin_flash domain;
    uint32_t quantile; /* half an interval per unit of the scale, in 1/65536 */
#endif
#if TWIN_MAP
    twin_flash map; /* sections of the pack; 0 if it has no map */
    twin_flash knots;
    twin_flash table;
#endif
#if TWIN_TARGET_CURVE
    twin_flash target_curve; /* of the first target, in the pack; 0 if it has none */
#endif
#if TWIN_TARGETS > 1
    twin_flash units; /* offset and gain of the first target */
#if TWIN_TARGET_CURVE
    twin_flash curves; /* section of the pack, for all targets; 0 if it has none */
#endif
#if TWIN_INTERVALS
    uint32_t quantiles[TWIN_TARGETS - 1]; /* of the targets after the first */
#endif
    uint16_t apart; /* bytes between the weights of two outputs */
    uint8_t first;  /* target of the pack that is the first here: twin_select_target */
    uint8_t all;    /* targets of the pack */
#endif
} twin_model;

/* A prediction in the units of the target. If the pack has no intervals, `intervals` is 0, and
 * scale, low and high are NaN.
 *
 * `outside` and `missing` have a bit for each feature: bit 0 for the first, and so on; bit 31
 * stands for the 32nd and all after it. A missing feature was filled in. */
typedef struct twin_prediction {
    float mean;
    float spread; /* standard deviation of the members' estimates */
#if TWIN_INTERVALS
    float scale;       /* expected size of the error: two of three are smaller */
    float low;         /* the true value lies in [low, high], */
    float high;        /* with the coverage of twin_set_coverage */
    uint32_t outside;  /* features beyond their range in training */
    uint32_t missing;  /* features that were NaN */
    uint16_t points;   /* of a store that count in it (twin_store.h) */
    uint8_t intervals; /* 1 if scale, low and high are valid */
#endif
} twin_prediction;

/* The same in integers: mean * gain + offset is the prediction, low and high likewise; root * gain
 * / count is the spread and scale * gain / 16 the scale, with the gain and offset of the target
 * from the pack. If it has a target curve, these are numbers before the curve, and the prediction
 * is twin_target_raw(model, mean) * gain + offset. Without intervals scale, low and high are 0. */
typedef struct twin_raw {
    int32_t mean;
    uint32_t root;
#if TWIN_INTERVALS
    uint32_t scale;
    int32_t low;
    int32_t high;
    uint32_t outside;
    uint32_t missing;
    uint16_t points;
    uint8_t intervals;
#endif
    uint16_t count; /* estimates so far */
} twin_raw;

/* Sums over the estimates of one target. The fields are private. */
typedef struct twin_sums {
    int64_t sum;
    int64_t deviations;
    uint64_t squares;
#if TWIN_INTERVALS
    uint64_t asymmetries; /* sum of their squares */
    uint32_t difficulty;  /* sum of signed numbers */
#endif
    int32_t reference; /* the first estimate; deviations are relative to it */
} twin_sums;

/* A prediction in progress: twin_begin fills it, twin_step advances it. It points to model and
 * scratch. The fields are private. */
typedef struct twin_run {
    const twin_model *model;
    const struct twin_kernel *kernel; /* of the model when this began; NULL before */
    int16_t *query;                   /* the quantised query */
    void *partial;                    /* its contribution to the first layer */
    void *
        block[TWIN_TARGETS > 1 ? 3 : 2]; /* activations of layers; not of the last for one target */
    void *room;                          /* what else the kernel needs */
#if TWIN_HOST
    void *work; /* and what it would otherwise put on the stack */
#endif
    int32_t *members; /* the caller's, or NULL */
    twin_sums sums[TWIN_TARGETS];
#if TWIN_INTERVALS
    uint32_t outside;
    uint32_t missing;
#endif
    int status;        /* what twin_read returns, encoded */
    unsigned total;    /* estimates of each target; 0 if the query was refused */
    unsigned count;    /* those so far */
    unsigned twin;     /* twins begun */
    unsigned before;   /* anchors of the twins before this one */
    unsigned owned;    /* anchors of this twin */
    unsigned chosen;   /* how many of them predict */
    unsigned position; /* how many of those are done */
#if TWIN_NEIGHBORS
    uint64_t *nearest;  /* the anchors that predict, if not all do */
    unsigned searched;  /* steps of the search for them so far */
    unsigned neighbors; /* of the model when this began */
#endif
} twin_run;

/* Check a pack of `size` bytes and fill `model`. Nothing in the pack is used before all of it is
 * found valid, and time and stack are bounded for any input. A model whose pack was refused refuses
 * to predict. The pack must start at a multiple of 4. */
#define twin_open TWIN_CONFIGURED(twin_open)
twin_status twin_open(twin_model *model, twin_pack pack, uint32_t size);

/* A pack being checked: twin_open_begin fills it, twin_open_step advances it. The fields are
 * private. */
typedef struct twin_opening {
    twin_model *model;
    twin_flash pack;
    twin_flash at; /* next byte of which the checksum is taken */
    uint32_t size;
    uint32_t sum;    /* checksum so far */
    uint16_t number; /* current twin or anchor */
    uint16_t output; /* of the layer */
    uint8_t depth;   /* of the layer */
    uint8_t stage;   /* of the check */
    uint8_t faults;  /* of the twin, or the anchors */
    int8_t status;
} twin_opening;

#if TWIN_OPEN_STEPS
/* The same in steps, for a program that has a watchdog to feed:
 *
 *     twin_status status = twin_open_begin(&opening, &model, pack, sizeof pack);
 *     while (status == TWIN_MORE) {
 *         feed_the_watchdog();
 *         status = twin_open_step(&opening, 256);
 *     }
 *     if (status != TWIN_OK)
 *         do_without_it();
 *
 * twin_open_begin checks the header, 432 bytes at most. A step checks the given number of bytes, or
 * a little more, as it ends after a row of weights: at most 8 bytes for each feature, or 4 for each
 * neuron of a layer. What an input map and a target curve hold besides the map's table is
 * checked in one step. Each byte is read twice. */
#define twin_open_begin TWIN_CONFIGURED(twin_open_begin)
twin_status twin_open_begin(twin_opening *opening, twin_model *model, twin_pack pack,
                            uint32_t size);
twin_status twin_open_step(twin_opening *opening, uint32_t bytes);
#endif

/* Yours, if TWIN_CRC names it: continues the CRC-32 of zip over `size` bytes at `at`. `crc` is that
 * of the bytes before, 0 at the start. `at` and `size` are multiples of 4. */
#ifdef TWIN_CRC
uint32_t TWIN_CRC(uint32_t crc, twin_flash at, uint32_t size);
#endif

/* Let the `neighbors` nearest anchors of each twin predict, instead of as many as the pack says;
 * 0 for all. Changes the required scratch and `model->members`. A prediction in progress is not
 * affected. */
#if TWIN_NEIGHBORS
void twin_set_neighbors(twin_model *model, uint16_t neighbors);
#endif

/* Let intervals cover `thousandths` of all true values, 900 for 90 %, those of all targets. The
 * pack lists the levels it has; twin_open selects 900, or else the highest below, or else the
 * lowest. TWIN_ERROR_LEVEL, and no change, if the pack has no such level. */
#if TWIN_INTERVALS
twin_status twin_set_coverage(twin_model *model, uint16_t thousandths);
#endif

/* Bytes of scratch that a prediction needs, at any alignment; 0 if the model is not open. */
uint32_t twin_scratch_size(const twin_model *model);

/* Predict from `model->features` integers, -32767 .. 32767: (x - offset) * gain of each feature,
 * rounded; -32768 for a missing one, which is refused unless the pack can fill it in. `members`
 * receives the `model->members` estimates in the order of the anchors, or is NULL. If the query is
 * refused, all of `out` is zero, except that the masks name features up to the refused one. */
#define twin_predict_raw TWIN_CONFIGURED(twin_predict_raw)
twin_status twin_predict_raw(const twin_model *model, void *scratch, uint32_t size,
                             const int16_t *query, twin_raw *out, int32_t *members);

/* The same in steps, for a control loop with a deadline:
 *
 *     if (twin_begin_raw(&run, &model, scratch, sizeof scratch, query, NULL) == TWIN_OK)
 *         while (twin_step(&run, 4) > 0)
 *             do_something_else();
 *     if (twin_read_raw(&run, &out) == TWIN_OK)
 *         use(out.mean, out.root);
 *
 * A step evaluates the given number of anchors (best a multiple of the block, TWIN_BLOCK) and
 * returns how many are left; TWIN_ALL finishes the run. At any time twin_read returns mean and
 * spread of those evaluated so far: its status is TWIN_MORE until all are done, TWIN_ERROR_EARLY if
 * there are none yet, and for a refused run that of twin_begin. A step that reaches the next twin
 * also pays for the query's contribution to its first layer, and the first one for the input map of
 * the pack, if there is one. With neighbors, the first steps of a
 * twin search for them, 16 anchors for each that they would evaluate. */
#define TWIN_ALL       UINT16_MAX
#define twin_begin_raw TWIN_CONFIGURED(twin_begin_raw)
twin_status twin_begin_raw(twin_run *run, const twin_model *model, void *scratch, uint32_t size,
                           const int16_t *query, int32_t *members);
uint16_t twin_step(twin_run *run, uint16_t anchors);
#define twin_read_raw TWIN_CONFIGURED(twin_read_raw)
twin_status twin_read_raw(const twin_run *run, twin_raw *out);

#if TWIN_FLOAT
/* Predict from `model->features` numbers in the user's units. Infinities count as any number beyond
 * the range of the training data. NaN stands for a missing feature: the pack fills it in, or the
 * query is refused if it cannot. `members` as above, or NULL. If the query is refused, all floats
 * are NaN. */
#define twin_predict TWIN_CONFIGURED(twin_predict)
twin_status twin_predict(const twin_model *model, void *scratch, uint32_t size, const float *x,
                         twin_prediction *out, int32_t *members);
#define twin_begin TWIN_CONFIGURED(twin_begin)
twin_status twin_begin(twin_run *run, const twin_model *model, void *scratch, uint32_t size,
                       const float *x, int32_t *members);
#define twin_read TWIN_CONFIGURED(twin_read)
twin_status twin_read(const twin_run *run, twin_prediction *out);

/* A member's estimate, or a raw mean, in the units of the target. */
float twin_target(const twin_model *model, int32_t estimate);
#endif

/* Packs of several targets, up to TWIN_TARGETS. One run predicts all of them:
 *
 *     twin_prediction out[TWIN_TARGETS];
 *     unsigned t;
 *     if (twin_predict_targets(&model, scratch, sizeof scratch, x, out, TWIN_TARGETS) == TWIN_OK)
 *         for (t = 0; t < model.targets; t++)
 *             use(out[t].low, out[t].high);
 *
 * What has no target to choose is about the first. Where a run may have `members`, they are
 * `model->members` of each target: those of the first, then those of the second, and so on.
 *
 * TWIN_ERROR_TARGETS if `target` is not below `model->targets`, or if `count`, the room in `out`,
 * is less than that: then what `out` has room for is filled as for a refused query. All this is
 * there for one target, too. */
#define twin_read_target_raw TWIN_CONFIGURED(twin_read_target_raw)
twin_status twin_read_target_raw(const twin_run *run, unsigned target, twin_raw *out);
#define twin_read_targets_raw TWIN_CONFIGURED(twin_read_targets_raw)
twin_status twin_read_targets_raw(const twin_run *run, twin_raw *out, unsigned count);
#define twin_predict_targets_raw TWIN_CONFIGURED(twin_predict_targets_raw)
twin_status twin_predict_targets_raw(const twin_model *model, void *scratch, uint32_t size,
                                     const int16_t *query, twin_raw *out, unsigned count);
#if TWIN_FLOAT
#define twin_read_target TWIN_CONFIGURED(twin_read_target)
twin_status twin_read_target(const twin_run *run, unsigned target, twin_prediction *out);
#define twin_read_targets TWIN_CONFIGURED(twin_read_targets)
twin_status twin_read_targets(const twin_run *run, twin_prediction *out, unsigned count);
#define twin_predict_targets TWIN_CONFIGURED(twin_predict_targets)
twin_status twin_predict_targets(const twin_model *model, void *scratch, uint32_t size,
                                 const float *x, twin_prediction *out, unsigned count);
#endif

/* Make `one` a model of a single target of an open pack. It predicts this target alone, and
 * twin_target, twin_target_raw, twin_estimate_raw and twin_set_coverage are about it.
 * TWIN_ERROR_TARGETS, or TWIN_ERROR_MODEL, and a model that is not open, if there is no such
 * target. */
#define twin_select_target TWIN_CONFIGURED(twin_select_target)
twin_status twin_select_target(twin_model *one, const twin_model *model, unsigned target);

/* An estimate, a raw mean or a raw end of an interval on the target curve of the pack, which
 * `gain` and `offset` of the target bring to its units; and back. Without such a curve, or if the
 * model is not open, the number itself. */
#if TWIN_TARGET_CURVE
int32_t twin_target_raw(const twin_model *model, int32_t estimate);
int32_t twin_estimate_raw(const twin_model *model, int32_t target);
#else
static inline int32_t twin_target_raw(const twin_model *model, int32_t estimate) {
    (void)model;
    return estimate;
}
static inline int32_t twin_estimate_raw(const twin_model *model, int32_t target) {
    (void)model;
    return target;
}
#endif

/* One line of text for a status; "" if TWIN_TEXT is 0. */
#if TWIN_TEXT
const char *twin_text(twin_status status);
#else
static inline const char *twin_text(twin_status status) {
    (void)status;
    return "";
}
#endif

#ifdef __cplusplus
}
#endif

#endif
