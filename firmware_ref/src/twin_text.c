/* A line of text for each status. */

#include "twin.h"

#if TWIN_TEXT

const char *twin_text(twin_status status) {
    switch (status) {
    case TWIN_OK:
        return "all is well";
    case TWIN_MORE:
        return "not done yet";
    case TWIN_ERROR_TRUNCATED:
        return "the end of the pack is missing";
    case TWIN_ERROR_LENGTH:
        return "the pack is longer than its header says";
    case TWIN_ERROR_MAGIC:
        return "not a .twin pack";
    case TWIN_ERROR_VERSION:
        return "a pack of another version";
    case TWIN_ERROR_HEADER_CRC:
        return "the pack is damaged: checksum of the header";
    case TWIN_ERROR_BODY_CRC:
        return "the pack is damaged: checksum of the content";
    case TWIN_ERROR_HEADER:
        return "the header describes no network that could be";
    case TWIN_ERROR_SECTION:
        return "a section of the pack is missing or not as it must be";
    case TWIN_ERROR_PADDING:
        return "bytes of the pack that must be zero are not";
    case TWIN_ERROR_VALUE:
        return "a number is out of its range";
    case TWIN_ERROR_OVERFLOW:
        return "a sum in the network could overflow";
    case TWIN_ERROR_ALIGNMENT:
        return "a pack must start at a multiple of 4";
    case TWIN_ERROR_UNSUPPORTED:
        return "the pack needs what twin_config.h leaves out";
    case TWIN_ERROR_SCRATCH:
        return "less scratch than twin_scratch_size says";
    case TWIN_ERROR_QUERY:
        return "a feature of the query is not a number";
    case TWIN_ERROR_MODEL:
        return "the model is not open";
    case TWIN_ERROR_EARLY:
        return "nothing was evaluated yet";
    case TWIN_ERROR_LEVEL:
        return "the pack has no intervals of that coverage";
    case TWIN_ERROR_TARGET:
        return "the measured value is not a number, or far too large";
    case TWIN_ERROR_STORE:
        return "no store can be made of this storage and memory";
    case TWIN_ERROR_OTHER:
        return "the points in the store have other columns or another target";
    case TWIN_ERROR_FULL:
        return "the store has no room for another point";
    case TWIN_ERROR_STORAGE:
        return "the store could not be read, erased or programmed";
    case TWIN_ERROR_UNSIGNED:
        return "the pack is not signed";
    case TWIN_ERROR_SIGNATURE:
        return "the signature is not of this pack, or of no known key";
    case TWIN_ERROR_IDENTITY:
        return "the pack does not say what it is";
    case TWIN_ERROR_UNTESTED:
        return "the pack has no self-test";
    case TWIN_ERROR_SELF_TEST:
        return "the pack does not answer as it must";
    case TWIN_ERROR_SCHEMA:
        return "the pack has other columns or targets than the one in use";
    case TWIN_ERROR_COUNTER:
        return "the pack is older than what is still accepted";
    case TWIN_ERROR_TRIAL:
        return "a pack is on trial, or none is";
    case TWIN_ERROR_TARGETS:
        return "the pack has fewer targets, or more";
    }
    return "unknown status";
}

#endif
