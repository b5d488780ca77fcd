/* The pack of 2 twins of 12-12 relu, 8-bit weights, 8 anchors. */

#ifndef MODEL_H
#define MODEL_H

#include <twin.h>
#include <twin_release.h>

#define MODEL_FEATURES 2
#define MODEL_MEMBERS  8
#define MODEL_SIZE     1280u

/* Bytes of scratch that suffice for a prediction on any device; twin_scratch_size returns the exact
 * number, and a prediction with less is refused. */
#define MODEL_SCRATCH                                                                              \
    (48u + 64u * TWIN_BLOCK + 96u * TWIN_PARTIAL + 216u * (TWIN_BLOCK > 1) + TWIN_WORK_BYTES)

#ifdef __cplusplus
extern "C" {
#endif

extern const unsigned char model_twin[MODEL_SIZE];

#ifdef __cplusplus
}
#endif

#endif
