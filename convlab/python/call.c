/* The part of the Python package that each call passes through: where an array
 * is, the call itself, and all of a call with a tensor like one before. By
 * Python's stable interface, so that one build serves every version from 3.11
 * on. Arrays of other kinds _arrays.py reads. */
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030b0000
#include <Python.h>
#include <stdint.h>

/* What describe tells of an array's elements and place, added up; the number of
 * its GPU, or -1 for the CPU, is added as (device + 1) * kDevice. */
enum { kHalves = 1, kChannelsLast = 2, kTorch = 4, kDevice = 8 };

/* Of PyTorch, once it is imported; what raises the library's errors; and the
 * names of what is asked for. torch_stream is None without CUDA. */
static PyObject *torch_tensor, *torch_float32, *torch_float16, *torch_grad,
    *torch_empty_like, *torch_stream;
static PyObject* raise_error;
static PyObject *name_dtype, *name_requires_grad, *name_is_contiguous,
    *name_is_cuda, *name_is_cpu, *name_get_device, *name_data_ptr, *name_shape,
    *name_version;

/* Whether a value is true; steals its reference. -1 if it is null, or with an
 * exception. */
static int TakeIsTrue(PyObject* value) {
  if (value == NULL) return -1;
  const int is_true = PyObject_IsTrue(value);
  Py_DECREF(value);
  return is_true;
}

/* The result of object.name(); null with an exception. */
static PyObject* Call(PyObject* object, PyObject* name) {
  return PyObject_CallMethodObjArgs(object, name, NULL);
}

/* (pointer, shape, place); steals the references of the first two, which may be
 * null: then it is null, too. */
static PyObject* Describe(PyObject* pointer, PyObject* shape, long place) {
  PyObject* const its_place = PyLong_FromLong(place);
  PyObject* described = NULL;
  if (pointer != NULL && shape != NULL && its_place != NULL) {
    described = PyTuple_Pack(3, pointer, shape, its_place);
  }
  Py_XDECREF(pointer);
  Py_XDECREF(shape);
  Py_XDECREF(its_place);
  return described;
}

/* A tensor without gaps, of floats or halves, that wants no gradient; None for
 * others. */
static PyObject* DescribeTensor(PyObject* tensor) {
  long place = kTorch;
  PyObject* const dtype = PyObject_GetAttr(tensor, name_dtype);
  if (dtype == NULL) return NULL;
  Py_DECREF(dtype); /* torch's own object */
  if (dtype == torch_float16) {
    place += kHalves;
  } else if (dtype != torch_float32) {
    Py_RETURN_NONE;
  }
  int wants = TakeIsTrue(PyObject_GetAttr(tensor, name_requires_grad));
  if (wants == 1) {
    wants = TakeIsTrue(PyObject_CallNoArgs(torch_grad));
  }
  if (wants < 0) return NULL;
  if (wants == 1) Py_RETURN_NONE;
  const int dense = TakeIsTrue(Call(tensor, name_is_contiguous));
  if (dense < 0) return NULL;
  if (dense == 0) Py_RETURN_NONE;
  const int on_gpu = TakeIsTrue(PyObject_GetAttr(tensor, name_is_cuda));
  if (on_gpu < 0) return NULL;
  if (on_gpu == 1) {
    PyObject* const device = Call(tensor, name_get_device);
    if (device == NULL) return NULL;
    place += kDevice * (PyLong_AsLong(device) + 1);
    Py_DECREF(device);
  } else {
    const int on_cpu = TakeIsTrue(PyObject_GetAttr(tensor, name_is_cpu));
    if (on_cpu < 0) return NULL;
    if (on_cpu == 0) Py_RETURN_NONE;
  }
  return Describe(Call(tensor, name_data_ptr),
                  PyObject_GetAttr(tensor, name_shape), place);
}

