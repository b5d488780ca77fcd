/* twinedge: regression with twin networks on small devices.
 *
 * A twin network predicts the difference of two points' targets. One network and K stored points,
 * the anchors, so make K predictions: their mean is the prediction, their spread says how sure it
 * is. A .twin pack holds networks, anchors and scaling; this library evaluates it where it lies.
 *
 *     static uint32_t scratch[1024];
 *     twin_model model;
 *     twin_prediction out;
 *     if (twin_open(&model, pack, sizeof pack) == TWIN_OK &&
 *         twin_predict(&model, scratch, sizeof scratch, x, &out, NULL) == TWIN_OK)
 *         use(out.mean, out.spread);
 *
 * There is no allocation, no global state and no libc but memcpy and memset. All memory is the
 * caller's. A model is only read after it was opened, so threads may share one; each needs a
 * scratch of its own. Between the float numbers at both ends everything is integers, and the result
 * is the same to the last bit on every machine (FORMAT.md). Compile without -ffast-math. */

#ifndef TWIN_H
#define TWIN_H

#include "twin_config.h"
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a function returns: TWIN_OK, or something negative. */
typedef enum twin_status {
    TWIN_OK = 0,

    /* Why twin_open refuses a pack, as in FORMAT.md, section 8. */
    TWIN_ERROR_TRUNCATED = -1,  /* the end is missing */
    TWIN_ERROR_LENGTH = -2,     /* longer than its header says */
    TWIN_ERROR_MAGIC = -3,      /* not a pack */
    TWIN_ERROR_VERSION = -4,    /* of a version that this library does not read */
    TWIN_ERROR_HEADER_CRC = -5, /* damaged */
    TWIN_ERROR_BODY_CRC = -6,   /* damaged */
    TWIN_ERROR_HEADER = -7,     /* describes no network that could be */
    TWIN_ERROR_SECTION = -8,    /* a section is missing, or not as it must be */
    TWIN_ERROR_PADDING = -9,    /* bytes that must be zero are not */
    TWIN_ERROR_VALUE = -10,     /* a number out of its range */
    TWIN_ERROR_OVERFLOW = -11,  /* weights so large that a sum could overflow */

    /* Mistakes of the caller. */
    TWIN_ERROR_ALIGNMENT = -12,   /* a pack must start at a multiple of 4 */
    TWIN_ERROR_UNSUPPORTED = -13, /* the header asks for what twin_config.h left out */
    TWIN_ERROR_SCRATCH = -14,     /* less scratch than twin_scratch_size says */
    TWIN_ERROR_QUERY = -15        /* a feature is not a number (raw: -32768) */
} twin_status;

/* A place in a pack. Where TWIN_FLASH is 2, twin_open takes a number as the pack's address. */
#if TWIN_FLASH == 2
typedef uint32_t twin_flash;
typedef uint32_t twin_pack;
#else
typedef const uint8_t *twin_flash;
typedef const void *twin_pack;
#endif

struct twin_kernel;

/* An open pack: twin_open fills it, and it points into the pack, which must stay. A copy is as good
 * as the original. The fields may be read. */
typedef struct twin_model {
    const struct twin_kernel *kernel; /* the code that evaluates layers */
    twin_flash scaling;               /* the sections of the pack */
    twin_flash twins;
    twin_flash curve;
    twin_flash counts;
    twin_flash anchors;
    twin_flash targets;
    uint32_t twin_size;    /* bytes of one twin in the pack */
    uint16_t anchor_size;  /* bytes of the features of one anchor in the pack */
    uint16_t features;     /* numbers in a query */
    uint16_t hidden[3];    /* widths of the hidden layers */
    uint16_t twin_count;   /* networks */
    uint16_t anchor_count; /* anchors of all twins */
    uint16_t neighbours;   /* nearest anchors of each twin that predict; 0: all predict */
    uint16_t members;      /* estimates in one prediction */
    uint8_t layers;        /* hidden layers */
    uint8_t silu;          /* 1 silu, 0 relu */
    uint8_t wide;          /* 1 for 16-bit kernels, 0 for 8-bit ones */
    uint8_t flags;         /* bit 0: the twins were trained on neighbours only */
} twin_model;

