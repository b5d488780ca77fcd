/* HMAC-SHA-256 (RFC 2104, FIPS 180-4) as a twin_verifier, for parts where Ed25519 is too large. The
 * device holds the secret key, so whoever reads its flash can sign: where that matters, use
 * ed25519.h. */

#ifndef HMAC_SHA256_H
#define HMAC_SHA256_H

#include "twin_release.h"

enum { SHA256_BLOCK = 64, SHA256_BYTES = 32 };

typedef struct sha256 {
    uint32_t state[8];
    uint32_t size; /* of the message so far, below 2^29 */
    uint8_t block[SHA256_BLOCK];
} sha256;

static uint32_t sha256_turned(uint32_t word, unsigned right) {
    return word >> right | word << (32 - right);
}

static const uint32_t sha256_rounds[64] = {
    0x428a2f98u, 0x71374491u, 0xb5c0fbcfu, 0xe9b5dba5u, 0x3956c25bu, 0x59f111f1u, 0x923f82a4u,
    0xab1c5ed5u, 0xd807aa98u, 0x12835b01u, 0x243185beu, 0x550c7dc3u, 0x72be5d74u, 0x80deb1feu,
    0x9bdc06a7u, 0xc19bf174u, 0xe49b69c1u, 0xefbe4786u, 0x0fc19dc6u, 0x240ca1ccu, 0x2de92c6fu,
    0x4a7484aau, 0x5cb0a9dcu, 0x76f988dau, 0x983e5152u, 0xa831c66du, 0xb00327c8u, 0xbf597fc7u,
    0xc6e00bf3u, 0xd5a79147u, 0x06ca6351u, 0x14292967u, 0x27b70a85u, 0x2e1b2138u, 0x4d2c6dfcu,
    0x53380d13u, 0x650a7354u, 0x766a0abbu, 0x81c2c92eu, 0x92722c85u, 0xa2bfe8a1u, 0xa81a664bu,
    0xc24b8b70u, 0xc76c51a3u, 0xd192e819u, 0xd6990624u, 0xf40e3585u, 0x106aa070u, 0x19a4c116u,
    0x1e376c08u, 0x2748774cu, 0x34b0bcb5u, 0x391c0cb3u, 0x4ed8aa4au, 0x5b9cca4fu, 0x682e6ff3u,
    0x748f82eeu, 0x78a5636fu, 0x84c87814u, 0x8cc70208u, 0x90befffau, 0xa4506cebu, 0xbef9a3f7u,
    0xc67178f2u};

static void sha256_begin(sha256 *hash) {
    static const uint32_t first[8] = {0x6a09e667u, 0xbb67ae85u, 0x3c6ef372u, 0xa54ff53au,
                                      0x510e527fu, 0x9b05688cu, 0x1f83d9abu, 0x5be0cd19u};
    unsigned i;
    for (i = 0; i < 8; i++)
        hash->state[i] = first[i];
    hash->size = 0;
}

static void sha256_add_block(sha256 *hash) {
    uint32_t words[16], v[8];
    unsigned i;
    for (i = 0; i < 16; i++) {
        const uint8_t *at = hash->block + 4 * i;
        words[i] = (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
    }
    for (i = 0; i < 8; i++)
        v[i] = hash->state[i];
    for (i = 0; i < 64; i++) {
        uint32_t *word = words + i % 16, a, b;
        if (i >= 16) {
            a = words[(i + 1) % 16];
            b = words[(i + 14) % 16];
            *word += words[(i + 9) % 16] + (sha256_turned(a, 7) ^ sha256_turned(a, 18) ^ a >> 3) +
                     (sha256_turned(b, 17) ^ sha256_turned(b, 19) ^ b >> 10);
        }
        a = v[7] + sha256_rounds[i] + *word + (v[6] ^ (v[4] & (v[5] ^ v[6]))) +
            (sha256_turned(v[4], 6) ^ sha256_turned(v[4], 11) ^ sha256_turned(v[4], 25));
        b = ((v[0] & v[1]) | (v[2] & (v[0] | v[1]))) +
            (sha256_turned(v[0], 2) ^ sha256_turned(v[0], 13) ^ sha256_turned(v[0], 22));
        v[7] = v[6];
        v[6] = v[5];
        v[5] = v[4];
        v[4] = v[3] + a;
        v[3] = v[2];
        v[2] = v[1];
        v[1] = v[0];
        v[0] = a + b;
    }
    for (i = 0; i < 8; i++)
        hash->state[i] += v[i];
}

static void sha256_add_byte(sha256 *hash, uint8_t byte) {
    hash->block[hash->size++ % SHA256_BLOCK] = byte;
    if (hash->size % SHA256_BLOCK == 0)
        sha256_add_block(hash);
}

static void sha256_end(sha256 *hash, uint8_t *bytes) {
    uint32_t bits = 8 * hash->size;
    unsigned i;
    sha256_add_byte(hash, 0x80);
    while (hash->size % SHA256_BLOCK != SHA256_BLOCK - 8)
        sha256_add_byte(hash, 0);
    for (i = 0; i < 4; i++) /* the length has 64 bits, and the first of them are zero */
        sha256_add_byte(hash, 0);
    for (i = 4; i--;)
        sha256_add_byte(hash, (uint8_t)(bits >> 8 * i));
    for (i = 0; i < SHA256_BYTES; i++)
        bytes[i] = (uint8_t)(hash->state[i / 4] >> (24 - 8 * (i % 4)));
}

/* A secret key of 32 bytes. */
typedef struct hmac_key {
    uint8_t bytes[SHA256_BYTES];
} hmac_key;

static void hmac_begin(sha256 *hash, const hmac_key *key, uint8_t pad) {
    unsigned i;
    sha256_begin(hash);
    for (i = 0; i < SHA256_BLOCK; i++)
        sha256_add_byte(hash, (uint8_t)(pad ^ (i < sizeof key->bytes ? key->bytes[i] : 0)));
}

/* A twin_verifier; `context` is the key. Every byte is compared, however many are wrong: the time
 * must not say how many are right. */
static int hmac_verify(void *context, const twin_signed *part) {
    const hmac_key *key = (const hmac_key *)context;
    uint8_t bytes[SHA256_BYTES], wrong = 0;
    sha256 hash;
    uint32_t i;
    if (part->algorithm != TWIN_HMAC_SHA256)
        return 1;
    hmac_begin(&hash, key, 0x36);
    for (i = 0; i < part->message_size; i++)
        sha256_add_byte(&hash, part->message[i]);
    sha256_end(&hash, bytes);
    hmac_begin(&hash, key, 0x5c);
    for (i = 0; i < SHA256_BYTES; i++)
        sha256_add_byte(&hash, bytes[i]);
    sha256_end(&hash, bytes);
    for (i = 0; i < SHA256_BYTES; i++)
        wrong |= (uint8_t)(bytes[i] ^ part->signature[i]);
    return wrong;
}

#endif
