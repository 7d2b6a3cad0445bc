"""Forwards rules_cc's macros to the C++ rules built into Bazel 4.

Debian's own bazel-rules-cc does not load in its Bazel 4.2.3, and Bazel's C++
rules refer to @rules_cc by name.
"""

cc_binary = native.cc_binary
cc_import = native.cc_import
cc_library = native.cc_library
cc_proto_library = native.cc_proto_library
cc_test = native.cc_test
cc_toolchain = native.cc_toolchain
cc_toolchain_suite = native.cc_toolchain_suite
fdo_prefetch_hints = native.fdo_prefetch_hints
fdo_profile = native.fdo_profile
objc_import = native.objc_import
objc_library = native.objc_library
