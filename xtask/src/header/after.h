
/* The entry of this library; defined by KEYWAY_PLUGIN. */
extern __attribute__((visibility("default"))) const KeywayEntryPoint keyway_plugin_v1;

/* A KeywayStr of a string literal, as an initialiser. */
#define KEYWAY_STR(literal) { (const uint8_t *)(literal), sizeof(literal) - 1 }

/* Whether a table of the other side is long enough to have this field. */
#define KEYWAY_HAS(table, field) \
    ((const char *)&(table)->field + sizeof((table)->field) <= (const char *)(table) + (table)->struct_size)

/*
 * Writes `value`, a structure of `size` bytes, to a structure of the host as far as that goes, and there the size that
 * was written: for KeywayPluginContents, KeywayDeviceProperties and KeywayMemoryStats.
 */
static inline void keyway_fill(void *out, const void *value, uint32_t size) {
    uint32_t theirs;
    memcpy(&theirs, out, sizeof theirs);
    if (size > theirs) {
        size = theirs;
    }
    memcpy(out, value, size);
    if (size >= sizeof size) {
        memcpy(out, &size, sizeof size);
    }
}

#ifdef __APPLE__
#define KEYWAY_MANIFEST_SECTION "__DATA,__keyway"
#define KEYWAY_KERNEL_SECTION "__DATA,__keyway_k"
#else
#define KEYWAY_MANIFEST_SECTION ".note.keyway"
#define KEYWAY_KERNEL_SECTION ".note.keyway.k"
#endif

/* One record: a mark, the length of the text, the text, and zero bytes up to a multiple of 4. */
#define KEYWAY_RECORD(variable, where, literal)                                                                        \
    static const struct {                                                                                              \
        uint8_t mark[8];                                                                                               \
        uint8_t length[4];                                                                                             \
        char text[(sizeof(literal) + 3) / 4 * 4];                                                                      \
    } variable __attribute__((used, section(where), aligned(4))) = {                                                   \
        { 'K', 'E', 'Y', 'W', 'A', 'Y', 0, 1 },                                                                        \
        { (sizeof(literal) - 1) & 255, (sizeof(literal) - 1) >> 8 & 255, (sizeof(literal) - 1) >> 16 & 255, 0 },       \
        literal                                                                                                        \
    }

#define KEYWAY_TEXT_OF(value) #value
#define KEYWAY_TEXT(value) KEYWAY_TEXT_OF(value)

/* The processor level that the compiler was told to build for, and the features that its code may then use. */
#if defined(__x86_64__) && defined(__AVX512F__)
#define KEYWAY_VARIANT "x86-64-v4"
#define KEYWAY_CPU_FEATURES "\"avx512f\",\"avx2\",\"avx\",\"fma\",\"sse4.2\""
#elif defined(__x86_64__) && defined(__AVX2__)
#define KEYWAY_VARIANT "x86-64-v3"
#define KEYWAY_CPU_FEATURES "\"avx2\",\"avx\",\"fma\",\"sse4.2\""
#elif defined(__x86_64__) && defined(__SSE4_2__)
#define KEYWAY_VARIANT "x86-64-v2"
#define KEYWAY_CPU_FEATURES "\"sse4.2\""
#elif defined(__x86_64__)
#define KEYWAY_VARIANT "x86-64"
#define KEYWAY_CPU_FEATURES ""
#elif defined(__aarch64__)
#define KEYWAY_VARIANT "aarch64"
#define KEYWAY_CPU_FEATURES ""
#else
#define KEYWAY_VARIANT "generic"
#define KEYWAY_CPU_FEATURES ""
#endif

/*
 * What the library says of itself, read without running it. Once in a library, at file scope. All are string literals
 * without quotes inside, but for the lists of names, which have them. The name is `domain/name`, by a domain of yours:
 *
 *     KEYWAY_MANIFEST("example.org/fast", "1.0.0", "A faster exp", "\"cpu\"", "\"strided\"");
 *
 * KEYWAY_MANIFEST_WITH takes besides the priority (0 is usual; of two plugins that bring a kernel for one key, the higher
 * wins) and the names of the plugins whose device memory the kernels can use.
 */
#define KEYWAY_MANIFEST(name, version, description, devices, layouts)                                                  \
    KEYWAY_MANIFEST_WITH(name, version, description, devices, layouts, 0, "")
#define KEYWAY_MANIFEST_WITH(name, version, description, devices, layouts, priority, compatible_with)                  \
    KEYWAY_RECORD(keyway_manifest_, KEYWAY_MANIFEST_SECTION,                                                           \
                  "{\"name\":\"" name "\",\"version\":\"" version "\",\"description\":\"" description                  \
                  "\",\"devices\":[" devices "],\"layouts\":[" layouts "],\"compatible_with\":[" compatible_with       \
                  "],\"priority\":" KEYWAY_TEXT(priority) ",\"sdk\":\"keyway.h\",\"abi_min\":"                         \
                  KEYWAY_TEXT(KEYWAY_ABI_MIN) ",\"abi_max\":" KEYWAY_TEXT(KEYWAY_ABI_MAX)                              \
                  ",\"variant\":\"" KEYWAY_VARIANT "\",\"cpu_features\":[" KEYWAY_CPU_FEATURES "]}")

/*
 * Defines `variable`, the table of one kernel, and the record by which the host knows of it: it compares
 * the records with what `initialize` hands over. All but `variable` and
 * `function` are string literals:
 *
 *     KEYWAY_KERNEL(exp_f32, "exp", "T>T", "cpu", "strided", "f32", run_exp);
 */
#define KEYWAY_KERNEL(variable, op, signature, device, layout, dtype, function)                                        \
    KEYWAY_RECORD(variable##_record, KEYWAY_KERNEL_SECTION,                                                            \
                  op " " signature " " device " " layout " " dtype ",");                                              \
    static const KeywayKernel variable = {                                                                             \
        sizeof(KeywayKernel), 0,                   KEYWAY_STR(op),    KEYWAY_STR(signature),                           \
        KEYWAY_STR(device),   KEYWAY_STR(layout), KEYWAY_STR(dtype), function,                                         \
    }

/*
 * Exports the library's entry. `function` is `int32_t (const KeywayHostApi *, KeywayPluginContents *)`; the host calls
 * it once, first. Once in a library, at file scope.
 */
#define KEYWAY_PLUGIN(function)                                                                                        \
    static const KeywayPluginApi keyway_api_ = { sizeof(KeywayPluginApi), KEYWAY_ABI_MAX, function };                  \
    static uint32_t keyway_negotiate_(uint32_t host_min, uint32_t host_max) {                                          \
        uint32_t best = host_max < KEYWAY_ABI_MAX ? host_max : KEYWAY_ABI_MAX;                                         \
        return best >= host_min && best >= KEYWAY_ABI_MIN ? best : 0;                                                  \
    }                                                                                                                  \
    static const void *keyway_get_interface_(uint32_t id, uint32_t version) {                                          \
        int known = id == KEYWAY_INTERFACE_PLUGIN && version >= KEYWAY_ABI_MIN && version <= KEYWAY_ABI_MAX;           \
        return known ? &keyway_api_ : NULL;                                                                            \
    }                                                                                                                  \
    const KeywayEntryPoint keyway_plugin_v1 = {                                                                        \
        sizeof(KeywayEntryPoint), 0, keyway_negotiate_, keyway_get_interface_,                                         \
    }

#ifdef __cplusplus
}
#endif

#endif
