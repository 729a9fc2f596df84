# SPDX-License-Identifier: Apache-2.0
# R-18.6: a name that is registered twice fails the build. Run with cmake -P; it has to fail.
cmake_minimum_required(VERSION 3.22)
include(${CMAKE_CURRENT_LIST_DIR}/../../../deploy/cmake/UcmRegistry.cmake)
ucm_add_routing(twice table_a a.c)
ucm_add_routing(once table_b b.c)
ucm_add_routing(twice table_c c.c)
message("accepted")
