"""The kernels' areas, and how many mutants each is given.

An area is a set of files. Plans of GPU kernels are left out: they are host code
with tests of their own.
"""

import re
import subprocess

# area: (patterns of its files, the mutants drawn). About as the areas' lines,
# but no area has fewer than five, and the lessons, of which each compiles by
# itself, have more.
AREAS = {
    "cpu": (r"kernels/convolution/cpu/\w+\.(cc|h)", 46),
    "layers cpu": (r"kernels/layers/\w+\.cc", 12),
    "compiled cpu": (r"kernels/compiled/cpu_compiled\.cc", 6),
    "lessons": (r"kernels/convolution/cuda/lessons/\w+\.(cu|cuh|h)", 44),
    "direct": (r"kernels/convolution/cuda/direct/\w+\.(cu|cuh)", 14),
    "implicit": (r"kernels/convolution/cuda/implicit/\w+\.(cu|cuh)", 12),
    "few_images": (r"kernels/convolution/cuda/few_images/\w+\.(cu|cuh)", 16),
    "split": (r"kernels/convolution/cuda/split/\w+\.(cu|cuh)", 16),
    "strips": (r"kernels/convolution/cuda/strips/\w+\.(cu|cuh)", 20),
    "wgmma": (r"kernels/convolution/cuda/wgmma/(\w+\.(cu|cuh)|ring\.h|shape\.h)", 18),
    "lib": (r"kernels/(convolution/cuda/lib/(\w+\.cuh|division\.h|scaling\.h|constant_memory\.h)"
            r"|cuda/\w+\.cuh)", 16),
    "layers gpu": (r"kernels/layers/cuda/\w+\.(cu|cuh)", 16),
    "compiled gpu": (r"kernels/compiled/cuda/\w+\.(cu|cuh)", 8),
}


def files_of(area):
    """The area's files, from the root of the repository."""
    listed = subprocess.run(["git", "ls-files", "kernels"], capture_output=True, text=True,
                            check=True).stdout.split()
    pattern = re.compile(AREAS[area][0] + "$")
    return [path for path in listed if pattern.match(path) and "_test." not in path]


def area_of(path):
    for area, (pattern, _) in AREAS.items():
        if re.match(pattern + "$", path):
            return area
    raise ValueError(f"{path} is in no area")

