/*
 * A plugin of which the tests compile many: sound ones whose tables are shorter or longer than the host's, and ones with
 * one fault each. What is compiled is said by macros:
 *   NAME    the plugin's name, which also ends the names of what it brings;
 *   SMALLER the optional ends of its tables are cut off, and the memory behind them is not the table's;
 *   LARGER  its tables have 64 bytes more than the host knows;
 *   FAULT   the number of a fault.
 */
#include "keyway.h"

#include <stdio.h>
#include <stdlib.h>

#ifndef FAULT
#define FAULT 0
#endif
#define IS(number) (FAULT == (number))
#define DEVICE "test.keyway/device-" NAME
#define LAYOUT "test.keyway/layout-" NAME

static const KeywayHostApi *host;

/* ---- Tables in memory of which more or less is theirs ---- */

#define STRANGE 0xa5

/* A copy of `table` of which the first `size` bytes are the table's; those behind are no addresses of anything. */
static void *placed(const void *table, size_t whole, size_t size) {
    unsigned char *memory = malloc(whole + 128);
    memset(memory, STRANGE, whole + 128);
    memcpy(memory, table, size < whole ? size : whole);
    uint32_t stated = (uint32_t)size;
    memcpy(memory, &stated, sizeof stated);
    return memory;
}

#if defined SMALLER
#define SIZE(type, first_optional) offsetof(type, first_optional)
#define WHOLE(type) sizeof(type)
#elif defined LARGER
#define SIZE(type, first_optional) (sizeof(type) + 64)
#define WHOLE(type) (sizeof(type) + 64)
#else
#define SIZE(type, first_optional) sizeof(type)
#define WHOLE(type) sizeof(type)
#endif

/* ---- Kernels ---- */

static int32_t twice(const KeywayCall *call) {
    if (IS(32)) {
        const KeywayArg strange = { 99, 0, 0 };
        KeywayTensorHandle made = NULL;
        uint32_t n_made = 0;
        return host->call_op((KeywayStr)KEYWAY_STR("other_" NAME), 1, &strange, 1, &made, &n_made);
    }
    const KeywayTensor *in = (const KeywayTensor *)(uintptr_t)call->args[0].value;
    const KeywayTensor *out = call->outputs[0];
    for (int64_t i = 0; i < out->numel; i++) {
        ((float *)out->data)[i] = 2 * ((const float *)in->data)[i];
    }
    return KEYWAY_STATUS_OK;
}

#if IS(1)
KEYWAY_RECORD(lost, KEYWAY_KERNEL_SECTION, "lost T>T cpu strided f32,");
#endif
#if IS(22)
#define SIGNATURE "TT>T"
#else
#define SIGNATURE "T>T"
#endif
#if IS(13)
KEYWAY_RECORD(keyway_manifest_, KEYWAY_MANIFEST_SECTION, "{\"name\":\"keyway.test/c\",\"version\":1}");
#else
KEYWAY_MANIFEST("keyway.test/" NAME, "1.0.0", "Compiled by a test", "\"cpu\"", "\"strided\"");
#endif
KEYWAY_KERNEL(on_cpu, "twice_" NAME, SIGNATURE, "cpu", "strided", "f32", twice);
KEYWAY_KERNEL(on_device, "twice_" NAME, SIGNATURE, DEVICE, "strided", "f32", twice);

/* ---- The device ---- */

static int32_t count(uint32_t *out) {
    *out = 1;
    return KEYWAY_STATUS_OK;
}

static int32_t properties(uint32_t index, KeywayDeviceProperties *out) {
    struct {
        KeywayDeviceProperties known;
        uint64_t later[8];
    } own;
    memset(&own, STRANGE, sizeof own);
    own.known.units = 7 + index;
    own.known.total_memory = 4096;
    own.known.flags = KEYWAY_DEVICE_FLAG_HOST_ACCESSIBLE;
    own.known.name = (KeywayStr)KEYWAY_STR("in C");
#if defined SMALLER
    keyway_fill(out, &own, offsetof(KeywayDeviceProperties, flags));
#elif defined LARGER
    keyway_fill(out, &own, sizeof own);
#else
    keyway_fill(out, &own, sizeof own.known);
#endif
    return KEYWAY_STATUS_OK;
}

