"""The functions of libconvlab.so (convlab.h): runs by _call, others by ctypes."""

import ctypes
import operator
import os
import pathlib

from convlab import _call

_ACTIVATIONS = {None: 0, "relu": 1, "tanh": 2}
_CLASSES = {"fp32": 0, "fp32-normwise": 1, "tf32": 2, "fp16": 3}
_CAPTURABLE, _TRUST_POINTERS = 1, 2
# Codes of errors that callers tell apart.
OUT_OF_MEMORY, DEVICE_ERROR = 4, 5
_ALIGNMENT = 256


class ConvlabError(RuntimeError):
    """An error of the library; `status` is its code."""

    def __init__(self, status, message):
        super().__init__(message)
        self.status = status


class _Problem(ctypes.Structure):
    _fields_ = (
        [("struct_size", ctypes.c_size_t)]
        + [
            (name, ctypes.c_int64)
            for name in (
                "batch channels height width filters kernel_height kernel_width "
                "stride_height stride_width padding_top padding_bottom "
                "padding_left padding_right"
            ).split()
        ]
        + [
            (name, ctypes.c_int32)
            for name in (
                "has_bias activation pool_size pool_stride pool_ceil format"
            ).split()
        ]
    )


class _Options(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("device", ctypes.c_int32),
        ("threads", ctypes.c_int32),
        ("accuracy", ctypes.c_int32),
        ("flags", ctypes.c_int32),
        ("kernel", ctypes.c_char_p),
    ]


class _Info(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("workspace_bytes", ctypes.c_int64),
        ("output_height", ctypes.c_int64),
        ("output_width", ctypes.c_int64),
        ("input_bytes", ctypes.c_int64),
        ("weight_bytes", ctypes.c_int64),
        ("output_bytes", ctypes.c_int64),
        ("estimated_ns", ctypes.c_double),
        ("accuracy", ctypes.c_int32),
        ("capturable", ctypes.c_int32),
        ("kernel", ctypes.c_char_p),
        ("prepared_bytes", ctypes.c_int64),
        ("estimated_cudnn_ns", ctypes.c_double),
    ]


def _load():
    # CONVLAB_LIBRARY names another copy, for tests of the library itself.
    path = os.environ.get("CONVLAB_LIBRARY") or str(
        pathlib.Path(__file__).with_name("libconvlab.so.1")
    )
    library = ctypes.CDLL(path)
    pointer = ctypes.c_void_p
    for name, result, arguments in (
        ("convlab_version", ctypes.c_char_p, []),
        ("convlab_last_error", ctypes.c_char_p, []),
        ("convlab_count_gpus", ctypes.c_int32, []),
        (
            "convlab_plan_create",
            ctypes.c_int32,
            [
                ctypes.POINTER(_Problem),
                ctypes.POINTER(_Options),
                ctypes.POINTER(pointer),
            ],
        ),
        ("convlab_plan_destroy", None, [pointer]),
        ("convlab_plan_query", ctypes.c_int32, [pointer, ctypes.POINTER(_Info)]),
        (
            "convlab_prepare_weights",
            ctypes.c_int32,
            [pointer] * 3 + [ctypes.c_size_t, pointer],
        ),
    ):
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


_library = _load()
_run = ctypes.cast(_library.convlab_run, ctypes.c_void_p).value
_run_prepared = ctypes.cast(_library.convlab_run_prepared, ctypes.c_void_p).value


def _check(status):
    if status != 0:
        message = _library.convlab_last_error().decode(errors="replace")
        raise ConvlabError(status, message)


_call.use_library(_check)


def version():
    """The library's version."""
    return _library.convlab_version().decode()


def count_gpus():
    """The number of GPUs that the library can use."""
    return _library.convlab_count_gpus()


def _value_of(name, table, value):
    if value not in table:
        expected = ", ".join(repr(known) for known in table)
        raise ValueError(f"{name} is {value!r}, expected one of {expected}")
    return table[value]


def _integer(name, value, limit):
    """The int of what is an integer, NumPy's among them, and fits."""
    try:
        integer = operator.index(value)
    except TypeError:
        raise ValueError(f"{name} is {value!r}, expected an integer") from None
    # ctypes would cut off what does not fit.
    if not -limit <= integer < limit:
        raise ValueError(f"{name} is {value!r}, which is too large")
    return integer


