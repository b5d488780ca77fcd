/* Self-test, identity and signature of a pack: FORMAT.md, section 17. */

#include "twin_release.h"
#include "twin_model.h"

enum { SELF_TEST = 13, IDENTITY, SIGNATURE }; /* kinds */
enum { MOST_ENTRIES = 32, MOST_QUERIES = 64 };
/* In a self-test: its head, and the words of an answer. */
enum { TEST_HEAD = 4, ANSWER = 12 };
/* In an identity. */
enum { PARENT = 16, COUNTER = 32, ZERO_WORD = 36, SCHEMA = 40, TABLE = 56, IDENTITY_BYTES = 72 };
/* In a signature; and where what it covers starts, after the checksums. */
enum { COPIED = 4, ALGORITHM = 8, KEY = 12, SIGNATURE_HEAD = 20, SIGNED_FROM = 20 };

typedef struct twini_section {
    twin_flash at; /* 0 if the pack has none of this kind */
    uint32_t length;
    uint8_t is_last;
} twini_section;

/* Find a section by its kind in a pack that nobody has checked: the faults of FORMAT.md, section
 * 10, up to 6, and of its entry in the table. */
TWIN_NOT_INLINE static twin_status twini_find_section(twin_flash pack, uint32_t size, unsigned kind,
                                                      twini_section *found) {
    twin_flash entry = pack + TWIN_TABLE;
    uint32_t offset, end;
    unsigned left;
    found->at = 0;
#if TWIN_FLASH == 0
    if ((uintptr_t)pack & 3)
        return TWIN_ERROR_ALIGNMENT;
#endif
    if (size < TWIN_TABLE)
        return TWIN_ERROR_TRUNCATED;
    if (twini_u32(pack) != 0x4E495754u) /* TWIN */
        return TWIN_ERROR_MAGIC;
    if ((unsigned)twini_u16(pack + 4) - TWIN_PACK_OLDEST > TWIN_PACK_NEWEST - TWIN_PACK_OLDEST)
        return TWIN_ERROR_VERSION;
    offset = twini_u32(pack + 8);
    if (size != offset)
        return size < offset ? TWIN_ERROR_TRUNCATED : TWIN_ERROR_LENGTH;
    left = twini_u16(pack + 6);
    if (left - 1 >= MOST_ENTRIES || size < TWIN_TABLE + TWIN_ENTRY * left)
        return TWIN_ERROR_HEADER;
    end = TWIN_TABLE + TWIN_ENTRY * left;
    for (; left; left--, entry += TWIN_ENTRY)
        if (twini_u16(entry) == kind) {
            offset = twini_u32(entry + 4);
            found->length = twini_u32(entry + 8);
            found->at = pack + (twini_size)offset;
            found->is_last = left == 1;
            return offset & 15 || offset < end || offset > size || found->length > size - offset ||
                           twini_u16(entry + 2)
                       ? TWIN_ERROR_SECTION
                       : TWIN_OK;
        }
    return TWIN_OK;
}

twin_status twin_identity(twin_pack pack, uint32_t size, twin_release *release) {
    twini_section found;
    twin_status status = twini_find_section((twin_flash)pack, size, IDENTITY, &found);
    if (status)
        return status;
    if (!found.at)
        return TWIN_ERROR_IDENTITY;
    if (found.length != IDENTITY_BYTES)
        return TWIN_ERROR_SECTION;
    if (twini_u32(found.at + ZERO_WORD))
        return TWIN_ERROR_PADDING;
    release->id = found.at;
    release->parent = found.at + PARENT;
    release->schema = found.at + SCHEMA;
    release->table = found.at + TABLE;
    release->counter = twini_u32(found.at + COUNTER);
    return TWIN_OK;
}

/* Bytes of a signature by its algorithm; 0 for one that is unknown. */
static unsigned twini_signature_bytes(unsigned algorithm) {
    return algorithm == TWIN_ED25519       ? (unsigned)TWIN_ED25519_BYTES
           : algorithm == TWIN_HMAC_SHA256 ? (unsigned)TWIN_HMAC_SHA256_BYTES
                                           : 0u;
}

