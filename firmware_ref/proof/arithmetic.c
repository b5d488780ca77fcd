/* The building blocks of FORMAT.md, section 8, for all numbers that they may get: no overflow, no
 * shift out of range, and results within the bounds of section 9. */

#include "proof.h"

#include "twin_arith.h"

void main(void) {
    int32_t any = (int32_t)ANY(0, UINT32_MAX);
    int32_t multiplier = (int32_t)ANY(0, 32767), product, z, estimate;
    uint8_t shift = (uint8_t)ANY(0, 30);
    //@ split shift;
    product = twini_mulw(any, multiplier);
    //@ assert -0x40000000 <= product < 0x40000000;
    product = twini_rsh(product, shift);
    estimate = product + Frama_C_interval(-0x3FFFFFFF, 0x3FFFFFFF);
    z = twini_sat(product);
    //@ assert -32767 <= z <= 32767;
    Frama_C_show_each_end(z, estimate);
}
