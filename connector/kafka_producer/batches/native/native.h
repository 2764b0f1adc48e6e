/* Kafka's record batches: what is done for each record, or for each byte.
 *
 *   records.c      the type of the module: encodes messages as records
 *   partitions.c   divides messages among partitions by their keys
 *   crc32c.c       the checksum of a batch
 *
 * Everything else of a batch is written in Python, once for each batch. Messages are Python objects: nothing here calls
 * Python code while it reads them, so that the lists and tuples cannot change then. The global interpreter lock is
 * held: to copy the records of an event takes less time than to get the lock back from a busy thread.
 */
#ifndef ROWTIDE_RECORD_BATCHES_H
#define ROWTIDE_RECORD_BATCHES_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

typedef unsigned char byte;

/* --- crc32c.c ------------------------------------------------------------------------------------------------------ */

void crc32c_prepare(void); /* before the first call of the others */
PyObject *crc32c(PyObject *module, PyObject *data);
PyObject *crc32c_portable(PyObject *module, PyObject *data); /* without the processor's instruction, for tests */

/* --- partitions.c -------------------------------------------------------------------------------------------------- */

PyObject *split_by_key(PyObject *module, PyObject *args);

/* --- records.c ----------------------------------------------------------------------------------------------------- */

/* The key, value and headers of a message, all borrowed; false: an exception is set. */
bool read_message(PyObject *message, PyObject **key, PyObject **value, PyObject **headers);
/* The items of a list or tuple; false: an exception is set. `what` names it. */
bool read_items(PyObject *sequence, const char *what, PyObject ***items, Py_ssize_t *count);

extern PyTypeObject RecordsType;

#endif
