"""The one place that describes the libraries which Debian's packages provide.

Each becomes a repository with one target of the same name, for example
@abseil//:abseil. Headers that stand in the compiler's default folders need no
description; static archives are preferred so that a program built here runs on
a machine that has only libc and libstdc++.
"""

def _missing(name, package, what):
    fail("%s (Debian package %s) was not found: %s. Run tools/setup.sh." % (name, package, what))

def _static_link_flags(repository_ctx, modules):
    """Asks pkg-config for the archives of `modules`, in an order that links."""
    result = repository_ctx.execute(["pkg-config", "--static", "--libs"] + modules)
    if result.return_code != 0:
        _missing(repository_ctx.name, repository_ctx.attr.package, result.stderr.strip() or "pkg-config failed")
    flags = []
    for flag in result.stdout.strip().split(" "):
        if flag.startswith("-labsl_"):
            flags.append("-l:lib%s.a" % flag[len("-l"):])
        elif flag:
            flags.append(flag)
    return flags

def _system_library_impl(repository_ctx):
    attr = repository_ctx.attr
    header = repository_ctx.path(attr.header)
    if not header.exists:
        _missing(repository_ctx.name, attr.package, "there is no %s" % attr.header)
    linkopts = list(attr.linkopts)
    if attr.pkg_config:
        linkopts = _static_link_flags(repository_ctx, attr.pkg_config) + linkopts
    lines = ["cc_library(", "    name = %r," % repository_ctx.name]
    if attr.include_dir:
        repository_ctx.symlink(attr.include_dir, "include")
        lines.append("    hdrs = glob(%r)," % ["include/" + pattern for pattern in attr.hdrs])
        lines.append("    includes = [\"include\"],")
    lines.append("    defines = %r," % attr.defines)
    lines.append("    linkopts = %r," % linkopts)
    lines.append("    visibility = [\"//visibility:public\"],")
    lines.append(")")
    repository_ctx.file("BUILD", "\n".join(lines) + "\n")

_system_library = repository_rule(
    implementation = _system_library_impl,
    local = True,
    attrs = {
        "package": attr.string(mandatory = True, doc = "Debian package, for the message when it is missing"),
        "header": attr.string(mandatory = True, doc = "a file that shows that the package is there"),
        "pkg_config": attr.string_list(doc = "modules to link, statically"),
        "linkopts": attr.string_list(),
        "defines": attr.string_list(doc = "for everything that uses the library"),
        "include_dir": attr.string(doc = "a folder of headers outside the compiler's default ones"),
        "hdrs": attr.string_list(doc = "patterns below include_dir"),
    },
)

def _python_impl(repository_ctx):
    script = "import sysconfig; print(sysconfig.get_path('include'))"
    include = repository_ctx.execute(["/usr/bin/python3", "-c", script]).stdout.strip()
    if not include or not repository_ctx.path(include + "/Python.h").exists:
        _missing("python", "libpython3-dev", "there is no %s/Python.h" % include)
    repository_ctx.symlink(include, "include")
    repository_ctx.file("BUILD", """
cc_library(
    name = "python",
    hdrs = glob(["include/*.h", "include/cpython/*.h"]),
    includes = ["include"],
    visibility = ["//visibility:public"],
)
""")

# The headers of the machine's Python, for modules by its stable interface, which
# link nothing.
_python = repository_rule(implementation = _python_impl, local = True)

def _googletest_impl(repository_ctx):
    source = "/usr/src/googletest"
    if not repository_ctx.path(source + "/googletest/src/gtest-all.cc").exists:
        _missing("googletest", "googletest", "there is no %s" % source)
    repository_ctx.symlink(source + "/googletest", "googletest")
    repository_ctx.symlink(source + "/googlemock", "googlemock")
    repository_ctx.file("BUILD", """
cc_library(
    name = "gtest_main",
    srcs = [
        "googlemock/src/gmock-all.cc",
        "googlemock/src/gmock_main.cc",
        "googletest/src/gtest-all.cc",
    ],
    hdrs = glob(["googletest/include/**/*.h", "googlemock/include/**/*.h"]),
    includes = ["googletest", "googletest/include", "googlemock", "googlemock/include"],
    textual_hdrs = glob(["*/src/*.cc", "*/src/*.h"]),
    linkopts = ["-lpthread"],
    visibility = ["//visibility:public"],
)
""")

