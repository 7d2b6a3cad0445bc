#!/bin/sh
# Tests the wheel with the machine's Python: wheel_test.sh SCRIPT WHEEL
exec python3 -B "$1" "$2"
