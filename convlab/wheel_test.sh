#!/bin/sh
# Tests the wheel with the machine's Python: wheel_test.sh SCRIPT WHEEL DOCUMENT
exec python3 -B "$@"
