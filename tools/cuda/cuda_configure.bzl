"""Finds the CUDA Toolkit on this machine and describes it as @local_cuda.

@local_cuda//:defs.bzl holds CUDA, a struct: `available`, and if so `nvcc` (its
path) and `release` (its version); and whether the headers of a library are
there, `has_cublas`, `has_cudnn` and `has_cupti`. The header targets of libraries that are not
there are marked incompatible, so that what needs them, and only that, is
skipped. CUDA_HOME or CUDA_PATH name another toolkit; CUDA_HOME=none means none.
"""

_USUAL_FOLDERS = ["/usr/local/cuda", "/opt/cuda"]

_INCLUDE_FOLDERS = ["include", "targets/x86_64-linux/include"]
_LIBRARY_FOLDERS = ["lib64", "targets/x86_64-linux/lib", "lib"]

# Libraries that are opened at run time, each with the header that shows that it
# is installed.
_LIBRARIES = {
    "cublas": "cublas_v2.h",
    "cudnn": "cudnn_graph.h",  # from cuDNN 9 on
    "cupti": "cupti.h",
}

# Our own target that no platform is compatible with.
_INCOMPATIBLE = "[\"@convlab//tools/cuda:not_on_this_machine\"]"

def _find_toolkit(repository_ctx):
    """The toolkit's folder, or None."""
    environ = repository_ctx.os.environ
    for variable in ["CUDA_HOME", "CUDA_PATH"]:
        folder = environ.get(variable)
        if folder == "none":
            return None
        if folder:
            if not repository_ctx.path(folder + "/bin/nvcc").exists:
                fail("%s is '%s', but there is no bin/nvcc in it; unset it, or set it to none to build without CUDA" %
                     (variable, folder))
            return folder
    for folder in _USUAL_FOLDERS:
        if repository_ctx.path(folder + "/bin/nvcc").exists:
            return folder
    nvcc = repository_ctx.which("nvcc")
    return str(nvcc.realpath.dirname.dirname) if nvcc else None

def _symlink_first(repository_ctx, toolkit, folders, file, name):
    """Links the first of the toolkit's folders that holds `file` as `name`; whether there is one."""
    for folder in folders:
        path = toolkit + "/" + folder
        if repository_ctx.path(path + "/" + file).exists:
            repository_ctx.symlink(path, name)
            return True
    return False

def _release(repository_ctx, nvcc):
    result = repository_ctx.execute([nvcc, "--version"])
    if result.return_code != 0:
        fail("%s --version failed: %s" % (nvcc, result.stderr))
    for word in result.stdout.replace("\n", " ").split(" "):
        if word.startswith("V") and word[1:2].isdigit():
            return word[1:]
    fail("%s --version did not say its version: %s" % (nvcc, result.stdout))

def _header_target(name, found, patterns, deps):
    return """
cc_library(
    name = "{name}",
    hdrs = glob({patterns}, allow_empty = True),
    includes = ["include"],
    deps = {deps},
    target_compatible_with = {compatible},
    visibility = ["//visibility:public"],
)
""".format(
        name = name,
        patterns = repr(["include/" + pattern for pattern in patterns]),
        deps = repr(deps),
        compatible = "[]" if found else _INCOMPATIBLE,
    )

def _cuda_configure_impl(repository_ctx):
    toolkit = _find_toolkit(repository_ctx)
    available = False
    if toolkit:
        has_headers = _symlink_first(repository_ctx, toolkit, _INCLUDE_FOLDERS, "cuda_runtime.h", "include")
        has_archive = _symlink_first(repository_ctx, toolkit, _LIBRARY_FOLDERS, "libcudart_static.a", "lib")
        available = has_headers and has_archive
    fields = {"available": available}
    if available:
        fields["nvcc"] = toolkit + "/bin/nvcc"
        fields["release"] = _release(repository_ctx, fields["nvcc"])
    for name, header in _LIBRARIES.items():
        fields["has_" + name] = available and repository_ctx.path("include/" + header).exists
    repository_ctx.file("defs.bzl", "CUDA = struct(**%r)\n" % fields)

    # The runtime is linked statically; it opens the driver itself. The headers are
    # for host code, nvcc finds its own.
    build = """
cc_library(
    name = "cuda_runtime",
    srcs = {archive},
    hdrs = glob({patterns}, allow_empty = True),
    includes = ["include", "include/cccl"],
    linkopts = ["-ldl", "-lrt", "-lpthread"],
    target_compatible_with = {compatible},
    visibility = ["//visibility:public"],
)
""".format(
        archive = repr(["lib/libcudart_static.a"] if available else []),
        # All headers would be 2,000 inputs of each compilation.
        patterns = repr([
            "include/*.h",
            "include/*.hpp",
            "include/crt/**",
            "include/cccl/nv/**",
            "include/nv/**",
        ]),
        compatible = "[]" if available else _INCOMPATIBLE,
    )
    for name in _LIBRARIES:
        build += _header_target(name, fields["has_" + name], [name + "*.h"], [":cuda_runtime"])
    repository_ctx.file("BUILD", build)

cuda_configure = repository_rule(
    implementation = _cuda_configure_impl,
    environ = ["CUDA_HOME", "CUDA_PATH", "PATH"],
    local = True,
)
