#!/bin/bash
# A kernel that is linked into a program must define nothing that others rely on:
# with a clock, an allocator, CUDA functions or a timer of its own it could make
# any time. So the variants' objects define
#   - strong symbols in their own namespaces, convlab::cpu and convlab::cuda,
#     alone, and only such as no other object of ours defines;
#   - weak symbols, which headers bring, only where no other object of ours and no
#     library of the program defines the same as a strong one.
# The objects of a thief, which defines some of each, show that this is found.
# Usage: symbols_test.sh KERNELS OTHERS THIEF PROGRAM, the first three of them
# files with lists of objects.
set -u -o pipefail
kernels=$1 others=$2 thief=$3 program=$4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() {
  echo "$1"
  exit 1
}

# Prints the type, the mangled name and the file of each global symbol that the
# listed objects define.
symbols() {
  xargs nm --defined-only --extern-only --format=posix --print-file-name <"$1" |
    awk 'NF >= 3 { sub(/\[.*$/, "", $1); sub(/:$/, "", $1); print $3, $2, $1 }'
}

# What others define strongly: our objects, and the libraries that the program
# is linked with.
{
  symbols "$others" | awk '$1 !~ /[VWuvw]/ { print $2 }'
  ldd "$program" | grep -o '/[^ ]*' | while read -r library; do
    nm --dynamic --defined-only --extern-only --format=posix "$library" |
      awk '$2 !~ /[VWvw]/ { sub(/@.*/, "", $1); print $1 }'
  done
  # C's, which libraries define weakly or by other names.
  printf '%s\n' main malloc free calloc realloc clock_gettime gettimeofday time
} | sort -u >"$work/taken"
grep -q '^_ZNSt6chrono3_V212steady_clock3nowEv$' "$work/taken" ||
  fail "found no clock among what libraries define"
grep -q '^_ZN7convlab6HostNs' "$work/taken" ||
  fail "found no timer among what our objects define"

# Prints what a list of objects must not define.
offences() {
  symbols "$1" | sort -u >"$work/defined"
  # Taken by others, strong or weak.
  awk 'NR == FNR { taken[$1] = 1; next } $2 in taken' "$work/taken" "$work/defined"
  # Strong, and not in the namespaces: nvcc's names of kernels have them too.
  # A sanitizer adds names of its own.
  awk '$1 !~ /[VWuv]/ && $2 !~ /^__odr_asan/ &&
       $2 !~ /^_Z[A-Z]*7convlab(3cpu|4cuda)/ &&
       $2 !~ /^_ZN?K?[A-Za-z0-9_]*__device_stub__ZN7convlab4cuda/' "$work/defined"
  # Weak, and not of C++: headers bring no such.
  awk '$1 ~ /[VWuv]/ && $2 !~ /^(_Z|DW\.ref\.)/' "$work/defined"
}

offences "$kernels" | sort -u >"$work/found"
if [ -s "$work/found" ]; then
  echo "kernels define what is not theirs (type, symbol, object):"
  c++filt <"$work/found"
  exit 1
fi
[ "$(symbols "$kernels" | wc -l)" -gt 50 ] || fail "found no kernels"

offences "$thief" | sort -u >"$work/found"
for symbol in _ZNSt6chrono3_V212steady_clock3nowEv malloc main cudaEventRecord \
  _Znwm _ZN7convlab6HostNs; do
  grep -q " $symbol" "$work/found" || fail "did not find that $symbol was defined"
done
