/* Monitoring on the device: does it still see what the model was calibrated for, and do intervals
 * still cover what they should?
 *
 * It counts every prediction and, if the true value becomes known later, how far off it was:
 *
 *     twin_watch watch;
 *     if (twin_watch_begin(&watch, &model, 900) != TWIN_OK)
 *         do_without_it();
 *     while (next_query(x)) {
 *         if (twin_predict(&model, scratch, sizeof scratch, x, &out, NULL) == TWIN_OK) {
 *             twin_watch_add_prediction(&watch, &model, &out);
 *             if (measure(&target))
 *                 twin_watch_add_target(&watch, &model, &out, target);
 *         }
 *         if (twin_watch_flags(&watch))
 *             call_for_help();
 *     }
 *
 * From true values it widens or narrows the intervals, so that they keep the requested coverage
 * under any drift. It does so by adaptive conformal inference (Gibbs and Candes, 2021): after each
 * truth, the share alpha that intervals leave out moves by gamma = 1/40 of the difference between
 * the requested share and the miss observed. Of any 1,000 consecutive truths, each added before the
 * next prediction, the covered share is within (1 + 2 gamma) / (1000 gamma) = 0.042 of the one
 * requested, for any truths. There are two exceptions: a truth further off than 65,536 times the
 * scale, which no interval reaches; and predictions that are exact to the last digit, of which more
 * are covered. Truths may come late or out of order. They count for or against the interval given
 * at the time, and in the long run coverage holds there, too.
 *
 * It also raises flags. Behind each is a sum of bounded scores that falls while all is as in
 * calibration, and soon reaches a limit if it is not. Without drift, and with independent queries,
 * there is less than one false alarm in a million queries. A step of two standard deviations in the
 * errors is flagged within 200 truths, and mostly within 60.
 *
 * All computation is in integers except in functions that take floats, so the same predictions and
 * truths lead to the same state on every machine. A program that calls none of this does not have
 * it in its image. Not available if TWIN_INTERVALS is 0. */

#ifndef TWIN_WATCH_H
#define TWIN_WATCH_H

#include "twin.h"

#if TWIN_INTERVALS

#ifdef __cplusplus
extern "C" {
#endif

/* Meaning of the flags: recently, compared with calibration. */
#define TWIN_WATCH_OUTSIDE 1u  /* more queries have a feature outside its range in training */
#define TWIN_WATCH_SCALE   2u  /* the model expects larger errors, by half or more */
#define TWIN_WATCH_ABOVE   4u  /* true values lie above the predictions */
#define TWIN_WATCH_BELOW   8u  /* they lie below them */
#define TWIN_WATCH_WORSE   16u /* errors are larger */
#define TWIN_WATCH_DRIFT   28u /* any of the last three, which need true values */

/* State of the watch, 64 bytes on every machine. The fields may be read. When the denominator of a
 * share reaches 65,536, it and its parts are halved: no count wraps, and the distant past matters
 * less and less. */
typedef struct twin_watch {
    uint32_t pack;    /* checksum of the intervals section it was begun with */
    uint32_t level;   /* requested coverage, in thousandths; 0 if it was not begun */
    int32_t alpha;    /* share that intervals leave out now, in 1/40000; none at or below 0 */
    int32_t owed;     /* misses of late truths to make up for, in 1/1000 */
    uint32_t stretch; /* how much wider than in calibration intervals are, in 1/1024 above 1 */
    uint32_t flags;   /* raised and not cleared */
    uint32_t sums[5]; /* behind each flag, in 1/1024; it is raised at 32 */
    uint32_t predictions;
    uint32_t outside; /* those of them with a feature outside */
    uint32_t scales;  /* sum of their scales, each over the mean in calibration, in 1/1024 */
    uint32_t targets; /* true values of some of them */
    uint32_t covered; /* those of them inside the interval given */
} twin_watch;

/* Begin to watch a model, with intervals that should cover `thousandths` of all true values.
 * TWIN_ERROR_MODEL if the model is not open, TWIN_ERROR_LEVEL if the pack has no such intervals,
 * TWIN_ERROR_TARGETS if it has several targets: the watch then does nothing. It takes a model of
 * one of them (twin_select_target), and adapts the intervals that this model predicts; those that
 * are read from a run of all targets stay as calibrated, and a model of all counts for nothing in
 * the functions below. */
twin_status twin_watch_begin(twin_watch *watch, twin_model *model, uint16_t thousandths);

/* Add a prediction that was made. One without intervals does not count. */
#define twin_watch_add_prediction_raw TWIN_CONFIGURED(twin_watch_add_prediction_raw)
void twin_watch_add_prediction_raw(twin_watch *watch, const twin_model *model,
                                   const twin_raw *given);

/* Add the true value of a prediction, with `given` as it was at the time. In any order, late,
 * for all, some or none. Sets `model->quantile`, so that the next prediction has the adapted
 * interval, at once and in every run of this model: no other thread may use the model meanwhile.
 * `target` is in the units of the raw mean: (y - offset) / gain of the target, rounded, or what
 * twin_estimate_raw makes of that; INT32_MIN is ignored. */
#define twin_watch_add_target_raw TWIN_CONFIGURED(twin_watch_add_target_raw)
void twin_watch_add_target_raw(twin_watch *watch, twin_model *model, const twin_raw *given,
                               int32_t target);

#if TWIN_FLOAT
/* The same in the units of the target. An infinite or NaN target is ignored. */
#define twin_watch_add_prediction TWIN_CONFIGURED(twin_watch_add_prediction)
void twin_watch_add_prediction(twin_watch *watch, const twin_model *model,
                               const twin_prediction *given);
#define twin_watch_add_target TWIN_CONFIGURED(twin_watch_add_target)
void twin_watch_add_target(twin_watch *watch, twin_model *model, const twin_prediction *given,
                           float target);
#endif

/* In thousandths: the share of true values that the intervals covered; the share of queries with a
 * feature outside; and the mean scale, relative to 1000 in calibration. 0 as long as there is no
 * data. */
uint32_t twin_watch_coverage(const twin_watch *watch);
uint32_t twin_watch_outside(const twin_watch *watch);
uint32_t twin_watch_scale(const twin_watch *watch);

/* Flags that were raised, TWIN_WATCH_...; each stays until cleared, and its test then starts over.
 */
uint32_t twin_watch_flags(const twin_watch *watch);
void twin_watch_clear(twin_watch *watch, uint32_t flags);

/* The watch as bytes, the same on every machine, so that it survives a reset; and back. Restoring
 * also sets `model->quantile`. On error it changes nothing: TWIN_ERROR_MODEL if the model is not
 * open, TWIN_ERROR_MAGIC if the bytes are not a watch, such as erased flash, TWIN_ERROR_VERSION if
 * they have a different version, TWIN_ERROR_BODY_CRC if they are damaged, TWIN_ERROR_LEVEL if they
 * belong to a different pack, or want a coverage that none has, and TWIN_ERROR_TARGETS if the model
 * has several targets. */
#define TWIN_WATCH_BYTES 72
void twin_watch_save(const twin_watch *watch, uint8_t *bytes);
twin_status twin_watch_restore(twin_watch *watch, twin_model *model, const uint8_t *bytes);

/* Deprecated names, which go with 0.3. */
#define twin_watch_saw      twin_watch_add_prediction
#define twin_watch_saw_raw  twin_watch_add_prediction_raw
#define twin_watch_told     twin_watch_add_target
#define twin_watch_told_raw twin_watch_add_target_raw

#ifdef __cplusplus
}
#endif

#endif

#endif