/* An array with Python's buffer interface, as NumPy's have; None for others. */
static PyObject* DescribeBuffer(PyObject* array, int written) {
  Py_buffer view;
  if (PyObject_GetBuffer(array, &view,
                         PyBUF_C_CONTIGUOUS | PyBUF_FORMAT |
                             (written ? PyBUF_WRITABLE : 0)) != 0) {
    PyErr_Clear();
    Py_RETURN_NONE;
  }
  const char* const format =
      view.format == NULL ? "" : view.format + (view.format[0] == '<');
  const int halves = format[0] == 'e';
  PyObject* described = NULL;
  if ((halves || format[0] == 'f') && format[1] == '\0') {
    PyObject* shape = PyTuple_New(view.ndim);
    for (int i = 0; shape != NULL && i < view.ndim; ++i) {
      PyObject* const size = PyLong_FromSsize_t(view.shape[i]);
      if (size == NULL || PyTuple_SetItem(shape, i, size) != 0) {
        Py_CLEAR(shape);
      }
    }
    described =
        Describe(PyLong_FromVoidPtr(view.buf), shape, halves ? kHalves : 0);
  } else {
    described = Py_NewRef(Py_None);
  }
  PyBuffer_Release(&view);
  return described;
}

static PyObject* DescribeArray(PyObject* self, PyObject* const* args,
                               Py_ssize_t count) {
  (void)self;
  if (count != 2) {
    PyErr_SetString(PyExc_TypeError, "describe takes an array and a bool");
    return NULL;
  }
  const int written = PyObject_IsTrue(args[1]);
  if (written < 0) return NULL;
  if (torch_tensor != NULL &&
      PyObject_TypeCheck(args[0], (PyTypeObject*)torch_tensor)) {
    return DescribeTensor(args[0]);
  }
  if (PyObject_CheckBuffer(args[0])) return DescribeBuffer(args[0], written);
  Py_RETURN_NONE;
}

static PyObject* UseTorch(PyObject* self, PyObject* const* args,
                          Py_ssize_t count) {
  (void)self;
  if (count != 6 || !PyType_Check(args[0])) {
    PyErr_SetString(PyExc_TypeError, "use_torch takes a type and five objects");
    return NULL;
  }
  PyObject** const kept[] = {&torch_tensor, &torch_float32,    &torch_float16,
                             &torch_grad,   &torch_empty_like, &torch_stream};
  for (int i = 0; i < 6; ++i) {
    Py_XDECREF(*kept[i]);
    *kept[i] = Py_NewRef(args[i]);
  }
  Py_RETURN_NONE;
}

static PyObject* UseLibrary(PyObject* self, PyObject* its_error) {
  (void)self;
  Py_XDECREF(raise_error);
  raise_error = Py_NewRef(its_error);
  Py_RETURN_NONE;
}

/* convlab_run and convlab_run_prepared. */
typedef int32_t (*Run)(void* plan, const void* x, const void* weights,
                       const void* bias, void* y, void* workspace,
                       size_t workspace_bytes, void* stream);

static PyObject* RunPlan(PyObject* self, PyObject* const* args,
                         Py_ssize_t count) {
  (void)self;
  if (count != 9) {
    PyErr_SetString(PyExc_TypeError, "run takes 9 numbers");
    return NULL;
  }
  void* values[9];
  for (int i = 0; i < 9; ++i) {
    values[i] = args[i] == Py_None ? NULL : PyLong_AsVoidPtr(args[i]);
    if (values[i] == NULL && PyErr_Occurred() != NULL) return NULL;
  }
  int32_t status = 0;
  Py_BEGIN_ALLOW_THREADS;
  /* ISO C knows no conversion between these pointers, POSIX does. */
  status = ((Run)(uintptr_t)values[0])(values[1], values[2], values[3],
                                       values[4], values[5], values[6],
                                       (size_t)values[7], values[8]);
  Py_END_ALLOW_THREADS;
  return PyLong_FromLong(status);
}

/* tensor.data_ptr(); null with an exception, or if it has no memory. */
static void* AddressOf(PyObject* tensor) {
  PyObject* const address = Call(tensor, name_data_ptr);
  if (address == NULL) return NULL;
  void* const pointer = PyLong_AsVoidPtr(address);
  Py_DECREF(address);
  return pointer;
}

/* Whether a value equals another; steals its reference. -1 as TakeIsTrue. */
static int TakeEquals(PyObject* value, PyObject* other) {
  if (value == NULL) return -1;
  const int equals = PyObject_RichCompareBool(value, other, Py_EQ);
  Py_DECREF(value);
  return equals;
}

/* Whether all parameters are as they were. `watched` is (dict, name, address,
 * version, dict, ...): dict[name] still is a tensor there, of that version, or
 * None if address and version are. -1 with an exception. */
