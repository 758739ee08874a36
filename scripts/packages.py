# SPDX-License-Identifier: Apache-2.0
"""Builds what a release publishes: `make release`. Two runs on the same commit give the same bytes.

    .venv/bin/python scripts/packages.py [boards|wheel|release|systems|metadata] [--out FOLDER]

tide_ros-*.whl                     the command with its native programs and their libraries, for x86-64 and 64-bit ARM
tide-agent_*.deb                   the agent as a service
tide-ros-*.cdx.json                packages that the wheel installs (CycloneDX); the wheel itself lists its libraries
boards/                            the runtime for build systems of boards, each a folder and an archive:
  arduino/tide_micro_ros/          a library for Arduino (Teensy, too) and PlatformIO, with the port bare, the common
                                   messages, transports, examples
  esp_idf/tide_micro_ros/          a component of ESP-IDF
  zephyr/tide_micro_ros/           a module of Zephyr
  stm32cube/tide_micro_ros/        for projects of STM32Cube, with and without FreeRTOS
  pico/tide_micro_ros/             a library for the Pico SDK
  nuttx/tide_micro_ros/            an application of NuttX
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import importlib.metadata
import json
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.parse
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

import tomli

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomli.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
VERSION, LICENCE, URL = PROJECT["version"], PROJECT["license"], PROJECT["urls"]["Homepage"]
MAINTAINER, MAIL = (PROJECT["maintainers"][0][key] for key in ("name", "email"))
RUNTIME = ROOT / "runtime"
BUILD = ROOT / "build/release"
ARM_BUILD = ROOT / "build/aarch64"
ARM_ROOT = ROOT / "build/sysroot-aarch64"  # made by `scripts/setup.sh release`
TOOLS = Path(sys.executable).parent
NAME = "tide_micro_ros"
TEXT = "Micro-ROS with priorities, chains and bounds"
PARAGRAPH = (
    "Runs sketches written for micro-ROS unchanged, with the same agent. What is urgent goes first, on the board and "
    "on the wire, and tide check says by when it is through."
)
ARCHITECTURES = "sam,samd,mbed,rp2040,mbed_rp2040,mbed_nano,teensy,stm32"  # Cortex-M, which the tests compile for


# ---- metadata ----


def repeated() -> Iterator[tuple[Path, str, str]]:
    """For each file that repeats metadata from pyproject.toml: the file, its text, and the text that it should have."""
    rules = (
        (r"(?<=<version>).*(?=</version>)", VERSION),
        (r"(?<=<maintainer email=).*(?=</maintainer>)", f'"{MAIL}">{MAINTAINER}'),
        (r"(?<=<license>).*(?=</license>)", LICENCE),
        (r"(?<=<url>).*(?=</url>)", URL),
        (r"(?<=VERSION )[\w.]+(?= LANGUAGES)", VERSION),
        (r'(?<=^__version__ = ").*(?=")', VERSION),
        (r'(?<=PACKAGE_CONTACT ").*(?=")', f"{MAINTAINER} <{MAIL}>"),
        (r'(?<=PACKAGE_HOMEPAGE_URL ").*(?=")', URL),
    )
    packages = [ROOT / name for name in ("agent", "ros/tide_rclcpp", "ros/tide_ros", "runtime")]
    others = ("CMakeLists.txt", "agent/packaging/CMakeLists.txt", "tools/tide_tools/__init__.py")
    files = [package / name for package in packages for name in ("CMakeLists.txt", "package.xml")]
    for file in (*files, *(ROOT / name for name in others)):
        text = wanted = file.read_text(encoding="utf-8")
        for pattern, value in rules:
            wanted = re.sub(pattern, lambda _, value=value: value, wanted, flags=re.MULTILINE)
        yield file, text, wanted


# ---- packages for boards ----


def copy_runtime(source: Path) -> None:
    """Copies headers, sources and the bare port into one folder; a build system compiles all of them."""
    for folder in sorted((RUNTIME / "include").iterdir()):
        shutil.copytree(folder, source / folder.name)
    for file in sorted((RUNTIME / "src").rglob("*.[ch]")):
        target = source / "runtime" / file.relative_to(RUNTIME / "src")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(file, target)
    for file in sorted((RUNTIME / "port/bare").glob("*.[ch]")):
        shutil.copy2(file, source / file.name)


def generate_messages(target: Path) -> None:
    """Generates the common messages into a folder that programs add to their include path."""
    with tempfile.TemporaryDirectory() as place:
        messages = Path(place)
        words = [sys.executable, "-m", "tide_tools.main", "generate", "--all-common", "--out", str(messages)]
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
        for package in sorted(path for path in messages.iterdir() if path.is_dir()):
            shutil.copytree(package, target / package.name)
        for file in sorted(messages.glob("*.[ch]")):
            shutil.copy2(file, target / file.name)


def arduino(out: Path, messages: Path) -> Path:
    """Makes one library for Arduino and for PlatformIO; its folder is created anew."""
    library = out / "arduino" / NAME
    shutil.rmtree(library, ignore_errors=True)
    source = library / "src"
    source.mkdir(parents=True)
    copy_runtime(source)
    copy_messages(messages, source)
    port = RUNTIME / "port/arduino"
    for file in sorted(port.glob("*.[hc]*")):
        shutil.copy2(file, source / file.name)
    shutil.copytree(port / "examples", library / "examples")
    shutil.copy2(ROOT / "LICENSE", library / "LICENSE")
    properties = {
        "name": NAME,
        "version": VERSION,
        "author": MAINTAINER,
        "maintainer": f"{MAINTAINER} <{MAIL}>",
        "sentence": TEXT,
        "paragraph": PARAGRAPH,
        "category": "Communication",
        "url": URL,
        "architectures": ARCHITECTURES,
        "includes": "micro_ros_arduino.h",
    }
    (library / "library.properties").write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
    described = {
        "name": NAME,
        "version": VERSION,
        "description": f"{TEXT}. {PARAGRAPH}",
        "keywords": "ros, micro-ros, real-time",
        "license": LICENCE,
        "homepage": URL,
        "authors": {"name": MAINTAINER, "email": MAIL, "maintainer": True},
        "frameworks": ["arduino"],
        "platforms": "*",
        "headers": "micro_ros_arduino.h",
        "build": {"srcDir": "src", "includeDir": "src", "libArchive": True},
    }
    (library / "library.json").write_text(json.dumps(described, indent=2) + "\n")
    return library


# ---- build systems that have the folders include, src, port and messages ----


def copy_messages(messages: Path, target: Path) -> None:
    shutil.copytree(messages, target, dirs_exist_ok=True)


def new_package(folder: Path, messages: Path, ports: tuple[str, ...], inside: str = "") -> Path:
    """Creates the folder anew, with the runtime (below `inside`), these ports of the runtime, and the messages."""
    shutil.rmtree(folder, ignore_errors=True)
    runtime = folder / inside
    for name in ("include", "src"):
        shutil.copytree(RUNTIME / name, runtime / name, ignore=shutil.ignore_patterns("*.md", "CMakeLists.txt"))
    for port in ports:
        for file in sorted((RUNTIME / "port" / port).rglob("*.[ch]")):
            target = runtime / "port" / file.relative_to(RUNTIME / "port")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(file, target)
    copy_messages(messages, folder / "messages")
    shutil.copy2(ROOT / "LICENSE", folder / "LICENSE")
    return folder


def copy_from_port(folder: Path, port: str, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(RUNTIME / "port" / port / name, folder / name)


def esp_idf(out: Path, messages: Path) -> Path:
    folder = new_package(out / "esp_idf/tide_micro_ros", messages, ("freertos", "rtos", "esp_idf"))
    copy_from_port(folder, "esp_idf", "CMakeLists.txt", "Kconfig", "README.md")
    fields = {"version": VERSION, "description": TEXT, "license": LICENCE, "url": URL}
    manifest = "".join(f'{key}: "{value}"\n' for key, value in fields.items())
    end = f'maintainers:\n  - "{MAINTAINER} <{MAIL}>"\ndependencies:\n  idf: ">=5.0"\n'
    (folder / "idf_component.yml").write_text(manifest + end)
    return folder


def zephyr(out: Path, messages: Path) -> Path:
    folder = new_package(out / "zephyr/tide_micro_ros", messages, ("zephyr", "rtos", "cortex_m", "exchange"), "runtime")
    copy_from_port(folder, "zephyr", "CMakeLists.txt", "Kconfig", "zephyr/module.yml")
    copy_from_port(folder, "zephyr", *(f"exchange/{name}" for name in ("CMakeLists.txt", "prj.conf", "main.c")))
    return folder


def stm32cube(out: Path, messages: Path) -> Path:
    folder = new_package(out / "stm32cube" / NAME, messages, ("stm32cube", "bare", "freertos", "rtos"))
    copy_from_port(folder, "stm32cube", "CMakeLists.txt", "README.md", "tide.mk")
    return folder


def pico(out: Path, messages: Path) -> Path:
    folder = new_package(out / "pico" / NAME, messages, ("pico", "bare"))
    copy_from_port(folder, "pico", "CMakeLists.txt")
    return folder


def nuttx(out: Path, messages: Path) -> Path:
    folder = new_package(out / "nuttx/tide_micro_ros", messages, ("nuttx", "rtos", "posix", "exchange"))
    copy_from_port(folder, "nuttx", "Makefile", "Make.defs", "Kconfig")
    copy_from_port(folder, "nuttx", "example/int32_publisher_main.c", "example/exchange_main.c")
    return folder


PACKAGES: dict[str, tuple[Callable[[Path, Path], Path], str]] = {
    "arduino": (arduino, "Arduino, Teensy and PlatformIO"),
    "esp_idf": (esp_idf, "ESP-IDF"),
    "zephyr": (zephyr, "Zephyr"),
    "stm32cube": (stm32cube, "STM32Cube"),
    "pico": (pico, "the Pico SDK"),
    "nuttx": (nuttx, "NuttX"),
}


# ---- the wheel, the agent's package, archives ----


def epoch() -> int:
    """Seconds since 1970, for everything that an archive contains: the time of the commit."""
    told = (
        os.environ.get("SOURCE_DATE_EPOCH")
        or subprocess.run(
            ["git", "log", "-1", "--format=%ct"], cwd=ROOT, capture_output=True, text=True, check=False
        ).stdout
    )
    return int(told or 1_577_836_800)  # in a tree without its history: the year 2020


def run(*words: str | Path, more: Mapping[str, str] | None = None) -> str:
    environment = {
        **os.environ,
        "SOURCE_DATE_EPOCH": str(epoch()),
        "PATH": f"{TOOLS}:{os.environ['PATH']}",
        **(more or {}),
    }
    done = subprocess.run([str(word) for word in words], env=environment, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"packages.py: {words[0]} failed\n{done.stdout}{done.stderr}")
    return done.stdout


def wheel(out: Path, processor: str, build: Path, root: Path = Path("/")) -> Path:
    """Builds one wheel with the programs of a build and the libraries that they need, taken from `root`, the folder of
    a Debian system for that processor. The wheel's tag is the oldest glibc that has every needed symbol, as auditwheel
    determines it."""
    (ROOT / "build").mkdir(exist_ok=True)
    (ROOT / "build/COLCON_IGNORE").touch()  # colcon would take folders that setuptools leaves there for packages
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        more = {"TIDE_WHEEL_BUILD": str(build), "_PYTHON_HOST_PLATFORM": f"linux-{processor}"}
        pip = (sys.executable, "-m", "pip", "wheel", ROOT, "--no-deps", "--no-build-isolation", "-w", place)
        run(*pip, more=more)
        triplet = f"{processor}-linux-gnu"
        libraries = ":".join(str(root / name / triplet) for name in ("lib", "usr/lib"))
        (made,) = place.glob("*.whl")
        run(sys.executable, "-m", "auditwheel", "repair", "-w", place / "repaired", "--ldpaths", libraries, made)
        (repaired,) = (place / "repaired").glob("*.whl")
        run(sys.executable, "-m", "wheel", "unpack", repaired, "-d", place / "unpacked")
        (content,) = (place / "unpacked").iterdir()
        describe_libraries(content, root)
        for file in content.rglob("*"):
            file.chmod(0o755 if file.stat().st_mode & 0o100 else 0o644)
        out.mkdir(parents=True, exist_ok=True)
        run(sys.executable, "-m", "wheel", "pack", content, "-d", out)
        return out / repaired.name


def describe_libraries(content: Path, root: Path) -> None:
    """Writes the licence and the version of each third-party component that a wheel's programs contain. The names of
    Debian's packages are those on this machine. The files for another processor come without a list of packages, but
    with changelogs."""

    def version_of(name: str) -> str:
        if root == Path("/"):
            return run("dpkg-query", "-W", "-f=${Version}", name)
        with gzip.open(root / f"usr/share/doc/{name}/changelog.Debian.gz", "rt", encoding="utf-8") as log:
            return log.readline().partition("(")[2].partition(")")[0]

    packages = {"libcli11-dev"}
    for library in (content / "tide_ros.libs").iterdir():
        name = re.sub(r"-[0-9a-f]{8}(?=\.so)", "", library.name)  # auditwheel adds a part of the checksum to the name
        packages.add(run("dpkg-query", "-S", f"*/lib/*-linux-gnu/{name}").split(":")[0])
    (information,) = content.glob("*.dist-info")
    binding = importlib.metadata.distribution("nanobind")
    parts = [("nanobind", binding.version, f"pkg:pypi/nanobind@{binding.version}")]
    (licence,) = (file for file in binding.files or () if file.name == "LICENSE")
    shutil.copy2(str(binding.locate_file(licence)), information / "licenses/nanobind")
    for name in sorted(packages):
        release = version_of(name)
        parts.append((name, release, f"pkg:deb/debian/{name}@{urllib.parse.quote(release)}"))
        shutil.copy2(root / f"usr/share/doc/{name}/copyright", information / "licenses" / name)
    components = [{"type": "library", "name": name, "version": of, "purl": url} for name, of, url in parts]
    own = {
        "type": "application",
        "name": PROJECT["name"],
        "version": VERSION,
        "licenses": [{"license": {"id": LICENCE}}],
    }
    described = {"bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1, "metadata": {"component": own}}
    shutil.rmtree(
        information / "sboms", ignore_errors=True
    )  # auditwheel's list, which knows only this machine's libraries
    (information / "sboms").mkdir()
    text = json.dumps({**described, "components": components}, indent=1) + "\n"
    (information / f"sboms/{PROJECT['name']}.cdx.json").write_text(text, encoding="utf-8")


def archive(folder: Path) -> Path:
    """Writes the folder as a zip file beside it. The bytes of this file depend only on the folder's contents."""
    target = folder.parent / f"{folder.name}-{VERSION}.zip"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as packed:
        for file in sorted(path for path in folder.rglob("*") if path.is_file()):
            entry = zipfile.ZipInfo(f"{folder.name}/{file.relative_to(folder)}", time.gmtime(epoch())[:6])
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o100644 << 16
            packed.writestr(entry, file.read_bytes())
    return target


