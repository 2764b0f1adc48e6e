/* CRC-32C (Castagnoli), as in RFC 3720, appendix B.4. */
#include "native.h"

#include <string.h>

#if defined(__x86_64__) && defined(__GNUC__)
#include <nmmintrin.h>
#define HAS_INSTRUCTION 1
#else
#define HAS_INSTRUCTION 0
#endif

static const uint32_t REVERSED_POLYNOMIAL = 0x82f63b78;

/* SLICES[k][b]: the register after byte b and k zero bytes, so that eight bytes take eight independent look-ups. */
static uint32_t SLICES[8][256];
static bool use_instruction = false;

void crc32c_prepare(void) {
    for (uint32_t b = 0; b < 256; b++) {
        uint32_t crc = b;
        for (int bit = 0; bit < 8; bit++) {
            crc = crc & 1 ? crc >> 1 ^ REVERSED_POLYNOMIAL : crc >> 1;
        }
        SLICES[0][b] = crc;
    }
    for (uint32_t b = 0; b < 256; b++) {
        for (int k = 1; k < 8; k++) {
            SLICES[k][b] = SLICES[k - 1][b] >> 8 ^ SLICES[0][SLICES[k - 1][b] & 0xff];
        }
    }
#if HAS_INSTRUCTION
    __builtin_cpu_init();
    use_instruction = __builtin_cpu_supports("sse4.2");
#endif
}

static uint32_t little_endian(const byte *p) {
    return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static uint32_t by_tables(const byte *p, size_t size) {
    uint32_t crc = 0xffffffff;
    for (; size >= 8; p += 8, size -= 8) {
        uint32_t low = crc ^ little_endian(p), high = little_endian(p + 4);
        crc = SLICES[7][low & 0xff] ^ SLICES[6][low >> 8 & 0xff] ^ SLICES[5][low >> 16 & 0xff] ^ SLICES[4][low >> 24]
              ^ SLICES[3][high & 0xff] ^ SLICES[2][high >> 8 & 0xff] ^ SLICES[1][high >> 16 & 0xff] ^ SLICES[0][high >> 24];
    }
    for (; size > 0; p++, size--) {
        crc = crc >> 8 ^ SLICES[0][(crc ^ *p) & 0xff];
    }
    return ~crc;
}

#if HAS_INSTRUCTION
__attribute__((target("sse4.2"))) static uint32_t by_instruction(const byte *p, size_t size) {
    uint64_t crc = 0xffffffff;
    for (; size >= 8; p += 8, size -= 8) {
        uint64_t eight;
        memcpy(&eight, p, 8);
        crc = _mm_crc32_u64(crc, eight);
    }
    for (; size > 0; p++, size--) {
        crc = _mm_crc32_u8((uint32_t)crc, *p);
    }
    return ~(uint32_t)crc;
}
#else
#define by_instruction by_tables
#endif

static PyObject *checksum(PyObject *data, bool with_instruction) {
    Py_buffer buffer;
    if (PyObject_GetBuffer(data, &buffer, PyBUF_SIMPLE) < 0) {
        return NULL;
    }
    uint32_t crc = (with_instruction ? by_instruction : by_tables)(buffer.buf, (size_t)buffer.len);
    PyBuffer_Release(&buffer);
    return PyLong_FromUnsignedLong(crc);
}

PyObject *crc32c(PyObject *module, PyObject *data) {
    return checksum(data, use_instruction);
}

PyObject *crc32c_portable(PyObject *module, PyObject *data) {
    return checksum(data, false);
}