# Compiled from source, as its authors ask: a test and its framework then share
# one set of compiler flags, sanitizers included.
_googletest = repository_rule(implementation = _googletest_impl, local = True)

def _fashion_mnist_impl(repository_ctx):
    folder = "/usr/share/datasets/fashion-mnist"
    names = ["t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz"]
    for name in names:
        if not repository_ctx.path(folder + "/" + name).exists:
            _missing("the data set", "dataset-fashion-mnist", "there is no %s in %s" % (name, folder))
        repository_ctx.symlink(folder + "/" + name, name)
    repository_ctx.file("BUILD", """
filegroup(
    name = "t10k",
    srcs = %r,
    visibility = ["//visibility:public"],
)
""" % names)

# The test images, to be packed into the bundle. Programs and tests read the
# package's own folder.
_fashion_mnist = repository_rule(implementation = _fashion_mnist_impl, local = True)

# The packages of which a program contains something (NOTICE), and the texts to
# which their terms refer.
_CONTAINED = [
    "bazel-bootstrap",
    "dataset-fashion-mnist",
    "googletest",
    "libabsl-dev",
    "libeigen3-dev",
    "libgflags-dev",
    "libhwy-dev",
    "libonnx-dev",
    "libprotobuf-dev",
    "libseccomp-dev",
    "libsqlite3-dev",
    "nettle-dev",
    "nlohmann-json3-dev",
    "zlib1g-dev",
]
_COMMON_LICENCES = ["Apache-2.0", "GPL-2", "GPL-3", "LGPL-2.1", "LGPL-3", "MPL-2.0"]

def _licences_impl(repository_ctx):
    texts = {package: "/usr/share/doc/%s/copyright" % package for package in _CONTAINED}
    for licence in _COMMON_LICENCES:
        texts[licence] = "/usr/share/common-licenses/" + licence
    for name, path in texts.items():
        if not repository_ctx.path(path).exists:
            fail("The terms of %s were not found: there is no %s." % (name, path))
        repository_ctx.symlink(path, "licences/" + name)
    repository_ctx.file("BUILD", """
filegroup(
    name = "licences",
    srcs = %r,
    visibility = ["//visibility:public"],
)
""" % ["licences/" + name for name in sorted(texts)])

# Their terms, to be packed into the bundle.
_licences = repository_rule(implementation = _licences_impl, local = True)

def _onnx_impl(repository_ctx):
    for package, file in [
        ("libonnx-dev", "/usr/include/onnx/onnx.proto"),
        ("libprotobuf-dev", "/usr/include/google/protobuf/arena.h"),
        ("protobuf-compiler", "/usr/bin/protoc"),
    ]:
        if not repository_ctx.path(file).exists:
            _missing("ONNX", package, "there is no %s" % file)
    result = repository_ctx.execute(
        ["/usr/bin/protoc", "--proto_path=/usr/include", "--cpp_out=.", "onnx/onnx.proto"],
    )
    if result.return_code != 0:
        _missing("ONNX", "protobuf-compiler", result.stderr.strip())
    repository_ctx.file("BUILD", """
cc_library(
    name = "onnx",
    srcs = ["onnx/onnx.pb.cc"],
    hdrs = ["onnx/onnx.pb.h"],
    includes = ["."],
    linkopts = ["-l:libprotobuf-lite.a", "-lpthread"],
    visibility = ["//visibility:public"],
)
""")

# The messages of ONNX files, compiled from their description. The package's own
# library is shared and needs all of protobuf, which begins every program by
# registering messages; these need only its lite part, and are in the program.
_onnx = repository_rule(implementation = _onnx_impl, local = True)

# Where Debian and others put the headers of Open MPI.
_OPENMPI_FOLDERS = [
    "/usr/lib/x86_64-linux-gnu/openmpi/include",
    "/usr/lib/aarch64-linux-gnu/openmpi/include",
    "/usr/include/openmpi-x86_64",
    "/usr/local/include",
]

