/*
 * A plugin for the CPU with the mistakes that a plugin's author makes in names, which the host can see only once all plugins
 * are loaded. MISTAKE says which.
 */
#include "keyway.h"

static int32_t nothing(const KeywayCall *call) {
    (void)call;
    return KEYWAY_STATUS_FAILED;
}

#define OP_UNKNOWN 1
#define DTYPE_UNKNOWN 2
#define DEVICE_UNKNOWN 3
#define TWICE 4
#define LAYOUT_UNKNOWN 5
#define INTERPOSER 6
#define BACKWARD 7
#define NONE 8
#define CLAIM 9
#define FORMAT_OP 10
#define FORMAT_DEVICE 11
#define FORMAT_LAYOUT 12
#define FORMAT_KERNEL 13
#define FORMAT_COST 14
#define FORMAT_ROW_MAJOR 15
#define FORMAT_TWICE 16

#if MISTAKE == OP_UNKNOWN
KEYWAY_KERNEL(first, "absolut", "T>T", "cpu", "strided", "f32", nothing);
KEYWAY_KERNEL(second, "absolut", "T>T", "cpu", "strided", "f64", nothing);
#elif MISTAKE == DTYPE_UNKNOWN
KEYWAY_KERNEL(first, "abs", "T>T", "cpu", "strided", "f23", nothing);
KEYWAY_KERNEL(second, "neg", "T>T", "cpu", "strided", "f23", nothing);
#elif MISTAKE == DEVICE_UNKNOWN
KEYWAY_KERNEL(first, "abs", "T>T", "cuda", "strided", "f32", nothing);
KEYWAY_KERNEL(second, "abs", "T>T", "cuda", "strided", "f64", nothing);
#elif MISTAKE == TWICE
KEYWAY_KERNEL(first, "abs", "T>T", "cpu", "strided", "f32", nothing);
KEYWAY_KERNEL(second, "abs", "T>T", "cpu", "strided", "f32", nothing);
#elif MISTAKE == LAYOUT_UNKNOWN
KEYWAY_KERNEL(first, "abs", "T>T", "cpu", "stridden", "f32", nothing);
KEYWAY_KERNEL(second, "abs", "T>T", "cpu", "stridden", "f64", nothing);
#else
KEYWAY_KERNEL(first, "abs", "T>T", "cpu", "strided", "f32", nothing);
KEYWAY_KERNEL(second, "abs", "T>T", "cpu", "strided", "f64", nothing);
#endif
static const KeywayKernel *const kernels[] = { &first, &second };

#if MISTAKE == INTERPOSER
static int32_t watch(const KeywayInterposed *call) {
    uint32_t made = 0;
    return call->next(call->context, &made);
}

static const KeywayStr watched[] = { KEYWAY_STR("abs"), KEYWAY_STR("expp"), KEYWAY_STR("conf*") };
static const KeywayInterposer interposer = {
    .struct_size = sizeof(KeywayInterposer),
    .flags = KEYWAY_INTERPOSER_FLAG_DEFAULT_ON,
    .name = KEYWAY_STR("watch-mistaken"),
    .ops = watched,
    .n_ops = 3,
    .run = watch,
};
static const KeywayInterposer *const interposers[] = { &interposer };
#elif MISTAKE == BACKWARD
static const KeywayOp same = {
    .struct_size = sizeof(KeywayOp),
    .elementwise = 1,
    .saves = 1,
    .schema = KEYWAY_STR("mistaken_same(Tensor self) -> Tensor"),
    .backward = KEYWAY_STR("mistaken_same_backwrd"),
};
static const KeywayOp same_backward = {
    .struct_size = sizeof(KeywayOp),
    .elementwise = 3,
    .schema = KEYWAY_STR("mistaken_same_backward(Tensor grad, Tensor self) -> Tensor"),
};
static const KeywayOp *const ops[] = { &same, &same_backward };
#endif

#if MISTAKE >= FORMAT_OP
#include <math.h>
static const KeywayPreference preference = {
    .struct_size = sizeof(KeywayPreference),
#if MISTAKE == FORMAT_OP
    .op = KEYWAY_STR("abss"),
#elif MISTAKE == FORMAT_KERNEL
    .op = KEYWAY_STR("exp"),
#else
    .op = KEYWAY_STR("abs"),
#endif
#if MISTAKE == FORMAT_DEVICE
    .device = KEYWAY_STR("cuda"),
#else
    .device = KEYWAY_STR("cpu"),
#endif
#if MISTAKE == FORMAT_LAYOUT
    .format = KEYWAY_STR("channels_lost"),
#elif MISTAKE == FORMAT_ROW_MAJOR
    .format = KEYWAY_STR("strided"),
#else
    .format = KEYWAY_STR("channels_last"),
#endif
#if MISTAKE == FORMAT_COST
    .cost = NAN,
#else
    .cost = 0.5,
#endif
};
#if MISTAKE == FORMAT_TWICE
static const KeywayPreference second_preference = {
    .struct_size = sizeof(KeywayPreference),
    .op = KEYWAY_STR("abs"),
    .device = KEYWAY_STR("cpu"),
    .format = KEYWAY_STR("channels_last"),
    .cost = 0.6,
};
static const KeywayPreference *const preferences[] = { &preference, &second_preference };
#else
static const KeywayPreference *const preferences[] = { &preference };
#endif
#endif

#if MISTAKE == CLAIM
#define DEVICES "\"cpu\", \"acme.example/npu\""
#else
#define DEVICES "\"cpu\""
#endif
#ifndef NAME
#define NAME "keyway.test/mistaken"
#define VERSION "0.0.1"
#endif
KEYWAY_MANIFEST(NAME, VERSION, "Mistakes in names", DEVICES, "\"strided\"");

static int32_t initialize(const KeywayHostApi *given, KeywayPluginContents *out) {
    (void)given;
    KeywayPluginContents contents = { .kernels = { kernels, sizeof kernels / sizeof *kernels } };
#if MISTAKE == INTERPOSER
    contents.interposers = (KeywayInterposerList){ interposers, 1 };
#elif MISTAKE >= FORMAT_OP
    contents.preferences = (KeywayPreferenceList){ preferences, sizeof preferences / sizeof *preferences };
#elif MISTAKE == BACKWARD
    contents.ops = (KeywayOpList){ ops, 2 };
#endif
    keyway_fill(out, &contents, sizeof contents);
    return KEYWAY_STATUS_OK;
}

KEYWAY_PLUGIN(initialize);
