/*
 * A Keyway plugin in plain C:
 *   - a new op, `axpby(self, other, alpha, beta)`, with a kernel for the CPU that makes no temporaries;
 *   - a device, `example.org/c-device`, whose memory the host can read, with kernels to add, multiply and copy there.
 */
#include "keyway.h"

#include <stdlib.h>

static const KeywayHostApi *host;

/* Gives the message of a status to the host. */
static int32_t fail(int32_t status, const char *message) {
    KeywayStr text = { (const uint8_t *)message, strlen(message) };
    host->set_error(text);
    return status;
}

/* ---- Kernels ---- */

static const KeywayTensor *tensor(const KeywayCall *call, uint32_t index) {
    return (const KeywayTensor *)(uintptr_t)call->args[index].value;
}

/* A number that the caller gave as an integer or as a float. */
static double number(const KeywayCall *call, uint32_t index) {
    const KeywayArg *arg = &call->args[index];
    double value;
    if (arg->tag == KEYWAY_TAG_INT) {
        return (double)(int64_t)arg->value;
    }
    memcpy(&value, &arg->value, sizeof value);
    return value;
}

typedef float (*Function)(float a, float b, double alpha, double beta);

/*
 * Calls `function` on each element of two inputs of the output's sizes. Strides are in elements and may be 0, where one
 * value stands for many; a tensor has any number of dimensions.
 */
static int32_t elementwise(const KeywayCall *call, const KeywayTensor *a, const KeywayTensor *b, Function function,
                           double alpha, double beta) {
    const KeywayTensor *out = call->outputs[0];
    int64_t index[64] = { 0 };
    int64_t at_a = 0, at_b = 0, at_out = 0;
    if (out->ndim > 64) {
        return fail(KEYWAY_STATUS_UNSUPPORTED, "tensors of at most 64 dimensions are served");
    }
    for (int64_t i = 0; i < out->numel; i++) {
        float x = ((const float *)a->data)[at_a];
        float y = ((const float *)b->data)[at_b];
        ((float *)out->data)[at_out] = function(x, y, alpha, beta);
        /* The next index in row-major order. */
        for (uint32_t d = out->ndim; d-- > 0;) {
            at_a += a->strides[d];
            at_b += b->strides[d];
            at_out += out->strides[d];
            if (++index[d] < out->sizes[d]) {
                break;
            }
            at_a -= index[d] * a->strides[d];
            at_b -= index[d] * b->strides[d];
            at_out -= index[d] * out->strides[d];
            index[d] = 0;
        }
    }
    return KEYWAY_STATUS_OK;
}

static float weighted(float a, float b, double alpha, double beta) {
    return (float)(alpha * a + beta * b);
}

static float product(float a, float b, double alpha, double beta) {
    (void)alpha, (void)beta;
    return a * b;
}

static float first(float a, float b, double alpha, double beta) {
    (void)b, (void)alpha, (void)beta;
    return a;
}

static int32_t run_axpby(const KeywayCall *call) {
    return elementwise(call, tensor(call, 0), tensor(call, 1), weighted, number(call, 2), number(call, 3));
}

static int32_t run_add(const KeywayCall *call) {
    return elementwise(call, tensor(call, 0), tensor(call, 1), weighted, 1, number(call, 2));
}

static int32_t run_mul(const KeywayCall *call) {
    return elementwise(call, tensor(call, 0), tensor(call, 1), product, 0, 0);
}

/* clone(self, memory_format): the output is already in its format. */
static int32_t run_clone(const KeywayCall *call) {
    return elementwise(call, tensor(call, 0), tensor(call, 0), first, 0, 0);
}

KEYWAY_KERNEL(axpby_cpu, "axpby", "TTss>T", "cpu", "strided", "f32", run_axpby);
KEYWAY_KERNEL(add_own, "add", "TTs>T", "example.org/c-device", "strided", "f32", run_add);
KEYWAY_KERNEL(mul_own, "mul", "TT>T", "example.org/c-device", "strided", "f32", run_mul);
KEYWAY_KERNEL(clone_own, "clone", "TS>T", "example.org/c-device", "strided", "f32", run_clone);

/* Without a rule its output is like argument 0; without a backward op it has no derivative. */
static const KeywayOp axpby = {
    .struct_size = sizeof(KeywayOp),
    .schema = KEYWAY_STR("axpby(Tensor self, Tensor other, Scalar alpha=1, Scalar beta=1) -> Tensor"),
};

/* ---- The device ---- */

static int32_t count(uint32_t *out) {
    *out = 1;
    return KEYWAY_STATUS_OK;
}

static int32_t properties(uint32_t index, KeywayDeviceProperties *out) {
    KeywayDeviceProperties own = {
        .units = 1, .flags = KEYWAY_DEVICE_FLAG_HOST_ACCESSIBLE, .name = KEYWAY_STR("a device in C"),
    };
    (void)index;
    keyway_fill(out, &own, sizeof own);
    return KEYWAY_STATUS_OK;
}

static int32_t allocate(uint32_t index, uint64_t bytes, KeywayQueue stream, void **out) {
    (void)index, (void)stream;
    /* aligned_alloc wants a multiple of the alignment. */
    *out = bytes > SIZE_MAX - 64 ? NULL : aligned_alloc(64, (bytes + 63) / 64 * 64);
    return *out || bytes == 0 ? KEYWAY_STATUS_OK : fail(KEYWAY_STATUS_OUT_OF_MEMORY, "the system has no more memory");
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

/* What is not named here is NULL: this device has no streams and keeps no statistics. */
static const KeywayDeviceApi device = {
    .struct_size = sizeof(KeywayDeviceApi),
    .priority = 100,
    .name = KEYWAY_STR("example.org/c-device"),
    .flags = KEYWAY_DEVICE_FLAG_HOST_ACCESSIBLE,
    .count = count,
    .properties = properties,
    .allocate = allocate,
    .free = release,
    .copy_from_host = copy,
    .copy_to_host = copy,
    .copy_between = copy_between,
};

/* ---- The plugin ---- */

KEYWAY_MANIFEST("example.org/c-plugin", "1.0.0", "A plugin in plain C", "\"cpu\",\"example.org/c-device\"",
                "\"strided\"");

static const KeywayKernel *const kernels[] = { &axpby_cpu, &add_own, &mul_own, &clone_own };
static const KeywayOp *const ops[] = { &axpby };
static const KeywayDeviceApi *const devices[] = { &device };

static int32_t initialize(const KeywayHostApi *given, KeywayPluginContents *out) {
    KeywayPluginContents contents = {
        .devices = { devices, 1 },
        .ops = { ops, 1 },
        .kernels = { kernels, sizeof kernels / sizeof *kernels },
    };
    host = given;
    keyway_fill(out, &contents, sizeof contents);
    return KEYWAY_STATUS_OK;
}

KEYWAY_PLUGIN(initialize);
