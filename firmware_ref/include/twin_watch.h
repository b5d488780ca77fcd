/* A watch on the device: is what it sees still what the model was calibrated for, and do intervals
 * still cover what they should?
 *
 * It is told of every prediction and, where the true value becomes known later, of that:
 *
 *     twin_watch watch;
 *     if (twin_watch_begin(&watch, &model, 900) != TWIN_OK)
 *         do_without_it();
 *     for (;;) {
 *         if (twin_predict(&model, scratch, sizeof scratch, x, &out, NULL) == TWIN_OK)
 *             twin_watch_saw(&watch, &model, &out);
 *         if (measure(&truth))
 *             twin_watch_told(&watch, &model, &out, truth);
 *         if (twin_watch_flags(&watch))
 *             call_for_help();
 *     }
 *
 * From true values it widens or narrows the intervals, so that they cover as many as was asked for
 * whatever drifts. It does so by adaptive conformal inference (Gibbs and Candes, 2021): after each
 * truth the share alpha that intervals leave out moves by gamma = 1/40 of what it should have been
 * less what it was. Of any 1,000 truths in a row, each told before the next is predicted, the share
 * covered is within (1 + 2 gamma) / (1000 gamma) = 0.042 of the one asked for, whatever the truths
 * are. There are two exceptions: a truth that is further off than 65,536 times the scale, which no
 * interval reaches; and predictions that are exact to the last digit, of which more are covered.
 * Truths may come late or in another order. They count for or against the interval that was given
 * back then, and in the long run as many are covered, too.
 *
 * And it raises flags. Behind each is a sum of bounded scores that falls while all is as it was in
 * calibration, and soon comes to a limit where it is not. Without drift, and with queries that do
 * not depend on each other, false alarms are fewer than one in a million queries. A step of two
 * standard deviations in the errors is flagged within 200 truths, and mostly within 60.
 *
 * All is integers but for the functions that take floats, so the same predictions and truths give
 * the same state on every machine. A program that calls none of this does not have it in its image,
 * and where TWIN_INTERVALS is 0 there is none of it. */

#ifndef TWIN_WATCH_H
#define TWIN_WATCH_H

#include "twin.h"

#if TWIN_INTERVALS

#ifdef __cplusplus
extern "C" {
#endif

/* What a flag says, of late and compared with calibration. */
#define TWIN_WATCH_OUTSIDE 1u  /* more queries have a feature outside its range in training */
#define TWIN_WATCH_SCALE   2u  /* the model expects larger errors, by half or more */
#define TWIN_WATCH_ABOVE   4u  /* true values lie above the predictions */
#define TWIN_WATCH_BELOW   8u  /* they lie below them */
#define TWIN_WATCH_WORSE   16u /* errors are larger */
#define TWIN_WATCH_DRIFT   28u /* any of the last three, which take true values */

/* What the watch knows, in 64 bytes on every machine. The fields may be read. When a number that
 * shares are taken of reaches 65,536, it and what it is the whole of are halved: no count wraps,
 * and what is long past matters less and less. */
typedef struct twin_watch {
    uint32_t pack;    /* checksum of the intervals section it was begun with */
    uint32_t level;   /* coverage asked for, in thousandths; 0 where it was not begun */
    int32_t alpha;    /* share that intervals leave out now, in 1/40000; none from 0 down */
    int32_t owed;     /* misses of late truths to make up for, in 1/1000 */
    uint32_t stretch; /* by how much intervals are wider than in calibration, in 1/1024, above 1 */
    uint32_t flags;   /* raised and not cleared */
    uint32_t sums[5]; /* behind each flag, in 1/1024; it is raised at 32 */
    uint32_t seen;    /* predictions */
    uint32_t outside; /* those of them with a feature outside */
    uint32_t scales;  /* sum of their scales, each over the mean in calibration, in 1/1024 */
    uint32_t told;    /* true values */
    uint32_t covered; /* those of them within the interval that was given */
} twin_watch;

/* Begin to watch a model, with intervals that are to cover `thousandths` of all true values.
 * TWIN_ERROR_MODEL where the model is not open, TWIN_ERROR_LEVEL where the pack has no such
 * intervals: then the watch does nothing, whatever it is told. */
twin_status twin_watch_begin(twin_watch *watch, twin_model *model, uint16_t thousandths);

/* A prediction was made. One without intervals counts for nothing. */
void twin_watch_saw_raw(twin_watch *watch, const twin_model *model, const twin_raw *given);

/* The true value is known for a prediction, `given` as it was back then. In any order, late, for
 * some of them or for none. Sets `model->quantile`, so that the next prediction has the adapted
 * interval, at once and in every run of this model: no other thread may use the model meanwhile.
 * `truth` is in the units of the raw mean: (y - offset) / gain of the target, rounded; INT32_MIN
 * stands for none. */
void twin_watch_told_raw(twin_watch *watch, twin_model *model, const twin_raw *given,
                         int32_t truth);

#if TWIN_FLOAT
/* The same in the units of the target. A truth that is infinite or not a number is none. */
void twin_watch_saw(twin_watch *watch, const twin_model *model, const twin_prediction *given);
void twin_watch_told(twin_watch *watch, twin_model *model, const twin_prediction *given,
                     float truth);
#endif

/* In thousandths: the share of true values that the intervals covered; the share of queries with a
 * feature outside; and the mean scale, where 1000 is that in calibration. 0 before there is
 * anything to take them of. */
uint32_t twin_watch_coverage(const twin_watch *watch);
uint32_t twin_watch_outside(const twin_watch *watch);
uint32_t twin_watch_scale(const twin_watch *watch);

/* Flags that were raised, TWIN_WATCH_...; each stays until it is cleared. Its test then begins
 * anew. */
uint32_t twin_watch_flags(const twin_watch *watch);
void twin_watch_clear(twin_watch *watch, uint32_t flags);

/* The watch as bytes, the same on every machine, so that it outlasts a reset; and back. Restoring
 * also sets `model->quantile`. Where it refuses it changes nothing: TWIN_ERROR_MODEL where the
 * model is not open, TWIN_ERROR_MAGIC where the bytes are no watch, for instance erased flash,
 * TWIN_ERROR_VERSION where they are one of another version, TWIN_ERROR_BODY_CRC where they are
 * damaged, and TWIN_ERROR_LEVEL where they belong to another pack. */
#define TWIN_WATCH_BYTES 72
void twin_watch_save(const twin_watch *watch, uint8_t *bytes);
twin_status twin_watch_restore(twin_watch *watch, twin_model *model, const uint8_t *bytes);

#ifdef __cplusplus
}
#endif

#endif

#endif
