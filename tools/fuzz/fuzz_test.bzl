"""fuzz_test: a fuzz target as a test, always under sanitizers.

Whatever the build's own flags are, the target and all it depends on are
compiled once more with the address and undefined-behaviour sanitizers.
"""

_FLAGS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"]

_COPTS = _FLAGS + [
    "-g1",
    "-fno-omit-frame-pointer",
    # Undoes Bazel's -c opt flags: asserts stay, and the sanitizer checks.
    "-UNDEBUG",
    "-U_FORTIFY_SOURCE",
    # Checks operator[] against the size, since spare capacity would hide an
    # error.
    "-D_GLIBCXX_ASSERTIONS",
]

_COPT = "//command_line_option:copt"
_LINKOPT = "//command_line_option:linkopt"

def _sanitized_impl(settings, _attr):
    # The thread sanitizer excludes the address sanitizer.
    kept = {
        option: [flag for flag in settings[option] if flag != "-fsanitize=thread"]
        for option in [_COPT, _LINKOPT]
    }

    # Optimized code with every check takes four times as long to compile as this;
    # long runs (the configuration libfuzzer) are worth it. What is left out here,
    # the address sanitizer sees as well, except alignment.
    level = ["-O1"] if "-fsanitize=fuzzer-no-link" in settings[_COPT] else [
        "-Og",
        "-fno-sanitize=alignment,null,object-size,vptr",
    ]
    return {_COPT: kept[_COPT] + _COPTS + level, _LINKOPT: kept[_LINKOPT] + _FLAGS}

_sanitized = transition(
    implementation = _sanitized_impl,
    inputs = [_COPT, _LINKOPT],
    outputs = [_COPT, _LINKOPT],
)

def _sanitized_test_impl(ctx):
    binary = ctx.attr.binary[0][DefaultInfo]
    executable = ctx.actions.declare_file(ctx.label.name)
    ctx.actions.symlink(
        output = executable,
        target_file = binary.files_to_run.executable,
        is_executable = True,
    )
    return [DefaultInfo(
        executable = executable,
        runfiles = ctx.runfiles(files = [executable]).merge(binary.default_runfiles),
    )]

_sanitized_test = rule(
    implementation = _sanitized_test_impl,
    test = True,
    attrs = {
        "binary": attr.label(mandatory = True, cfg = _sanitized),
        "_allowlist_function_transition": attr.label(
            default = "@bazel_tools//tools/allowlists/function_transition_allowlist",
        ),
    },
)

def fuzz_test(
        name,
        srcs,
        deps,
        runs = 100000,
        corpus = [],
        size = "medium",
        tags = [],
        target_compatible_with = []):
    """A test that calls a fuzz target on mutations of its seeds.

    Args:
      name: the test's name.
      srcs: define LLVMFuzzerTestOneInput and convlab::FuzzSeeds (seeds.h).
      deps: what they need.
      runs: how many inputs, the same ones each time; `--first` continues:
        bazel run TARGET -- --first=100000 --runs=5000000
      corpus: files of the package that run before these inputs, beside those of
        testdata/fuzz/NAME, where tools/fuzz/long --keep puts what it has found.
      size: the test's size.
      tags: the test's tags.
      target_compatible_with: as everywhere.
    """
    corpus = corpus + native.glob(["testdata/fuzz/%s/*" % name], allow_empty = True)
    native.cc_binary(
        name = name + "_binary",
        testonly = True,
        srcs = srcs,
        # Built through the transition only.
        tags = ["manual"],
        visibility = ["//visibility:private"],
        deps = deps + ["//tools/fuzz:seeds"] + select({
            "//tools/fuzz:coverage_guided": ["//tools/fuzz:libfuzzer"],
            "//conditions:default": ["//tools/fuzz:driver"],
        }),
        data = corpus,
        target_compatible_with = target_compatible_with,
    )
    _sanitized_test(
        name = name,
        args = ["%s/%s" % (native.package_name(), file) for file in corpus] + ["--runs=%d" % runs],
        binary = ":%s_binary" % name,
        size = size,
        # tools/sanitize leaves out what has sanitizers of its own.
        tags = tags + ["fuzz"],
        target_compatible_with = target_compatible_with,
    )