/* A prediction in the units of the target. */
typedef struct twin_prediction {
    float mean;
    float spread; /* standard deviation of the members' estimates */
} twin_prediction;

/* The same in integers: mean * gain + offset is the prediction, root * gain / count the spread,
 * with the gain and offset of the target that the pack holds. */
typedef struct twin_raw {
    int32_t mean;
    uint32_t root;
    uint16_t count; /* estimates so far */
} twin_raw;

/* A prediction in progress: twin_begin fills it, twin_step carries it on. It points to model and
 * scratch. What is inside is the library's business. */
typedef struct twin_run {
    const twin_model *model;
    int16_t *query;    /* the quantised query */
    void *partial;     /* its share in the first layer */
    void *block[2];    /* activations of the layers but the last */
    void *room;        /* what else the kernel needs */
    uint64_t *nearest; /* numbers of the anchors that predict, where not all do */
    int32_t *members;  /* the caller's, or NULL */
    int64_t sum;       /* of the estimates */
    int64_t deviations;
    uint64_t squares;
    int32_t reference; /* the first estimate, from which deviations count */
    unsigned count;    /* estimates so far */
    unsigned twin;     /* twins begun */
    unsigned before;   /* anchors of the twins before this one */
    unsigned owned;    /* anchors of this twin */
    unsigned chosen;   /* those of them that predict */
    unsigned position; /* those of them that did */
} twin_run;

/* Check a pack of `size` bytes and fill `model`. Nothing of the pack is used before all of it was
 * found sound, and time and stack are bounded whatever the bytes are. On an error `model` must not
 * be used. The pack must start at a multiple of 4. */
twin_status twin_open(twin_model *model, twin_pack pack, uint32_t size);

/* Let the `neighbours` nearest anchors of each twin predict instead of as many as the pack says;
 * 0 for all. Changes the scratch that is needed, and `model->members`. */
#if TWIN_NEIGHBOURS
void twin_set_neighbours(twin_model *model, uint16_t neighbours);
#endif

/* Bytes of scratch that a prediction needs, at any alignment. */
uint32_t twin_scratch_size(const twin_model *model);

/* Predict from `model->features` integers, -32767 .. 32767: (x - offset) * gain of each feature,
 * rounded. `members` takes the `model->members` estimates in the order of the anchors, or is NULL.
 */
twin_status twin_predict_raw(const twin_model *model, void *scratch, uint32_t size,
                             const int16_t *query, twin_raw *out, int32_t *members);

/* The same in pieces, for a control loop that has a deadline:
 *
 *     twin_begin_raw(&run, &model, scratch, sizeof scratch, query, NULL);
 *     while (twin_step(&run, 4) > 0)
 *         do_something_else();
 *     twin_read_raw(&run, &out);
 *
 * A step evaluates so many anchors more (best a multiple of the block, TWIN_BLOCK) and returns how
 * many are left. At every moment twin_read gives mean and spread of those that were evaluated, and
 * of none the count is zero, and so are raw mean and root. A step that comes to the next twin also
 * pays for the query's share in its first layer and, with neighbours, for the distance to all of
 * its anchors. */
twin_status twin_begin_raw(twin_run *run, const twin_model *model, void *scratch, uint32_t size,
                           const int16_t *query, int32_t *members);
uint16_t twin_step(twin_run *run, uint16_t anchors);
void twin_read_raw(const twin_run *run, twin_raw *out);

#if TWIN_FLOAT
/* Predict from `model->features` numbers in the user's units. Infinities are as good as any number
 * beyond the range of the training data; NaN is refused. `members` as above, or NULL. */
twin_status twin_predict(const twin_model *model, void *scratch, uint32_t size, const float *x,
                         twin_prediction *out, int32_t *members);
twin_status twin_begin(twin_run *run, const twin_model *model, void *scratch, uint32_t size,
                       const float *x, int32_t *members);
void twin_read(const twin_run *run, twin_prediction *out);

/* A member's estimate, or a raw mean, in the units of the target. */
float twin_target(const twin_model *model, int32_t estimate);
#endif

/* One line of text for a status; "" where TWIN_TEXT is 0. */
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
