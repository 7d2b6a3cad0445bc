#!/bin/sh
# Installs the Debian packages that building, testing and running need.
set -eu

usage() {
  cat <<'END'
Usage: tools/setup.sh [--check] [--developer]

Installs every Debian package that building, testing and running need, the
Fashion-MNIST data set among them. Does nothing, and needs neither root nor the
network, when all are there.

  --check       install nothing; list what is missing and exit 1 if anything is
  --developer   also the tools that .ci/run checks format, style and pages with
END
}

# The build; the libraries of third_party/system_libraries.bzl; zip, without
# which Bazel drops the outputs of failed tests (of a fuzz test: its input); xz,
# with which the bundle is packed; Open MPI, for runs on several processes;
# Python, which packs the library's wheel, its headers, and
# NumPy and CMake, with which others use the library; bubblewrap, in which
# contributed kernels run; weasyprint for the reports' PDF, with a font that has
# all their characters; the data set.
packages="g++ git pkg-config bazel-bootstrap bazel-rules-java bazel-skylib \
libabsl-dev libeigen3-dev libgflags-dev libhwy-dev googletest nlohmann-json3-dev \
libdnnl-dev libonnx-dev libprotobuf-dev protobuf-compiler libseccomp-dev \
libsqlite3-dev zlib1g-dev nettle-dev zip xz-utils libopenmpi-dev openmpi-bin \
python3 libpython3-dev python3-numpy cmake \
bubblewrap weasyprint fonts-dejavu-core dataset-fashion-mnist"
developer_packages="clang-format clang-tidy shellcheck chromium"

check=false
developer=false
for argument; do
  case $argument in
    --check) check=true ;;
    --developer)
      packages="$packages $developer_packages"
      developer=true
      ;;
    -h | --help) usage; exit 0 ;;
    *)
      echo "tools/setup.sh: unknown argument '$argument'; --help lists them" >&2
      exit 2
      ;;
  esac
done

if ! command -v dpkg-query >/dev/null; then
  echo "tools/setup.sh: this is not a Debian system; install the equivalents of: $packages" >&2
  exit 1
fi

# What checks pages for obstacles to their readers is no Debian package; without
# npm that check is skipped.
get_axe() {
  if ! $developer || $check || ! command -v npm >/dev/null; then return; fi
  if [ -f "$(npm root --global 2>/dev/null)/axe-core/axe.min.js" ]; then return; fi
  npm install --global --silent axe-core >/dev/null 2>&1 ||
    echo "tools/setup.sh: npm cannot install axe-core; the pages' accessibility will not be checked"
}

missing=
count=0
for package in $packages; do
  count=$((count + 1))
  status=$(dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$status" = installed ] || missing="$missing $package"
done

if [ -z "$missing" ]; then
  get_axe
  echo "tools/setup.sh: all $count packages are installed"
  exit 0
fi
if $check; then
  echo "tools/setup.sh: missing:$missing"
  exit 1
fi

if [ "$(id -u)" -eq 0 ]; then
  as_root=
elif command -v sudo >/dev/null; then
  as_root=sudo
else
  echo "tools/setup.sh: needs root or sudo to install:$missing" >&2
  exit 1
fi

echo "tools/setup.sh: installing$missing"
$as_root apt-get update --quiet
# sudo does not pass variables on. $missing is a list of words.
# shellcheck disable=SC2086
$as_root env DEBIAN_FRONTEND=noninteractive \
  apt-get install --quiet --yes --no-install-recommends $missing
get_axe
echo "tools/setup.sh: done"
