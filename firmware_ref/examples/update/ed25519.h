/* Ed25519 (RFC 8032) as a twin_verifier, by Monocypher (https://monocypher.org, version 3.1 or 4):
 * add its monocypher.c and optional/monocypher-ed25519.c to the program. */

#ifndef ED25519_VERIFIER_H
#define ED25519_VERIFIER_H

#include "monocypher-ed25519.h"
#include "twin_release.h"

/* A twin_verifier; `context` is the public key, 32 bytes. */
static int ed25519_verify(void *context, const twin_signed *part) {
    return part->algorithm != TWIN_ED25519 ||
           crypto_ed25519_check(part->signature, (const uint8_t *)context, part->message,
                                part->message_size);
}

#endif