def boards(out: Path, names: Iterable[str]) -> None:
    out.mkdir(parents=True, exist_ok=True)
    (out / "COLCON_IGNORE").touch()  # because colcon takes some of these folders for packages
    with tempfile.TemporaryDirectory() as place:
        messages = Path(place)
        generate_messages(messages)
        for name in names:
            make, whom = PACKAGES[name]
            folder = make(out, messages)
            if not (folder / "README.md").exists():  # the page about this board, whose links lead to other pages
                page = (ROOT / f"docs/boards/{name}.md").read_text(encoding="utf-8")
                text = re.sub(r"\[([^]]*)\]\((?!http)[^)]*\)", r"\1", page)
                (folder / "README.md").write_text(text, encoding="utf-8")
            print(f"{archive(folder)}: {sum(1 for _ in folder.rglob('*.c'))} sources in C; for {whom}")


# ---- a release ----


def release(out: Path) -> None:
    """Builds everything that a release publishes; the tool of each channel checks it."""
    if any(text != wanted for _, text, wanted in repeated()):
        raise SystemExit("packages.py: files differ from pyproject.toml; run scripts/packages.py metadata")
    if out.exists():
        raise SystemExit(f"packages.py: {out} is there already; a release is made in a new folder")
    boards(out / "boards", PACKAGES)
    native = wheel(out, "x86_64", BUILD)
    wheels = [native, wheel(out, "aarch64", ARM_BUILD, ARM_ROOT)]
    for program in (("tide-sim", "--seed", "4711"), ("tide-agent", "--version")):
        emulated = run("qemu-aarch64-static", "-L", ARM_ROOT, ARM_BUILD / "bin" / program[0], *program[1:])
        if emulated != run(BUILD / "bin" / program[0], *program[1:]):
            raise SystemExit(f"packages.py: {program[0]} prints something else on 64-bit ARM")
    run("cpack", "-G", "DEB", "--config", BUILD / "CPackConfig.cmake", "-B", out)
    shutil.rmtree(out / "_CPack_Packages")
    (agent,) = out.glob("*.deb")
    with tempfile.TemporaryDirectory() as folder:
        fresh = Path(folder) / "bin/python"
        run(sys.executable, "-m", "venv", "--without-pip", folder)
        run(sys.executable, "-m", "pip", "--python", fresh, "install", "-q", native)
        run(fresh.with_name("tide"), "check", ROOT / "examples/three_chains/system.toml")
        brings = out / f"tide-ros-{VERSION}.cdx.json"
        run(
            "cyclonedx-py", "environment", "--output-reproducible", "--pyproject", "pyproject.toml", "-o", brings, fresh
        )
        brings.write_text(brings.read_text(encoding="utf-8").replace(f"{out.as_uri()}/", ""), encoding="utf-8")
        packed = Path(folder) / "packed"
        packed.mkdir()
        library = shutil.copytree(out / "boards/arduino" / NAME, packed / NAME)
        described = json.loads((library / "library.json").read_text(encoding="utf-8"))
        del described["license"]  # pio fails if it cannot fetch the list of licences
        (library / "library.json").write_text(json.dumps(described), encoding="utf-8")
        idf = ("--project-dir", out / "boards/esp_idf/tide_micro_ros", "--dest-dir", packed, "--name", NAME)
        for check in (
            ("twine", "check", "--strict", *wheels),
            # Only packages in Debian need a changelog of Debian's own and a manual page.
            (
                "lintian",
                "--fail-on=error,warning",
                "--suppress-tags=no-changelog,no-manual-page",
                "--allow-root",
                agent,
            ),
            ("pio", "pkg", "pack", library, "-o", packed),
            ("compote", "component", "pack", *idf),
        ):
            run(*check)
            print(f"{check[0]}: passed")
    files = [*out.glob("*.*"), *out.glob("boards/*/*.zip")]
    sums = [f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.relative_to(out)}\n" for file in sorted(files)]
    (out / "SHA256SUMS").write_text("".join(sums), encoding="utf-8")
    print("".join(sums), end="")


