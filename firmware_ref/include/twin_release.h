/* A pack as it was released: who made it, what it is, and what it must answer.
 *
 * Three optional sections say so (FORMAT.md, section 17), and none of them is needed to
 * predict: a program that calls none of this has no code for it. An update over the air needs all
 * three (twin_slots.h). At start, one of them is good for every program:
 *
 *     status = twin_open(&model, pack, sizeof pack);
 *     if (status == TWIN_OK)
 *         status = twin_self_test(&model, pack, scratch, sizeof scratch);
 *     if (status != TWIN_OK)
 *         report(twin_text(status));
 *
 * The runtime has no cryptography. Yours checks a signature, in place and before the pack is
 * opened:
 *
 *     twin_signed part;
 *     if (twin_signature(pack, sizeof pack, &part) != TWIN_OK ||
 *         !signature_is_good(part.message, part.message_size, part.signature))
 *         do_without_it();
 */

#ifndef TWIN_RELEASE_H
#define TWIN_RELEASE_H

#include "twin.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a pack says of itself. The places are in the pack, which must stay. */
typedef struct twin_release {
    twin_flash id;     /* 16 bytes: stand for all that the pack computes with */
    twin_flash parent; /* 16 bytes: the pack that it was made from; zeros if none */
    twin_flash schema; /* 16 bytes: columns and targets; zeros if unknown */
    twin_flash table;  /* 16 bytes: what it was trained on; zeros if unknown */
    uint32_t counter;  /* of releases: a device refuses one below what it has seen */
} twin_release;

/* Algorithms of signatures, and their bytes. */
enum { TWIN_ED25519 = 1, TWIN_HMAC_SHA256 = 2 };
enum { TWIN_ED25519_BYTES = 64, TWIN_HMAC_SHA256_BYTES = 32 };

/* What a verifier needs. The places are in the pack. */
typedef struct twin_signed {
    twin_flash message;   /* what was signed */
    twin_flash signature; /* of it */
    twin_flash key;       /* 8 bytes: id of the key, to find it among several */
    uint32_t message_size;
    uint16_t size; /* of the signature: that of its algorithm */
    uint16_t algorithm;
} twin_signed;

/* Find the signature of a pack that nobody has checked yet: `size` bytes of any content. Nothing is
 * verified; but what is signed, and what else the pack's length and sections say, is the whole pack
 * except for its checksums, which twin_open checks.
 *
 * TWIN_ERROR_UNSIGNED if there is none; TWIN_ERROR_SIGNATURE if it is not the last of the sections,
 * or not one of this file, this length and a known algorithm; otherwise as twin_open, which finds
 * the rest. */
twin_status twin_signature(twin_pack pack, uint32_t size, twin_signed *part);

/* Find the identity of a pack of `size` bytes, which need not be open. TWIN_ERROR_IDENTITY if it
 * has none; TWIN_ERROR_SECTION or TWIN_ERROR_PADDING if it is malformed; otherwise as twin_open. */
twin_status twin_identity(twin_pack pack, uint32_t size, twin_release *release);

/* Predict from the queries of the pack's self-test, and compare each bit with what they must give.
 * `pack` is the one that the model was opened from; a model that was prepared, or another kernel,
 * gives the same. Call it before twin_set_neighbors. The scratch is that of a prediction.
 *
 * TWIN_ERROR_SELF_TEST if an answer differs: memory, compiler or kernel is at fault, or the pack
 * was made by none of our tools. TWIN_ERROR_UNTESTED if the pack has no self-test;
 * TWIN_ERROR_SECTION or TWIN_ERROR_PADDING if it is malformed; TWIN_ERROR_MODEL or
 * TWIN_ERROR_SCRATCH as for a prediction; TWIN_ERROR_TARGETS for a model of one of several targets.
 */
#define twin_self_test TWIN_CONFIGURED(twin_self_test)
twin_status twin_self_test(const twin_model *model, twin_pack pack, void *scratch, uint32_t size);

/* The same, one query at a time, for a program that has a watchdog to feed: begin with number 0,
 * and go on with the next as long as it returns TWIN_MORE. */
#define twin_self_test_step TWIN_CONFIGURED(twin_self_test_step)
twin_status twin_self_test_step(const twin_model *model, twin_pack pack, uint16_t number,
                                void *scratch, uint32_t size);

#ifdef __cplusplus
}
#endif

#endif
