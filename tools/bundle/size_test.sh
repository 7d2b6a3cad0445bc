#!/bin/bash
# The default build's bundle stays small enough to copy from place to place: each
# program that runs kernels holds all of them.
set -u
most=60000000
bytes=$(stat --dereference --format=%s tools/bundle.tar.gz)
if [ "$bytes" -gt $most ]; then
  echo "the bundle has $bytes bytes, expected at most $most"
  exit 1
fi