# ---- systems ----

SUITES = {"Debian 12": "bookworm", "Debian 13": "trixie", "Ubuntu 24.04": "noble", "Ubuntu 26.04": "resolute"}
PYTHONS = tuple(f"3.{minor}" for minor in range(10, 15))
KILTED = ("ros-kilted-rclpy[fastrtps]", "ros-kilted-common-interfaces", "numpy", "mcap")
SYSTEM = platform.freedesktop_os_release()["PRETTY_NAME"].split(" (")[0]
BY_SOURCE = "not run: this distribution has no wheels; rclpy comes from a workspace built from its sources"
NETWORK = ("/etc/resolv.conf", "/etc/pip.conf", "/etc/ssl/certs/ca-certificates.crt")  # how pip finds its registry
STEPS = ("installation", "check", "simulate", "agent", "ROS 2", "generate", "run")


def tried(words: Iterable[object]) -> str:
    """Runs a command. Returns its time in seconds or, if it failed, its status and last line."""
    # The first two variables are set by the ROS 2 wheels in this Python's environment, for themselves only.
    own = ("LD_LIBRARY_PATH", "_ROS_WHEELS_BOOTSTRAP_COMPLETE", "PYTHONPATH")
    environment = {name: value for name, value in os.environ.items() if name not in own}
    began = time.monotonic()
    done = subprocess.run(
        [*map(str, words)], capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False, env=environment
    )
    if done.returncode == 0:
        return f"{time.monotonic() - began:.0f} s"
    last = (done.stderr.strip() or done.stdout.strip() or "nothing printed").splitlines()[-1]
    return f"status {done.returncode}: {last.replace('|', '/')}"