static int32_t allocate(uint32_t index, uint64_t bytes, KeywayQueue stream, void **out) {
    (void)index, (void)stream;
    *out = aligned_alloc(64, (bytes + 64) / 64 * 64);
    return KEYWAY_STATUS_OK;
}

static int32_t release(uint32_t index, void *pointer, uint64_t bytes, KeywayQueue stream) {
    (void)index, (void)bytes, (void)stream;
    free(pointer);
    return KEYWAY_STATUS_OK;
}

static int32_t copy(uint32_t index, void *target, const void *source, uint64_t bytes, KeywayQueue stream) {
    (void)index, (void)stream;
    memcpy(target, source, bytes);
    return KEYWAY_STATUS_OK;
}

static int32_t copy_between(uint32_t target_index, void *target, KeywayQueue target_stream, uint32_t source_index,
                            const void *source, KeywayQueue source_stream, uint64_t bytes) {
    (void)target_index, (void)target_stream, (void)source_index, (void)source_stream;
    memcpy(target, source, bytes);
    return KEYWAY_STATUS_OK;
}

static const KeywayDeviceApi device = {
    .priority = 100,
    .name = KEYWAY_STR(DEVICE),
    .flags = KEYWAY_DEVICE_FLAG_HOST_ACCESSIBLE,
    .count = count,
    .properties = properties,
    .allocate = IS(6) ? NULL : allocate,
    .free = release,
    .copy_from_host = copy,
    .copy_to_host = copy,
    .copy_between = copy_between,
};

/* ---- A layout, ops, interposers ---- */

static const KeywayStr parts[] = { KEYWAY_STR("values") };
static const KeywayLayoutApi layout = {
    .precedence = 1,
    .n_components = 1,
    .name = KEYWAY_STR(LAYOUT),
    .components = IS(17) ? NULL : parts,
};

/* What the rule of the second op states wrongly. */
static int32_t wrong_rule(const KeywayCall *call) {
    static const int64_t sizes[] = { 3 };
    KeywayOutput stated = {
        .struct_size = sizeof stated,
        .ndim = IS(30) ? 1000000000u : 1,
        .sizes = sizes,
        .dtype = KEYWAY_DTYPE_F32,
        .format = IS(31) ? KEYWAY_MEMORY_FORMAT_LIKE : KEYWAY_MEMORY_FORMAT_CONTIGUOUS,
        .of = IS(31) ? 1 : 0,
    };
    return host->rule_output(call->context, 0, &stated);
}

static const KeywayOp op = { .schema = KEYWAY_STR("twice_" NAME "(Tensor self) -> Tensor") };
static const KeywayOp second = {
#if IS(18)
    .schema = KEYWAY_STR("no schema"),
#elif IS(19)
    .schema = KEYWAY_STR("twice_" NAME "(Tensor self, Tensor other) -> Tensor"),
#else
    .schema = KEYWAY_STR("other_" NAME "(Tensor self) -> Tensor"),
#endif
    .rule = IS(30) || IS(31) ? wrong_rule : NULL,
};

static int32_t watch(const KeywayInterposed *call) {
    uint32_t made = 0;
    return call->next(call->context, &made);
}

static const KeywayInterposer interposer = {
    .flags = KEYWAY_INTERPOSER_FLAG_DEFAULT_ON,
    .name = KEYWAY_STR("watch-" NAME),
    .run = IS(24) ? NULL : watch,
};

/* ---- The plugin ---- */