def _openmpi_impl(repository_ctx):
    folder = None
    for candidate in _OPENMPI_FOLDERS:
        if not folder and repository_ctx.path(candidate + "/mpi.h").exists:
            folder = candidate
    if folder:
        for name in ["mpi.h", "mpi_portable_platform.h"]:
            repository_ctx.symlink(folder + "/" + name, "include/" + name)
    repository_ctx.file("defs.bzl", "OPENMPI = struct(available = %r)\n" % bool(folder))
    repository_ctx.file("BUILD", """
cc_library(
    name = "openmpi",
    hdrs = glob(["include/*.h"], allow_empty = True),
    includes = ["include"],
    linkopts = ["-ldl"],
    visibility = ["//visibility:public"],
)
""")

# Open MPI's header (libopenmpi-dev), if it is there: @openmpi//:defs.bzl says
# so. The library is opened at run time, in processes that mpirun started.
_openmpi = repository_rule(implementation = _openmpi_impl, local = True)

def system_libraries():
    """Declares every system library that the project uses."""
    _licences(name = "licences")
    _system_library(
        name = "abseil",
        package = "libabsl-dev",
        header = "/usr/include/absl/status/statusor.h",
        pkg_config = ["absl_statusor", "absl_status", "absl_str_format", "absl_strings", "absl_time"],
        linkopts = ["-lpthread"],
    )
    _system_library(
        name = "eigen",
        package = "libeigen3-dev",
        header = "/usr/include/eigen3/Eigen/Core",
        include_dir = "/usr/include/eigen3",
        hdrs = [
            "Eigen/*",
            "Eigen/src/**",
            "unsupported/Eigen/CXX11/ThreadPool",
            "unsupported/Eigen/CXX11/src/ThreadPool/**",
            "unsupported/Eigen/CXX11/src/util/**",
        ],
        linkopts = ["-lpthread"],
    )
    _system_library(
        name = "gflags",
        package = "libgflags-dev",
        header = "/usr/include/gflags/gflags.h",
        linkopts = ["-l:libgflags.a", "-lpthread"],
    )
    _fashion_mnist(name = "fashion_mnist")
    _googletest(name = "googletest")
    _onnx(name = "onnx")
    _openmpi(name = "openmpi")
    _python(name = "python")
    _system_library(
        # Headers alone: what its shared library does is done in kernels/simd.
        name = "highway",
        package = "libhwy-dev",
        header = "/usr/include/hwy/highway.h",
        defines = [
            # The fallback is one lane whatever the compiler's version, and
            # compiled on every processor: it takes what vectors cannot.
            "HWY_BROKEN_EMU128=1",
            "HWY_COMPILE_ALL_ATTAINABLE",
            # Vectors whose length the compiler does not know make no arrays;
            # between SSE2 and SSE4 there is no processor worth the code.
            "HWY_DISABLED_TARGETS=(HWY_SSSE3|HWY_SVE|HWY_SVE2|HWY_SVE_256|HWY_SVE2_128)",
            # No kernel encrypts or reads half floats, so none needs a
            # processor that does.
            "HWY_DISABLE_F16C",
            "HWY_DISABLE_PCLMUL_AES",
        ],
    )
    _system_library(
        # SHA-256 and HMAC.
        name = "nettle",
        package = "nettle-dev",
        header = "/usr/include/nettle/sha2.h",
        linkopts = ["-l:libnettle.a"],
    )
    _system_library(
        name = "nlohmann_json",
        package = "nlohmann-json3-dev",
        header = "/usr/include/nlohmann/json.hpp",
    )
    _system_library(
        # Filters of system calls, for the processes of contributed kernels.
        name = "seccomp",
        package = "libseccomp-dev",
        header = "/usr/include/seccomp.h",
        linkopts = ["-l:libseccomp.a"],
    )
    _system_library(
        name = "sqlite3",
        package = "libsqlite3-dev",
        header = "/usr/include/sqlite3.h",
        linkopts = ["-l:libsqlite3.a", "-lm", "-lpthread", "-ldl"],
    )
    _system_library(
        # Headers only: the benchmark opens the library at run time.
        name = "onednn",
        package = "libdnnl-dev",
        header = "/usr/include/oneapi/dnnl/dnnl.h",
    )
    _system_library(
        name = "zlib",
        package = "zlib1g-dev",
        header = "/usr/include/zlib.h",
        linkopts = ["-l:libz.a"],
    )