def steps(within: tuple[object, ...], python: object, folder: str, wheel: str, ros: tuple[str, ...]) -> list[str]:
    """For each step of a user, in a new environment in `folder`: the result of `tried`, or an empty text if it was not
    run because an earlier step had failed."""
    tide, example, out = f"{folder}/bin/tide", f"{folder}/three_chains/system.toml", f"{folder}/run"
    copied = f"cp -r $(find {folder} -path '*_tree/examples/three_chains') {folder}/"
    extras = ros or (f"{wheel}[run]",)
    commands = {
        "installation": f"{python} -m venv {folder} && {folder}/bin/pip install -q {wheel} && {copied}",
        "check": f"{tide} check {example}",
        "simulate": f"{tide} simulate {example}",
        "agent": f"{tide} agent --version",
        "ROS 2": f"{folder}/bin/pip install -q {' '.join(map(shlex.quote, extras))}",
        "generate": f"{tide} generate std_msgs --out {folder}/messages",
        # The run's status is not tested, because it is that of the verdict, which a busy machine may change.
        "run": f"{tide} run {example} --periods 5 --out {out}; test -s {out}/results.json",
    }
    found: list[str] = []
    for name in STEPS:
        stopped = (name != "installation" and found[0][-1] != "s") or (STEPS.index(name) > 4 and found[4][-1] != "s")
        found.append("" if stopped else tried([*within, "sh", "-c", commands[name]]))
    return found