static int IsUnchanged(PyObject* watched) {
  const Py_ssize_t size = PyTuple_Size(watched);
  for (Py_ssize_t i = 0; i + 3 < size; i += 4) {
    PyObject* const its_address = PyTuple_GetItem(watched, i + 2);
    PyObject* const tensor = PyDict_GetItemWithError(
        PyTuple_GetItem(watched, i), PyTuple_GetItem(watched, i + 1));
    if (tensor == NULL) return PyErr_Occurred() != NULL ? -1 : 0;
    if (tensor == Py_None || its_address == Py_None) {
      if (tensor != its_address) return 0;
      continue;
    }
    Py_INCREF(tensor); /* what a subclass does may drop the dict's */
    int same = TakeEquals(Call(tensor, name_data_ptr), its_address);
    if (same == 1) {
      same = TakeEquals(PyObject_GetAttr(tensor, name_version),
                        PyTuple_GetItem(watched, i + 3));
    }
    Py_DECREF(tensor);
    /* Nobody counts the changes of a tensor that inference mode made. */
    if (same < 0 && PyErr_ExceptionMatches(PyExc_RuntimeError)) {
      PyErr_Clear();
      same = 0;
    }
    if (same != 1) return same;
  }
  return 1;
}

/* The entry of `table` for a tensor's shape and place, borrowed; null if there
 * is none, or with an exception. Sets the device. */
static PyObject* FindEntry(PyObject* tensor, PyObject* table, long* device) {
  PyObject* const dtype = PyObject_GetAttr(tensor, name_dtype);
  if (dtype == NULL) return NULL;
  Py_DECREF(dtype);
  if (dtype != torch_float32 && dtype != torch_float16) return NULL;
  if (TakeIsTrue(PyObject_GetAttr(tensor, name_requires_grad)) != 0)
    return NULL;
  if (TakeIsTrue(Call(tensor, name_is_contiguous)) != 1) return NULL;
  PyObject* const number = Call(tensor, name_get_device);
  if (number == NULL) return NULL;
  *device = PyLong_AsLong(number);
  Py_DECREF(number);
  const long place =
      kTorch + (dtype == torch_float16 ? kHalves : 0) + kDevice * (*device + 1);
  PyObject* const key =
      Py_BuildValue("(Nl)", PyObject_GetAttr(tensor, name_shape), place);
  if (key == NULL) return NULL;
  PyObject* const found = PyDict_GetItemWithError(table, key);
  Py_DECREF(key);
  return found;
}

/* torch.empty_like(like), and where it is; null with an exception. */
static PyObject* NewTensor(PyObject* like, void** address) {
  PyObject* const made =
      PyObject_CallFunctionObjArgs(torch_empty_like, like, NULL);
  if (made == NULL) return NULL;
  *address = AddressOf(made);
  if (PyErr_Occurred() != NULL) {
    Py_DECREF(made);
    return NULL;
  }
  return made;
}

/* An entry is (function, plan, weights, bias, a tensor like y, bytes of the
 * workspace, a tensor like one in which these lie aligned, their owners). */
enum { kEntrySize = 8, kAlignment = 256 };

/* y; None for an x without an address: meta's device has the CPU's number. */
static PyObject* RunEntry(PyObject* x, PyObject* entry, long device) {
  void* const from = AddressOf(x);
  if (from == NULL && PyErr_Occurred() == NULL) Py_RETURN_NONE;
  void* values[4];
  for (int i = 0; i < 4; ++i) {
    PyObject* const value = PyTuple_GetItem(entry, i);
    values[i] = value == Py_None ? NULL : PyLong_AsVoidPtr(value);
  }
  const size_t bytes = PyLong_AsSize_t(PyTuple_GetItem(entry, 5));
  if (PyErr_Occurred() != NULL) return NULL;
  void *stream = NULL, *to = NULL, *space = NULL;
  PyObject* workspace = NULL;
  if (device >= 0) {
    PyObject* const its_stream =
        PyObject_CallFunction(torch_stream, "l", device);
    if (its_stream == NULL) return NULL;
    stream = PyLong_AsVoidPtr(its_stream);
    Py_DECREF(its_stream);
    if (PyErr_Occurred() != NULL) return NULL;
  }
  if (bytes > 0) {
    workspace = NewTensor(PyTuple_GetItem(entry, 6), &space);
    if (workspace == NULL) return NULL;
    space = (void*)(((uintptr_t)space + kAlignment - 1) &
                    ~(uintptr_t)(kAlignment - 1));
  }
  PyObject* y = NewTensor(PyTuple_GetItem(entry, 4), &to);
  int32_t status = 0;
  if (y != NULL) {
    Py_BEGIN_ALLOW_THREADS;
    status = ((Run)(uintptr_t)values[0])(values[1], from, values[2], values[3],
                                         to, space, bytes, stream);
    Py_END_ALLOW_THREADS;
  }
  Py_XDECREF(workspace);
  if (y != NULL && status != 0) {
    Py_DECREF(y);
    PyObject* const code = PyLong_FromLong(status);
    if (code == NULL) return NULL;
    y = PyObject_CallFunctionObjArgs(raise_error, code, NULL);
    Py_DECREF(code);
    Py_XDECREF(y);
    return NULL;
  }
  return y;
}

