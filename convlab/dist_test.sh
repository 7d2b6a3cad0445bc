#!/bin/bash
# The archive as its users have it: its size, the symbols that it shows, and the
# example project, built outside of the tree by pkg-config and by CMake; a program
# that was compiled with the header of version 0.1, and those of the document.
# Usage: dist_test.sh ARCHIVE SYMBOLS OLD_PROGRAM DOCUMENT
set -u -o pipefail
archive=$(readlink -f "$1") symbols=$(readlink -f "$2")
old_program=$(readlink -f "$3") document=$(readlink -f "$4")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() {
  echo "$1"
  exit 1
}

size=$(stat --dereference --format=%s "$archive")
echo "the archive has $size bytes"
[ "$size" -lt 30000000 ] || fail "expected less than 30 MB"
tar --extract --directory "$work" --file "$archive" || exit 1
root=$(echo "$work"/convlab-*)

# The functions of the interface, each with the version that brought it, and no
# others: what the library contains must not meet its user's own copies.
nm --dynamic --defined-only --extern-only --with-symbol-versions "$root/lib/libconvlab.so" |
  awk '$2 != "A" { print $3 }' | sort >"$work/shared"
sort "$symbols" | diff - "$work/shared" || fail "libconvlab.so shows other symbols"
nm --defined-only --extern-only "$root/lib/libconvlab.a" |
  awk 'NF == 3 { print $3 }' | sort >"$work/static"
sed 's/@@.*//' "$symbols" | sort | diff - "$work/static" ||
  fail "libconvlab.a shows other symbols"
readelf --dynamic "$root/lib/libconvlab.so" |
  grep -q 'SONAME.*\[libconvlab.so.1\]' || fail "found no soname libconvlab.so.1"

# What it needs is what the document says: libraries that every system has and,
# where it was built on Debian 12, this version of theirs.
needed=$(readelf --dynamic "$root/lib/libconvlab.so" |
  sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' |
  grep -Evx 'libc\.so\.6|libm\.so\.6|libgcc_s\.so\.1|ld-linux-x86-64\.so\.2')
[ -z "$needed" ] || fail "libconvlab.so needs $needed"
version=$(objdump --dynamic-syms "$root/lib/libconvlab.so" |
  grep -o 'GLIBC_[0-9.]*' | sort --version-sort | tail -n 1)
if [ "$(getconf GNU_LIBC_VERSION)" = "glibc 2.36" ] &&
  ! grep -qF "glibc ${version#GLIBC_} or later" "$document"; then
  fail "libconvlab.so needs $version, and $document says something else"
fi

# Programs that are running can open it (abseil_shared.cc).
if readelf --dynamic "$root/lib/libconvlab.so" | grep -q STATIC_TLS; then
  fail "libconvlab.so has thread-local variables that a process must know before"
fi

cp -r "$root/share/convlab/example" "$work/project"
cd "$work/project" || exit 1
export PKG_CONFIG_PATH=$root/lib/pkgconfig LD_LIBRARY_PATH=$root/lib
# Flags are lists of words.
# shellcheck disable=SC2046
g++ -std=c++17 -Wall -Wextra -Wpedantic -Wshadow -Werror example.cc -o example_cc \
  $(pkg-config --cflags --libs convlab) || fail "example.cc was not built"
# shellcheck disable=SC2046
gcc -std=c99 -Wall -Wextra -Wpedantic -Wshadow -Werror example.c -o example_c \
  $(pkg-config --cflags convlab) "$root/lib/libconvlab.a" \
  -lstdc++ -lpthread -ldl -lrt -lm || fail "example.c was not built"

# A C++ program that has copies of its own of what the archive contains.
cat >shares.cc <<'X'
#include <convlab/convlab.hpp>
#include <memory>
int main() {
  const auto problem = std::make_shared<convlab_problem>();
  *problem = CONVLAB_PROBLEM_INIT;
  const auto plan = std::make_shared<convlab::Plan>(*problem);
  return plan->info().output_height == 1 ? 0 : 1;
}
X
# shellcheck disable=SC2046
g++ -std=c++17 -static-libstdc++ shares.cc -o shares $(pkg-config --cflags convlab) \
  "$root/lib/libconvlab.a" -lpthread -ldl -lrt -lm ||
  fail "a C++ program was not linked with libconvlab.a"
./shares || fail "a C++ program with libconvlab.a failed"

# check PROGRAM LINE: what it prints.
check() {
  local got
  got=$("$1") || fail "$1 failed"
  case $got in
    "convlab "*", kernel $2") ;;
    *) fail "$1 printed '$got', expected '... kernel $2'" ;;
  esac
}
check ./example_cc "general: output 14x14, first 75.5"
check ./example_c "general: corner 4.000, inside 9.000"

# It has declarations of its own, so that it needs no header.
gcc -std=c99 -Wall -Wextra -Wpedantic -Wshadow -Werror "$old_program" -o old_program \
  -L"$root/lib" -lconvlab || fail "$old_program was not linked"
./old_program || fail "$old_program failed"

# printed LANGUAGE FILE: the program that stands in the document's section.
printed() {
  awk -v title="## $1" '/^## / { inside = $0 == title } inside && sub(/^    /, "") || inside && NF == 0' \
    "$document" >"$2"
  [ -s "$2" ] || fail "$document has no program in $1"
}
printed C printed.c
printed C++ printed.cc
# shellcheck disable=SC2046
gcc -Wall -Wextra -Wshadow -Werror printed.c -o printed_c \
  $(pkg-config --cflags --libs convlab) || fail "the document's C was not built"
# shellcheck disable=SC2046
g++ -std=c++17 -Wall -Wextra -Wshadow -Werror printed.cc -o printed_cc \
  $(pkg-config --cflags --libs convlab) || fail "the document's C++ was not built"
./printed_c || fail "the document's C failed"
./printed_cc || fail "the document's C++ failed"

if command -v cmake >/dev/null; then
  if ! cmake -S . -B build -DCMAKE_PREFIX_PATH="$root" >log 2>&1 ||
    ! cmake --build build >>log 2>&1; then
    cat log
    fail "CMake did not build the project"
  fi
  check build/example_cc "general: output 14x14, first 75.5"
  check build/example_c "general: corner 4.000, inside 9.000"
else
  echo "there is no cmake: its files were not tried"
fi