def systems(out: Path, native: Path, interpreters: Iterable[Path]) -> None:
    """Writes a table of what the wheel does on each minimal system, Python and ROS 2 distribution. It needs root,
    mmdebstrap and the package registries. `interpreters` are those of the Pythons that are not on the path."""
    rows: list[tuple[str, str, str, list[str]]] = []
    own = f"{SYSTEM} of this machine"
    with tempfile.TemporaryDirectory(dir=out) as place:
        for system, suite in SUITES.items():
            root = Path(place) / suite
            made = tried(["mmdebstrap", "--variant=minbase", "--include=python3-venv,ca-certificates", suite, root])
            if not made.endswith(" s"):
                rows.append((system, "", "Jazzy", [f"not run: {made}"]))
                continue
            shutil.copy2(native, root / native.name)
            for file in NETWORK:
                if Path(file).exists():
                    shutil.copyfile(file, f"{root}{file}")
            mounts = f"mount -t proc proc {root}/proc && mount -t tmpfs shm {root}/dev && mkdir {root}/dev/shm"
            nodes = f"touch {root}/dev/null {root}/dev/urandom {root}/dev/ptmx && mkdir {root}/dev/pts"
            binds = " && ".join(f"mount --bind /dev/{name} {root}/dev/{name}" for name in ("null", "urandom", "pts"))
            link = f"rm {root}/dev/ptmx && ln -s pts/ptmx {root}/dev/ptmx"
            inside = f'{mounts} && {nodes} && {binds} && {link} && exec chroot {root} "$@"'
            within = ("unshare", "--mount", "sh", "-c", inside, "sh")
            version = run(*within, "python3", "--version").split()[-1]
            rows.append((system, version, "Jazzy", steps(within, "python3", "/v", f"/{native.name}", ())))
        for wanted in PYTHONS:
            given = [path for path in interpreters if path.name == f"python{wanted}"]
            python = str(given[0]) if given else shutil.which(f"python{wanted}")
            found = ["not run: no such Python here"]
            if python:
                found = steps((), python, f"{place}/{wanted}", str(native), ())
            rows.append((own, wanted, "Jazzy", found))
            if python and wanted == "3.12":  # the Python of the wheels of Kilted
                rows.append((own, wanted, "Kilted", steps((), python, f"{place}/kilted", str(native), KILTED)))
    rows += [(own, "", name, [BY_SOURCE]) for name in ("Lyrical", "Rolling")]
    table = [["system", "Python", "ROS 2 distribution", *STEPS], ["---"] * (3 + len(STEPS))]
    table += [[*row[:3], *row[3], *[""] * (len(STEPS) - len(row[3]))] for row in rows]
    text = "".join(f"| {' | '.join(row)} |\n" for row in table)
    (out / "systems.md").write_text(text, encoding="utf-8")
    print(text, end="")


CHOICES = ("boards", "wheel", "metadata", "release", "systems")


def main() -> None:
    parser = argparse.ArgumentParser(description="Make what a release publishes.")
    parser.add_argument("what", nargs="?", default="boards", choices=CHOICES)
    parser.add_argument("--out", type=Path, help="folder that receives it (default: dist; for boards dist/boards)")
    parser.add_argument("--python", type=Path, action="append", default=[], help="systems: an interpreter, python3.N")
    parser.add_argument("--only", choices=PACKAGES, help="name of the only package for boards")
    arguments = parser.parse_args()
    out = (arguments.out or ROOT / "dist").resolve()
    if arguments.what == "metadata":
        for file, _, wanted in repeated():
            file.write_text(wanted, encoding="utf-8")
    elif arguments.what == "wheel":
        print(wheel(out, os.uname().machine, Path(os.environ.get("TIDE_WHEEL_BUILD", BUILD))))
    elif arguments.what == "release":
        release(out)
    elif arguments.what == "systems":
        systems(out, max(out.glob(f"tide_ros-*{os.uname().machine}.whl")), arguments.python)
    else:
        boards(arguments.out or ROOT / "dist/boards", [arguments.only] if arguments.only else PACKAGES)


if __name__ == "__main__":
    main()
