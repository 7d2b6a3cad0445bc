"""Writes the wheel: make_wheel.py OUTPUT VERSION FILE...

The files are the package's modules and libraries, which are stripped, and terms.
A wheel is a zip of the package and of three files that describe it (Python
Packaging User Guide, binary distribution format). The same files make the same
wheel.
"""

import base64
import hashlib
import pathlib
import platform
import subprocess
import sys
import tempfile
import zipfile

_METADATA = """\
Metadata-Version: 2.1
Name: convlab
Version: {version}
Summary: Convolutions with few channels, on NVIDIA GPUs and CPUs
Requires-Python: >=3.11
"""

_WHEEL = """\
Wheel-Version: 1.0
Generator: convlab
Root-Is-Purelib: false
Tag: {tag}
"""


def stripped(path):
    with tempfile.NamedTemporaryFile() as file:
        subprocess.run(["strip", "--strip-unneeded", "-o", file.name, path], check=True)
        return pathlib.Path(file.name).read_bytes()


def main():
    output, version, *sources = sys.argv[1:]
    # call.c uses the stable interface of this version.
    tag = f"cp311-abi3-linux_{platform.machine()}"
    info = f"convlab-{version}.dist-info"
    files = {}
    for source in sources:
        path = pathlib.Path(source)
        if path.suffix == ".so":
            name = path.name.replace("libconvlab.so", "libconvlab.so.1")
            files[f"convlab/{name}"] = stripped(path)
        else:
            folder = "convlab" if path.suffix == ".py" else f"{info}/licenses"
            files[f"{folder}/{path.name}"] = path.read_bytes()
    files[f"{info}/METADATA"] = _METADATA.format(version=version).encode()
    files[f"{info}/WHEEL"] = _WHEEL.format(tag=tag).encode()
    record = ""
    for name in sorted(files):
        digest = base64.urlsafe_b64encode(hashlib.sha256(files[name]).digest())
        hashed = digest.decode().rstrip("=")
        record += f"{name},sha256={hashed},{len(files[name])}\n"
    record += f"{info}/RECORD,,\n"
    files[f"{info}/RECORD"] = record.encode()
    with zipfile.ZipFile(output, "w", zipfile.ZIP_DEFLATED) as wheel:
        for name in sorted(files):
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            wheel.writestr(entry, files[name])


main()