static int32_t initialize(const KeywayHostApi *given, KeywayPluginContents *out) {
    static const KeywayDeviceApi *devices[1];
    static const KeywayLayoutApi *layouts[1];
    static const KeywayOp *ops[2];
    static const KeywayKernel *kernels[2];
    static const KeywayInterposer *interposers[20];
    static const uint8_t garbled[] = { 0xff, 0xfe };
    struct {
        KeywayPluginContents known;
        uint64_t later[8];
    } own;
    host = given;
    if (IS(16)) {
        host->set_error((KeywayStr)KEYWAY_STR("told to fail in C"));
        return KEYWAY_STATUS_FAILED;
    }

    size_t device_size = IS(7) ? offsetof(KeywayDeviceApi, copy_between) : SIZE(KeywayDeviceApi, stream_create);
    devices[0] = placed(&device, WHOLE(KeywayDeviceApi), device_size);
    /* These have no optional end yet. */
    size_t more = WHOLE(KeywayOp) - sizeof(KeywayOp);
    layouts[0] = placed(&layout, sizeof layout, sizeof layout + more);
    ops[0] = placed(&op, sizeof op, sizeof op + more);
    ops[1] = placed(&second, sizeof second, sizeof second + more);

    KeywayKernel kernel = on_cpu;
    if (IS(4)) {
        kernel.run = NULL;
    }
    if (IS(5)) {
        kernel.op = (KeywayStr){ garbled, sizeof garbled };
    }
    if (IS(23)) {
        kernel.dtype = (KeywayStr)KEYWAY_STR("");
    }
    kernels[0] = placed(&kernel, sizeof kernel, IS(3) ? 8 : IS(21) ? UINT32_MAX : sizeof kernel + more);
    kernels[1] = placed(&on_device, sizeof on_device, sizeof on_device + more);
    for (size_t i = 0; i < 20; i++) {
        /* The first has the plain name; no two have the same. */
        static char names[20][64];
        KeywayInterposer one = interposer;
        if (i > 0) {
            one.name.len = (size_t)snprintf(names[i], sizeof names[i], "watch-" NAME "-%zu", i);
            one.name.ptr = (const uint8_t *)names[i];
        }
        interposers[i] = placed(&one, sizeof one, sizeof one + more);
    }

    memset(&own, 0, sizeof own);
    memset(own.later, STRANGE, sizeof own.later);
    own.known.devices = (KeywayDeviceList){ devices, 1 };
    own.known.layouts = (KeywayLayoutList){ layouts, 1 };
    own.known.ops = (KeywayOpList){ ops, 2 };
    own.known.kernels = (KeywayKernelList){ kernels, IS(2) ? 1 : 2 };
    own.known.interposers = (KeywayInterposerList){ interposers, IS(20) ? 20 : 1 };
    if (IS(11)) {
        own.known.kernels = (KeywayKernelList){ NULL, 2 };
    }
    if (IS(12)) {
        own.known.devices.len = SIZE_MAX;
    }
#if IS(25) || IS(26) || IS(27) || IS(28)
    /* By hand, with another size than that of what is written. */
    memcpy(out, &own, sizeof own.known);
    memset((unsigned char *)out + offsetof(KeywayPluginContents, interposers), STRANGE,
           sizeof own.known - offsetof(KeywayPluginContents, interposers));
    out->struct_size = IS(25) ? 0 : IS(26) ? 4000 : IS(27) ? 71 : 72;
#elif defined SMALLER
    keyway_fill(out, &own, offsetof(KeywayPluginContents, interposers));
#elif defined LARGER
    keyway_fill(out, &own, sizeof own);
#else
    keyway_fill(out, &own, sizeof own.known);
#endif
    return KEYWAY_STATUS_OK;
}

#if IS(8) || IS(9) || IS(10) || IS(14) || IS(15) || IS(29)
static const KeywayPluginApi api = { sizeof api, IS(29) ? 7 : 1, IS(10) ? NULL : initialize };

static uint32_t negotiate(uint32_t least, uint32_t most) {
    (void)least;
    return IS(14) ? 9 : most;
}

static const void *get_interface(uint32_t id, uint32_t version) {
    (void)id, (void)version;
    return IS(15) ? NULL : &api;
}

const KeywayEntryPoint keyway_plugin_v1 = {
    IS(8) ? 8 : sizeof keyway_plugin_v1, 0, IS(9) ? NULL : negotiate, get_interface,
};
#else
KEYWAY_PLUGIN(initialize);
#endif