static PyObject* RunTensor(PyObject* self, PyObject* const* args,
                           Py_ssize_t count) {
  (void)self;
  if (count != 3 || !PyDict_Check(args[1]) || !PyTuple_Check(args[2])) {
    PyErr_SetString(PyExc_TypeError,
                    "run_tensor takes a tensor, a dict and a tuple");
    return NULL;
  }
  /* No subclass, which may be anything. */
  if (PyDict_Size(args[1]) == 0 || torch_tensor == NULL ||
      (PyObject*)Py_TYPE(args[0]) != torch_tensor) {
    Py_RETURN_NONE;
  }
  long device = -1;
  /* A thread that changes the dict meanwhile must not free what is run. */
  PyObject* const entry = Py_XNewRef(FindEntry(args[0], args[1], &device));
  PyObject* y = NULL;
  const int takes = entry == NULL ? 0 : IsUnchanged(args[2]);
  if (takes == 1 &&
      (!PyTuple_Check(entry) || PyTuple_Size(entry) != kEntrySize)) {
    PyErr_SetString(PyExc_TypeError, "an entry is a tuple of 8");
  } else if (takes == 1) {
    y = RunEntry(args[0], entry, device);
  } else if (PyErr_Occurred() == NULL) {
    y = Py_NewRef(Py_None);
  }
  Py_XDECREF(entry);
  return y;
}

static PyMethodDef methods[] = {
    {"describe", (PyCFunction)(void (*)(void))DescribeArray, METH_FASTCALL,
     "describe(array, written): (pointer, shape, place) of an array without "
     "gaps that is NumPy's or PyTorch's, or None."},
    {"use_torch", (PyCFunction)(void (*)(void))UseTorch, METH_FASTCALL,
     "use_torch(Tensor, float32, float16, is_grad_enabled, empty_like, "
     "_cuda_getCurrentRawStream)"},
    {"use_library", UseLibrary, METH_O,
     "use_library(function): what raises the error of a status."},
    {"run_tensor", (PyCFunction)(void (*)(void))RunTensor, METH_FASTCALL,
     "run_tensor(x, entries, watched): a new y by the entry for x's (shape, "
     "place), or None if there is none or a tensor of watched has changed: "
     "(dict, name, address, version, dict, ...)."},
    {"run", (PyCFunction)(void (*)(void))RunPlan, METH_FASTCALL,
     "run(function, plan, x, weights, bias, y, workspace, workspace_bytes, "
     "stream): the status of convlab_run, or of convlab_run_prepared, whose "
     "address `function` is. None is null."},
    {NULL, NULL, 0, NULL}};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "_call", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__call(void) {
  const struct {
    PyObject** name;
    const char* text;
  } names[] = {{&name_dtype, "dtype"},
               {&name_requires_grad, "requires_grad"},
               {&name_is_contiguous, "is_contiguous"},
               {&name_is_cuda, "is_cuda"},
               {&name_is_cpu, "is_cpu"},
               {&name_get_device, "get_device"},
               {&name_data_ptr, "data_ptr"},
               {&name_shape, "shape"},
               {&name_version, "_version"}};
  for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); ++i) {
    *names[i].name = PyUnicode_InternFromString(names[i].text);
    if (*names[i].name == NULL) return NULL;
  }
  PyObject* const made = PyModule_Create(&module);
  if (made == NULL || PyModule_AddIntConstant(made, "HALVES", kHalves) != 0 ||
      PyModule_AddIntConstant(made, "CHANNELS_LAST", kChannelsLast) != 0 ||
      PyModule_AddIntConstant(made, "TORCH", kTorch) != 0 ||
      PyModule_AddIntConstant(made, "DEVICE", kDevice) != 0) {
    return NULL;
  }
  return made;
}
