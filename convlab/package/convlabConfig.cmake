# Targets: convlab::convlab, the shared library, and convlab::static.
get_filename_component(_convlab_root "${CMAKE_CURRENT_LIST_DIR}/../../.."
                       ABSOLUTE)
if(NOT TARGET convlab::convlab)
  add_library(convlab::convlab SHARED IMPORTED)
  set_target_properties(
    convlab::convlab
    PROPERTIES IMPORTED_LOCATION "${_convlab_root}/lib/libconvlab.so"
               IMPORTED_SONAME "libconvlab.so.1"
               INTERFACE_INCLUDE_DIRECTORIES "${_convlab_root}/include")
  add_library(convlab::static STATIC IMPORTED)
  set_target_properties(
    convlab::static
    PROPERTIES IMPORTED_LOCATION "${_convlab_root}/lib/libconvlab.a"
               INTERFACE_INCLUDE_DIRECTORIES "${_convlab_root}/include"
               INTERFACE_LINK_LIBRARIES "stdc++;pthread;dl;rt;m")
endif()
unset(_convlab_root)
