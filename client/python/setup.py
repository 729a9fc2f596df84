# SPDX-License-Identifier: Apache-2.0
"""Builds the wheel: the package, its extension, and the native libraries it needs in ucm_proxy/lib.

CMake builds everything from the repository around this folder. Libraries that come with every Linux, and
those of RDMA, which belong to the system's drivers, are not carried.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
SYSTEM = re.compile(r"^(ld-linux.*|linux-vdso|lib(c|m|dl|rt|pthread|resolv|gcc_s|ibverbs|rdmacm|nl-3|nl-route-3))\.so")


def version():
    """The version of the project, from its CMakeLists.txt."""
    text = (ROOT / "CMakeLists.txt").read_text()
    return re.search(r"project\(ucm VERSION ([0-9.]+)", text).group(1)


def run(*command):
    """Run a tool; its output is shown when it fails."""
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.stderr.write(done.stdout + done.stderr)
        raise SystemExit(f"setup.py: {command[0]} {command[1]} failed")
    return done.stdout


def soname(library):
    """The name under which others look for a library."""
    found = re.search(r"SONAME.*\[(.+)\]", run("readelf", "-d", library))
    return found.group(1) if found else library.name


def carry_needed(folder):
    """Copy what the libraries in a folder need from the system."""
    for library in list(folder.iterdir()):
        for name, path in re.findall(r"(\S+) => (/\S+)", run("ldd", library)):
            if not SYSTEM.match(name) and not (folder / name).exists():
                shutil.copy2(path, folder / name)


class BuildNative(build_py):
    """Python files, then what CMake builds."""

    def run(self):
        super().run()
        build = pathlib.Path(self.get_finalized_command("build").build_temp).resolve() / "cmake"
        stage = build / "stage"
        package = pathlib.Path(self.build_lib).resolve() / "ucm_proxy"
        run("cmake", "-S", ROOT, "-B", build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
            "-DUCM_WITH_PYTHON=ON", "-DUCM_BUILD_UNIT_TESTS=OFF", f"-DPython3_EXECUTABLE={sys.executable}",
            f"-DCMAKE_INSTALL_PREFIX={stage}", "-DCMAKE_INSTALL_LIBDIR=lib")
        run("cmake", "--build", build, "-j", os.cpu_count() or 1)
        shutil.rmtree(stage, ignore_errors=True)
        run("cmake", "--install", build)
        run("cmake", "--install", build, "--component", "wheel")
        for extension in (stage / "ucm_proxy").glob("_native*.so"):
            shutil.copy2(extension, package / extension.name)
        libraries = package / "lib"
        shutil.rmtree(libraries, ignore_errors=True)
        libraries.mkdir(parents=True)
        for library in sorted((stage / "lib").glob("libucm_*.so*")):
            if not library.is_symlink():
                shutil.copy2(library, libraries / soname(library))
        carry_needed(libraries)


class NativeDistribution(Distribution):
    """Wheels of it are for one kind of machine and one Python."""

    def has_ext_modules(self):
        return True


setup(version=version(), distclass=NativeDistribution, cmdclass={"build_py": BuildNative},
      package_data={"ucm_proxy": ["*.pyi", "py.typed"]})