twin_status twin_signature(twin_pack pack, uint32_t size, twin_signed *part) {
    twin_flash file = (twin_flash)pack, at;
    twini_section found;
    unsigned algorithm, bytes;
    twin_status status = twini_find_section(file, size, SIGNATURE, &found);
    if (status)
        return status;
    at = found.at;
    if (!at)
        return TWIN_ERROR_UNSIGNED;
    if (!found.is_last || found.length < SIGNATURE_HEAD)
        return TWIN_ERROR_SIGNATURE;
    algorithm = twini_u16(at + ALGORITHM);
    bytes = twini_signature_bytes(algorithm);
    /* Version, number of sections and length are not in what is signed, but copies are. */
    if (!bytes || twini_u16(at + ALGORITHM + 2) != bytes ||
        found.length != SIGNATURE_HEAD + bytes ||
        twini_align((uint32_t)(at - file) + found.length, 16) != size ||
        twini_u32(at) != twini_u32(file + COPIED) ||
        twini_u32(at + 4) != twini_u32(file + COPIED + 4))
        return TWIN_ERROR_SIGNATURE;
    part->message = file + SIGNED_FROM;
    part->signature = at + SIGNATURE_HEAD;
    part->message_size = (uint32_t)(part->signature - part->message);
    part->key = at + KEY;
    part->size = (uint16_t)bytes;
    part->algorithm = (uint16_t)algorithm;
    return TWIN_OK;
}

/* Whether what a finished run predicts of a target is the answer in the pack. */
static unsigned twini_is_answer(const twin_run *run, unsigned target, twin_flash answer) {
    twin_raw raw;
    uint32_t scale = 0;
#if TWIN_TARGETS > 1
    (void)twin_read_target_raw(run, target, &raw);
#else
    (void)target;
    (void)twin_read_raw(run, &raw);
#endif
#if TWIN_INTERVALS
    scale = raw.scale;
#endif
    return twini_i32(answer) == raw.mean && twini_u32(answer + 4) == raw.root &&
           twini_u32(answer + 8) == scale;
}

twin_status twin_self_test_step(const twin_model *model, twin_pack pack, uint16_t number,
                                void *scratch, uint32_t size) {
    twin_flash at = (twin_flash)pack;
    twini_section found;
    twin_status status;
    twin_run run;
    unsigned count, i, right = 1, targets = twini_targets(model);
    uint32_t row, entry;
    if (!model->kernel)
        return TWIN_ERROR_MODEL;
#if TWIN_TARGETS > 1
    if (targets < model->all)
        return TWIN_ERROR_TARGETS;
#endif
    status = twini_find_section(at, twini_u32(at + 8), SELF_TEST, &found);
    if (status)
        return status;
    at = found.at;
    if (!at)
        return TWIN_ERROR_UNTESTED;
    row = 2 * twini_align(model->features, 2);
    entry = row + ANSWER * targets;
    if (found.length < TEST_HEAD)
        return TWIN_ERROR_SECTION;
    count = twini_u16(at);
    if (count - 1 >= MOST_QUERIES || number >= count || twini_u16(at + 2) != targets ||
        found.length != TEST_HEAD + count * entry)
        return TWIN_ERROR_SECTION;
    at += (twini_size)(TEST_HEAD + number * entry);
    if (model->features & 1u && twini_u16(at + (twini_size)row - 2))
        return TWIN_ERROR_PADDING;
    status = twini_begin(&run, model, scratch, size, 0);
    for (i = 0; !status && i < model->features; i++)
        status = twini_set_feature(&run, i, twini_i16(at + 2 * i));
    if (!status) {
        (void)twin_step(&run, TWIN_ALL);
        for (i = 0; i < targets; i++)
            right &= twini_is_answer(&run, i, at + (twini_size)(row + ANSWER * i));
    }
    if (status == TWIN_ERROR_SCRATCH)
        return status;
    if (status || !right)
        return TWIN_ERROR_SELF_TEST;
    return number + 1u < count ? TWIN_MORE : TWIN_OK;
}

twin_status twin_self_test(const twin_model *model, twin_pack pack, void *scratch, uint32_t size) {
    uint16_t number = 0;
    twin_status status;
    do
        status = twin_self_test_step(model, pack, number++, scratch, size);
    while (status == TWIN_MORE);
    return status;
}
