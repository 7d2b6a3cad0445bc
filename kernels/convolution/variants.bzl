"""The ladder: every variant of the convolution, in the order of its rungs.

Adding a kernel is a file `<backend>/<name>.cc` that defines the Variant
k<Name> (im2col_eigen: kIm2colEigen), and a row here. Library target, table,
tests, milestones and reports follow from the row.
"""

def _row(name, backend, deps = []):
    return struct(name = name, backend = backend, deps = deps)

LADDER = [
    _row("naive", "cpu"),
    _row("naive_parallel", "cpu"),
    _row("im2col_eigen", "cpu", ["@eigen"]),
]

def _symbol(row):
    return "k" + "".join([word.capitalize() for word in row.name.split("_")])

def variant_libraries(backend):
    """One target per variant of `backend`, so that each compiles and rebuilds alone."""
    for row in LADDER:
        if row.backend == backend:
            native.cc_library(
                name = row.name,
                srcs = [row.name + ".cc"],
                deps = [
                    "//common/parallel",
                    "//common/status",
                    "//kernels/convolution",
                    "@abseil",
                ] + row.deps,
                visibility = ["//kernels/convolution:__pkg__"],
            )

def variant_table(name, hdrs, visibility):
    """The C++ table of all variants, generated: no registration at start-up."""
    declarations = "".join([
        "namespace %s { extern const Variant %s; }\n" % (row.backend, _symbol(row))
        for row in LADDER
    ])
    pointers = "".join(["    &%s::%s,\n" % (row.backend, _symbol(row)) for row in LADDER])
    native.genrule(
        name = name + "_source",
        outs = [name + ".cc"],
        cmd = """cat > $@ <<'END'
// Generated from variants.bzl.
#include "kernels/convolution/%s"

namespace convlab {
%s
absl::Span<const Variant* const> Variants() {
  static constexpr const Variant* kTable[] = {
%s  };
  return kTable;
}

}  // namespace convlab
END
""" % (hdrs[0], declarations, pointers),
    )
    native.cc_library(
        name = name,
        srcs = [name + ".cc", "find_variant.cc"],
        hdrs = hdrs,
        deps = [
            ":convolution",
            "@abseil",
        ] + ["//kernels/convolution/%s:%s" % (row.backend, row.name) for row in LADDER],
        visibility = visibility,
    )
