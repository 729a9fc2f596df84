# SPDX-License-Identifier: Apache-2.0
# Warnings, sanitizers and how our targets are declared.

add_compile_definitions(_GNU_SOURCE)
add_compile_options(
    -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Wcast-qual
    -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wundef)
if(UCM_WERROR)
    add_compile_options(-Werror)
endif()
if(CMAKE_C_COMPILER_ID MATCHES "Clang")
    add_compile_options(-Wthread-safety)
endif()
if(UCM_SANITIZE)
    add_compile_options(
        -fsanitize=${UCM_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
    add_link_options(-fsanitize=${UCM_SANITIZE})
endif()

# uc_version_script(target map): export what the map lists and nothing else.
function(uc_version_script target map)
    target_link_options(
        ${target} PRIVATE LINKER:--version-script=${CMAKE_CURRENT_SOURCE_DIR}/${map} LINKER:-z,defs)
    if(UCM_SANITIZE)
        # Sanitizer runtimes are resolved by the executable.
        target_link_options(${target} PRIVATE LINKER:-z,undefs)
    endif()
    set_target_properties(${target} PROPERTIES LINK_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${map})
endfunction()

# uc_add_test(name SOURCES … LIBRARIES … [ALLOC_COUNT] [FAKE_ALLOC] [FAULT_FABRIC] [THREADS] [LABELS …] [TIMEOUT s]): one Check
# executable per suite, so that a crash is one red line. FAKE_ALLOC wraps the allocator (test/fake/fake_alloc.h),
# FAULT_FABRIC the transports (test/fake/fault_fabric.h),
# ALLOC_COUNT counts allocations (test/fake/alloc_count.h). THREADS: the cases do not survive fork.
function(uc_add_test name)
    cmake_parse_arguments(arg "ALLOC_COUNT;FAKE_ALLOC;FAULT_FABRIC;THREADS" "TIMEOUT" "SOURCES;LIBRARIES;LABELS" ${ARGN})
    if(NOT arg_TIMEOUT)
        set(arg_TIMEOUT 60)
    endif()
    if(NOT arg_LABELS)
        set(arg_LABELS unit)
    endif()
    add_executable(${name} ${arg_SOURCES})
    target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR})
    target_link_libraries(${name} PRIVATE ${arg_LIBRARIES} PkgConfig::CHECK Threads::Threads)
    if(arg_ALLOC_COUNT)
        target_sources(${name} PRIVATE ${CMAKE_SOURCE_DIR}/test/fake/alloc_count.c)
    endif()
    if(arg_FAKE_ALLOC)
        target_sources(${name} PRIVATE ${CMAKE_SOURCE_DIR}/test/fake/fake_alloc.c)
        target_link_options(${name} PRIVATE
            LINKER:--wrap=malloc LINKER:--wrap=calloc LINKER:--wrap=realloc)
    endif()
    if(arg_FAULT_FABRIC)
        foreach(part fabric endpoint region target)
            target_sources(${name} PRIVATE ${CMAKE_SOURCE_DIR}/test/fake/fault_${part}.c)
        endforeach()
        target_link_options(${name} PRIVATE LINKER:--wrap=uc_fabric_find)
    endif()
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/test)
    add_test(NAME ${name} COMMAND ${name})
    set_tests_properties(${name} PROPERTIES TIMEOUT ${arg_TIMEOUT} LABELS "${arg_LABELS}")
    if(arg_THREADS OR UCM_SANITIZE MATCHES "thread")
        set_tests_properties(${name} PROPERTIES ENVIRONMENT "CK_FORK=no")
    endif()
endfunction()
