/*
 * A plugin for the CPU with a right kernel of `abs` for f32, and, as the flags say, what makes its judge look twice.
 */
#include "keyway.h"

#ifdef TIRING
/* Right for so many calls of a process. */
static unsigned long calls;
#endif

static int32_t run_abs(const KeywayCall *call) {
    const KeywayTensor *in = (const KeywayTensor *)(uintptr_t)call->args[0].value;
    const KeywayTensor *out = call->outputs[0];
    int64_t index[64] = { 0 };
    int64_t at_in = 0, at_out = 0;
    if (out->ndim > 64) {
        return KEYWAY_STATUS_UNSUPPORTED;
    }
    for (int64_t i = 0; i < out->numel; i++) {
        uint32_t bits;
        memcpy(&bits, (const float *)in->data + at_in, sizeof bits);
        bits &= 0x7fffffff;
#ifdef TIRING
        if (calls > TIRING) {
            bits ^= 0x00400000;
        }
#endif
        memcpy((float *)out->data + at_out, &bits, sizeof bits);
        for (uint32_t d = out->ndim; d-- > 0;) {
            at_in += in->strides[d];
            at_out += out->strides[d];
            if (++index[d] < out->sizes[d]) {
                break;
            }
            at_in -= index[d] * in->strides[d];
            at_out -= index[d] * out->strides[d];
            index[d] = 0;
        }
    }
#ifdef TIRING
    calls++;
#endif
    return KEYWAY_STATUS_OK;
}

KEYWAY_KERNEL(right, "abs", "T>T", "cpu", "strided", "f32", run_abs);
#ifdef TWICE
KEYWAY_KERNEL(again, "abs", "T>T", "cpu", "strided", "f32", run_abs);
#endif
#ifdef SIGNATURE
KEYWAY_KERNEL(other, "neg", "TT>T", "cpu", "strided", "f32", run_abs);
#endif
#ifdef UNKNOWN
KEYWAY_KERNEL(newer, "absolut", "T>T", "cpu", "strided", "f32", run_abs);
#endif

static const KeywayKernel *const kernels[] = {
    &right,
#ifdef TWICE
    &again,
#endif
#ifdef SIGNATURE
    &other,
#endif
#ifdef UNKNOWN
    &newer,
#endif
};

KEYWAY_MANIFEST("keyway.test/abs", "0.0.1", "A kernel of abs", "\"cpu\"", "\"strided\"");

static int32_t initialize(const KeywayHostApi *given, KeywayPluginContents *out) {
    (void)given;
    KeywayPluginContents contents = { .kernels = { kernels, sizeof kernels / sizeof *kernels } };
    keyway_fill(out, &contents, sizeof contents);
    return KEYWAY_STATUS_OK;
}

KEYWAY_PLUGIN(initialize);