class Plan:
    """A convolution that is ready for one problem on one device.

    Args:
      problem: the fields of convlab_problem by name; those that are left out
        are as in CONVLAB_PROBLEM_INIT. `activation` is None, "relu" or "tanh".
      device: the number of a GPU, or -1 for the CPU.
      accuracy: the loosest class that will do.
      kernel: its name; None: the fastest by its estimate.
      threads: of the CPU; 0: one for each core.
      capturable: whether runs are captured into CUDA graphs.
      trusted: whether pointers and streams surely are of the device.

    Attributes:
      workspace_bytes, prepared_bytes, output_height, output_width, estimated_ns,
      estimated_cudnn_ns, kernel, capturable: what convlab_info says.
    """

    def __init__(
        self,
        problem,
        device=-1,
        accuracy="fp32",
        kernel=None,
        threads=0,
        capturable=False,
        trusted=False,
    ):
        self._address = None
        fields = {name: 1 for name, _ in _Problem._fields_[1:10]}
        fields.update(problem)
        fields["activation"] = _value_of(
            "activation", _ACTIVATIONS, fields.get("activation")
        )
        known = {name for name, _ in _Problem._fields_}
        for name in fields:
            if name not in known:
                raise ValueError(f"a problem has no field {name!r}")
        for name, kind in _Problem._fields_:
            limit = 1 << (8 * ctypes.sizeof(kind) - 1)
            fields[name] = _integer(name, fields.get(name, 0), limit)
        if kernel is not None and not isinstance(kernel, str):
            raise ValueError(f"kernel is {kernel!r}, expected a name")
        c_problem = _Problem(
            **{**fields, "struct_size": ctypes.sizeof(_Problem)}
        )
        c_options = _Options(
            ctypes.sizeof(_Options),
            _integer("device", device, 1 << 31),
            _integer("threads", threads, 1 << 31),
            _value_of("accuracy", _CLASSES, accuracy),
            (_CAPTURABLE if capturable else 0) + (_TRUST_POINTERS if trusted else 0),
            None if kernel is None else kernel.encode(),
        )
        plan = ctypes.c_void_p()
        _check(
            _library.convlab_plan_create(
                ctypes.byref(c_problem), ctypes.byref(c_options), ctypes.byref(plan)
            )
        )
        self._address = plan.value
        info = _Info(ctypes.sizeof(_Info))
        _check(_library.convlab_plan_query(plan, ctypes.byref(info)))
        self.workspace_bytes = info.workspace_bytes
        self.output_height = info.output_height
        self.output_width = info.output_width
        self.prepared_bytes = info.prepared_bytes
        self.estimated_ns = info.estimated_ns
        self.estimated_cudnn_ns = info.estimated_cudnn_ns
        self.capturable = bool(info.capturable)
        self.kernel = info.kernel.decode()

    def __del__(self):
        if getattr(self, "_address", None) is not None:
            _library.convlab_plan_destroy(self._address)

    def __reduce__(self):
        raise TypeError("a Plan cannot be copied or stored")

    def run(self, x, w, bias, y, workspace, workspace_bytes, stream, prepared=False):
        """Computes y; all are addresses, or None where there is nothing.

        `w` is that of the weights, or of what `prepare` wrote.
        """
        status = _call.run(
            _run_prepared if prepared else _run,
            self._address,
            x,
            w,
            bias,
            y,
            workspace,
            workspace_bytes,
            stream,
        )
        if status != 0:
            _check(status)

    def entry(self, w, bias, y_like, workspace_like, prepared, owner):
        """What run_tensor needs to run it with these addresses, and new tensors.

        `owner` keeps what lies at the addresses. The entry has it and the plan, so
        that nothing is freed while another thread drops a layer that runs.
        """
        return (
            _run_prepared if prepared else _run,
            self._address,
            w,
            bias,
            y_like,
            self.workspace_bytes,
            workspace_like,
            (self, owner),
        )

    def prepare(self, w, prepared, prepared_bytes, stream):
        """Writes the weights as `run` wants them; addresses, as there."""
        _check(
            _library.convlab_prepare_weights(
                self._address, w, prepared, prepared_bytes, stream
            )
        )


def aligned(pointer, size):
    """(pointer, bytes) of what lies in that memory from an aligned address on."""
    begin = -(-pointer // _ALIGNMENT) * _ALIGNMENT
    return begin, max(0, pointer + size - begin)


def room_for(size, halves):
    """The elements of an array in which so many bytes lie aligned."""
    return size // (2 if halves else 4) + 128
