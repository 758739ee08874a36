# SPDX-License-Identifier: Apache-2.0
"""Packages for the operating systems and SDKs of boards, for each core that an installed compiler supports. The
package's own sources compile without a warning against declarations of the system's names (in folders of
runtime/tests/port), and a program links except for those names."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import pytest
from projects import ROOT, run

DECLARATIONS = ROOT / "runtime/tests/port"
KERNELS = DECLARATIONS / "rtos"  # declarations for FreeRTOS and Zephyr


@dataclass(frozen=True)
class Core:
    """A core and the flags of its compiler, which comes from this machine's package archive. Linking here only checks
    names."""

    compiler: str
    flags: tuple[str, ...]
    link: tuple[str, ...]
    own: tuple[str, ...] = ()  # names that the board's system has besides the declared ones


def arm(*flags: str) -> Core:
    return Core("arm-none-eabi-gcc", ("-mthumb", *flags), ("--specs=nosys.specs",))


def riscv(architecture: str, *own: str) -> Core:
    flags = (f"-march={architecture}", "-mabi=ilp32", "--specs=picolibc.specs")
    return Core("riscv64-unknown-elf-gcc", flags, ("-nostartfiles", "-Wl,--entry=main"), ("stdout", *own))


OF_IDF = ("__atomic_exchange_1", "__atomic_fetch_add_4")  # ESP-IDF has these for chips without atomic instructions
# Arithmetic functions of the compiler's library, which is not linked here; an ESP8266 has them in its ROM.
OF_ITS_ROM = ("__divdi3", "__divsi3", "__muldi3", "__udivdi3", "__udivsi3", "__umodsi3", "__umulsidi3")
CORES = {
    "cortex-m0plus": arm("-mcpu=cortex-m0plus"),
    "cortex-m3": arm("-mcpu=cortex-m3"),
    "cortex-m4f": arm("-mcpu=cortex-m4", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16"),
    "cortex-m7": arm("-mcpu=cortex-m7", "-mfloat-abi=hard", "-mfpu=fpv5-d16"),
    "cortex-m33": arm("-mcpu=cortex-m33", "-mfloat-abi=hard", "-mfpu=fpv5-sp-d16"),
    "rv32imac": riscv("rv32imac"),  # ESP32-C6
    "rv32imc": riscv("rv32imc", *OF_IDF),  # ESP32-C3
    # ESP8266. No packaged compiler supports other Xtensa cores, such as those of ESP32 and S3, which also have atomic
    # instructions.
    "lx106": Core(
        "xtensa-lx106-elf-gcc",
        ("-mlongcalls", "--specs=/usr/lib/xtensa-lx106-elf/picolibc.specs"),
        ("-nostartfiles", "-Wl,--entry=main"),
        ("stdout", *OF_IDF, *OF_ITS_ROM),
    ),
}
ALWAYS = ["-Os", "-ffunction-sections", "-fdata-sections", "-std=gnu11", "-Wall", "-Wextra", "-Werror"]
CUSTOM = "rmw_uros_set_custom_transport(true, {args}, {name}_open, {name}_close, {name}_write, {name}_read)"
PROGRAM = """
#include <rcl/rcl.h>
#include <rclc/executor.h>
#include <rclc/rclc.h>
#include <rmw_microros/rmw_microros.h>
#include <std_msgs/msg/int32.h>
{includes}
int main(void) {{
  rcl_allocator_t allocator = rcl_get_default_allocator();
  rclc_support_t support;
  rcl_node_t node;
  rcl_publisher_t publisher;
  rclc_executor_t executor;
  rcl_init_options_t options = rcl_get_zero_initialized_init_options();
  if (rcl_init_options_init(&options, allocator) != RCL_RET_OK) return 1;
  {begin};
  if (rclc_support_init_with_options(&support, 0, NULL, &options, &allocator) != RCL_RET_OK) return 2;
  if (rclc_node_init_default(&node, "node", "", &support) != RCL_RET_OK) return 3;
  const rosidl_message_type_support_t *type = ROSIDL_GET_MSG_TYPE_SUPPORT(std_msgs, msg, Int32);
  if (rclc_publisher_init_default(&publisher, &node, type, "t") != RCL_RET_OK) return 4;
  if (rclc_executor_init(&executor, &support.context, 1, &allocator) != RCL_RET_OK) return 5;
  return (int)rclc_executor_spin(&executor);
}}
"""


@dataclass(frozen=True)
class Case:
    """A package and a selection of its sources."""

    package: str  # name of the folder below dist/boards
    cores: tuple[str, ...]
    sources: tuple[str, ...]
    includes: tuple[str, ...]  # sources of the package
    declarations: tuple[Path, ...]
    program: tuple[str, str]  # the program's entry point and the text before it
    defines: tuple[str, ...] = ()
    runtime: str = ""
    own: tuple[str, ...] = field(default=())  # names that the user's project must define


FREERTOS = ("port/freertos/freertos.c", *(f"port/rtos/{name}.c" for name in ("platform", "lanes", "link")))
BARE = ("port/bare/platform.c", "port/bare/atomics.c")
CUBE = ("stm32cube/tide_micro_ros", ("cortex-m4f", "cortex-m7"))
CUBE_PROGRAM = (
    '#include "main.h"\n#include "cubemx_transport.h"\nstatic UART_HandleTypeDef huart3;',
    f"(void){CUSTOM.format(args='&huart3', name='cubemx_transport')}",
)
ZEPHYR = ("runtime/port/zephyr/zephyr.c", *(f"runtime/port/rtos/{name}.c" for name in ("platform", "lanes", "link")))
ZEPHYR_CORES = ("cortex-m3", "cortex-m4f", "cortex-m7", "cortex-m33")
ZEPHYR_PROGRAM = (
    "#include <zephyr/kernel.h>\n#include <microros_transports.h>",
    "(void)rmw_uros_set_custom_transport(MICRO_ROS_FRAMING_REQUIRED, &default_params, zephyr_transport_open,"
    " zephyr_transport_close, zephyr_transport_write, zephyr_transport_read)",
)
ZEPHYR_INCLUDES = ("runtime/port/cortex_m", "runtime/port/zephyr/include", "runtime/port/exchange")


def zephyr(link: str, sources: tuple[str, ...], program: tuple[str, str], *defines: str) -> Case:
    uart = "TIDE_LINK_UART=1" if link == "UART_ASYNC" else "TIDE_LINK_UART=0"
    return Case(
        "zephyr/tide_micro_ros",
        ZEPHYR_CORES,
        (*ZEPHYR, *sources),
        ZEPHYR_INCLUDES,
        (KERNELS,),
        program,
        (f"CONFIG_TIDE_LINK_{link}=1", uart, *defines),
        runtime="runtime",
        own=("fake_device",),
    )


UART = ("runtime/port/zephyr/uart.c", "runtime/port/cortex_m/uart.c")
ADDRESS = ('CONFIG_TIDE_AGENT_ADDRESS="192.0.2.2"', "CONFIG_TIDE_AGENT_PORT=8888")
TRIAL = "zephyr, the program that tries a board"  # no page states the size of this program
CASES = {
    TRIAL: zephyr(
        "UART_INTERRUPT",
        ("runtime/port/zephyr/transport_uart.c", "runtime/port/exchange/tide_exchange.c"),
        ("#include <tide_exchange.h>", "static const tide_exchange_board_t board; (void)tide_exchange(&board)"),
    ),
    "pico": Case(
        "pico/tide_micro_ros",
        ("cortex-m0plus", "cortex-m33"),
        ("port/pico/board.c", *BARE),
        ("port/pico", "port/bare"),
        (DECLARATIONS / "pico",),
        ("#include <pico_uart_transports.h>", f"(void){CUSTOM.format(args='NULL', name='pico_serial_transport')}"),
    ),
    "stm32cube": Case(
        *CUBE,
        ("port/stm32cube/board.c", "port/stm32cube/cubemx_transport.c", *BARE),
        ("port/stm32cube", "port/bare"),
        (DECLARATIONS / "stm32cube",),
        CUBE_PROGRAM,
    ),
    "stm32cube with FreeRTOS": Case(
        *CUBE,
        ("port/stm32cube/cubemx_transport.c", *FREERTOS),
        ("port/stm32cube", "port/freertos"),
        (DECLARATIONS / "stm32cube", KERNELS),
        CUBE_PROGRAM,
        ("TIDE_CUBE_FREERTOS=1", "TIDE_LINK_UART=0"),
    ),
    "esp_idf": Case(
        "esp_idf/tide_micro_ros",
        ("rv32imac", "rv32imc", "lx106"),
        (*FREERTOS, "port/esp_idf/atomics.c", "port/esp_idf/board.c", "port/esp_idf/network.c"),
        ("port/freertos", "port/esp_idf/include"),
        (DECLARATIONS / "esp_idf",),
        (
            "#include <uros_network_interfaces.h>\n#include <tide/options.h>\n"
            '_Static_assert(TIDE_HEAP && !TIDE_DESKTOP, "programs allocate, and have the memory of a board");',
            "(void)uros_network_interface_initialize();\n"
            '  (void)rmw_uros_options_set_udp_address("192.168.1.100", "8888",'
            " rcl_init_options_get_rmw_init_options(&options))",
        ),
        (
            "ESP_PLATFORM=1",
            "TIDE_FREERTOS_CLOCK=1",
            "TIDE_LINK_UART=0",
            "TIDE_LINK_SYSTEM=1",
            "TIDE_FREERTOS_LINK_PRIORITY=CONFIG_TIDE_LINK_PRIORITY",
            "TIDE_FREERTOS_LINK_STACK_BYTES=CONFIG_TIDE_LINK_STACK_BYTES",
        ),
        own=("select", "WIFI_EVENT", "IP_EVENT"),
    ),
    "zephyr, UART by DMA": zephyr("UART_ASYNC", UART, ("", "(void)0"), "LINK_TASK=1"),
    "zephyr, UART by interrupts": zephyr("UART_INTERRUPT", ("runtime/port/zephyr/transport_uart.c",), ZEPHYR_PROGRAM),
    "zephyr, UDP": zephyr("UDP", ("runtime/port/zephyr/transport_udp.c",), ZEPHYR_PROGRAM, *ADDRESS),
}


@pytest.fixture(scope="module")
def boards(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("boards")
    run([sys.executable, ROOT / "scripts/packages.py", "--out", out], out)
    return out


@pytest.fixture(scope="module")
def archives(boards: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """For each core, an archive of the runtime and some messages. They come from one of the packages, because they are
    the same in all."""
    package = boards / "pico/tide_micro_ros"
    sources = [*sorted((package / "src").rglob("*.c")), *sorted((package / "messages/std_msgs").rglob("*.c"))]
    sources += sorted((package / "messages").glob("*.c"))

    @cache
    def archive(core: str) -> Path:
        folder = tmp_path_factory.mktemp(core)
        compile_all(core, sources, [package / "include", package / "messages"], [], folder)
        run(
            [CORES[core].compiler.removesuffix("gcc") + "ar", "rcs", folder / "libtide.a", *sorted(folder.glob("*.o"))],
            folder,
        )
        return folder / "libtide.a"

    class Archives(dict[str, Path]):
        def __missing__(self, core: str) -> Path:
            return archive(core)

    return Archives()


def compile_all(core: str, sources: list[Path], includes: list[Path], defines: list[str], folder: Path) -> None:
    words = [CORES[core].compiler, *CORES[core].flags, *ALWAYS, *(f"-I{path}" for path in includes)]
    words += [f"-D{define}" for define in defines]

    def compiled(numbered: tuple[int, Path]) -> None:
        number, source = numbered
        run([*words, "-c", source, "-o", folder / f"{number}_{source.stem}.o"], folder)

    with ThreadPoolExecutor(2) as workers:
        list(workers.map(compiled, enumerate(sources)))


def names_declared(folders: tuple[Path, ...]) -> set[str]:
    text = "\n".join(file.read_text(encoding="utf-8") for folder in folders for file in sorted(folder.rglob("*.h")))
    return set(re.findall(r"\b(\w+)\(", text)) | set(re.findall(r"extern const \w+ (\w+);", text))


def lacks(case: Case, core: str, package: Path, program: list[Path], archive: Path, folder: Path) -> set[str]:
    """Names that are undefined when the program is linked with the package's sources and the runtime, and that the
    board's system does not provide either."""
    includes = [package / case.runtime / "include", package / "messages", *(package / path for path in case.includes)]
    sources = [*program, *(package / source for source in case.sources)]
    compile_all(core, sources, [*includes, *case.declarations], list(case.defines), folder)
    link = [CORES[core].compiler, *CORES[core].flags, *CORES[core].link, "-Wl,--gc-sections"]
    link += [str(path) for path in sorted(folder.glob("*.o"))]
    done = subprocess.run(
        [*link, "-Wl,--start-group", str(archive), "-Wl,--end-group", "-o", "program.elf"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    missing = {line.split("`")[1].split("'")[0] for line in done.stderr.splitlines() if "undefined reference" in line}
    assert missing, f"it is linked against declarations only\n{done.stderr}"
    return missing - names_declared(case.declarations) - set(case.own) - set(CORES[core].own)


def test_programs_of_micro_ros_find_their_names_in_the_menu_of_esp_idf() -> None:
    """Without these names, the network and the agent's address would be missing without a message."""
    menu = (ROOT / "runtime/port/esp_idf/Kconfig").read_text(encoding="utf-8")
    configured = (DECLARATIONS / "esp_idf/sdkconfig.h").read_text(encoding="utf-8")
    names = {f"CONFIG_{name}" for name in re.findall(r"^config (\w+)", menu, re.MULTILINE)}
    stock = {"ESP_XRCE_DDS_MIDDLEWARE", "ESP_NETIF_WLAN", "ESP_UART_TRANSPORT", "AGENT_IP", "AGENT_PORT"}
    assert {f"CONFIG_MICRO_ROS_{name}" for name in stock} <= names
    assert set(re.findall(r"#define (\w*(?:TIDE|MICRO_ROS|ESP_WIFI)_\w+) ", configured)) <= names


@pytest.mark.parametrize(
    ("name", "core"), [(name, core) for name, case in CASES.items() for core in case.cores], ids=str
)
def test_a_program_lacks_the_names_of_its_system_alone(
    boards: Path, archives: dict[str, Path], name: str, core: str, tmp_path: Path
) -> None:
    case = CASES[name]
    (tmp_path / "main.c").write_text(PROGRAM.format(includes=case.program[0], begin=case.program[1]))
    assert lacks(case, core, boards / case.package, [tmp_path / "main.c"], archives[core], tmp_path) == set()
    if name == TRIAL:
        return
    flash_kb, ram_kb = weight(core, archives[core], tmp_path)
    label, page = f"{LABELS[core]}{name.removeprefix(PAGES[case.package][0])}", PAGES[case.package][1]
    row = re.search(rf"^\| {re.escape(label)} \| ([\d.]+) \| ([\d.]+) \|$", page.read_text(encoding="utf-8"), re.M)
    measured = f"| {label} | {flash_kb:.1f} | {ram_kb:.1f} |"
    assert row is not None, f"{page.name} lacks {measured}"
    assert float(row[1]) == pytest.approx(flash_kb, rel=0.05), f"{page.name}: {measured}"
    assert float(row[2]) == pytest.approx(ram_kb, rel=0.05), f"{page.name}: {measured}"


# For each row of a page's memory table: the core, and the selection of the package's sources.
LABELS = {
    "cortex-m0plus": "Cortex-M0+",
    "cortex-m3": "Cortex-M3",
    "cortex-m4f": "Cortex-M4F",
    "cortex-m7": "Cortex-M7",
    "cortex-m33": "Cortex-M33",
    "rv32imac": "RV32IMAC",
    "rv32imc": "RV32IMC",
    "lx106": "Xtensa LX106",
}
PAGES = {
    package: (begins, ROOT / "docs/boards" / page)
    for package, begins, page in (
        ("pico/tide_micro_ros", "pico", "pico.md"),
        ("stm32cube/tide_micro_ros", "stm32cube", "stm32.md"),
        ("esp_idf/tide_micro_ros", "esp_idf", "esp32.md"),
        ("zephyr/tide_micro_ros", "zephyr", "zephyr.md"),
    )
}
ROOM = ["-Wl,--defsym=__flash_size=0x400000", "-Wl,--defsym=__ram_size=0x400000", "-Wl,--defsym=__stack_size=0"]


def weight(core: str, archive: Path, folder: Path) -> tuple[float, float]:
    """Flash and RAM in kB that the files compiled by `lacks` need, without the system itself."""
    compiler = CORES[core].compiler
    link = [compiler, *CORES[core].flags, "-nostartfiles", "-Wl,--entry=main", "-Wl,--gc-sections", *ROOM]
    link += ["-Wl,--unresolved-symbols=ignore-all", *(str(path) for path in sorted(folder.glob("*.o")))]
    # picolibc's layout does not fit the literals of Xtensa: the linker reports this, but must write the file
    link += ["-Wl,--noinhibit-exec", "-Wl,--start-group", str(archive), "-Wl,--end-group", "-o", "weighed.elf"]
    subprocess.run(link, cwd=folder, capture_output=True, check=CORES[core].compiler[:6] != "xtensa")
    listed = run([compiler.removesuffix("gcc") + "size", "weighed.elf"], folder)
    text, data, bss = (int(word) for word in listed.splitlines()[-1].split()[:3])
    return (text + data) / 1000, (data + bss) / 1000


# The projects that tide new makes for boards: the selection of sources, the folder of the runtime, the program, and its
# entry point.
PROJECTS = {
    "pico": ("pico", "tide_micro_ros", "main.c", ""),
    "stm32": ("stm32cube", "tide_micro_ros", "main.c", "my_robot_run(0)"),
    "esp32": ("esp_idf", "components/tide_micro_ros", "main/main.c", "app_main()"),
    "zephyr": ("zephyr, UART by interrupts", "tide", "main.c", ""),
}


@pytest.mark.parametrize("board", PROJECTS)
def test_a_new_project_lacks_the_names_of_its_system_alone(
    archives: dict[str, Path], board: str, tmp_path: Path
) -> None:
    name, runtime, program, entry = PROJECTS[board]
    run([ROOT / ".venv/bin/tide", "new", "firmware", "my_robot", "--board", board, "--in", tmp_path], tmp_path)
    project = tmp_path / "my_robot"
    run(["make", "test"], project, {"PATH": f"{ROOT / '.venv/bin'}:{os.environ['PATH']}"})
    sources = [project / program, *sorted((project / runtime / "messages").rglob("*.c"))]
    if entry:
        function = entry.split("(")[0]
        text = f"void {function}();\nint main(void) {{\n  {entry};\n  return 0;\n}}\n"
        (tmp_path / "entry.c").write_text(text)
        sources.append(tmp_path / "entry.c")
    case = CASES[name]
    core = case.cores[0]
    found = lacks(case, core, project / runtime, sources, archives[core], tmp_path)
    assert found <= {"huart3"}  # the project of STM32CubeMX defines it
    if board == "pico":  # its standard output is the agent's line, so it must not print
        (main,) = tmp_path.glob("*_main.o")
        printing = {"printf", "puts", "putchar", "fflush", "fwrite"}
        assert not printing & set(run(["arm-none-eabi-nm", "--undefined-only", main], tmp_path).split())
    if board == "zephyr":  # its minimal C library lacks this name
        assert "fflush" not in (project / program).read_text(encoding="utf-8")


def test_what_describes_a_package_names_what_is_there(boards: Path) -> None:
    for file in (
        *(
            "esp_idf/tide_micro_ros/idf_component.yml",
            "esp_idf/tide_micro_ros/Kconfig",
            "esp_idf/tide_micro_ros/CMakeLists.txt",
        ),
        *(
            "zephyr/tide_micro_ros/zephyr/module.yml",
            "zephyr/tide_micro_ros/Kconfig",
            "zephyr/tide_micro_ros/CMakeLists.txt",
        ),
        *("nuttx/tide_micro_ros/Makefile", "nuttx/tide_micro_ros/Make.defs", "nuttx/tide_micro_ros/Kconfig"),
        *("stm32cube/tide_micro_ros/CMakeLists.txt", "pico/tide_micro_ros/CMakeLists.txt"),
    ):
        assert (boards / file).is_file(), file
    named = 0
    for package in (
        "esp_idf/tide_micro_ros",
        "stm32cube/tide_micro_ros",
        "pico/tide_micro_ros",
        "zephyr/tide_micro_ros",
        "nuttx/tide_micro_ros",
    ):
        folder = boards / package
        for file in (folder / "CMakeLists.txt", folder / "Makefile"):
            text = file.read_text(encoding="utf-8") if file.exists() else ""
            text = text.replace("${port}", "runtime/port").replace("${tide}/", "")
            for source in re.findall(r"\b((?:runtime/)?port/[\w/]+\.c)\b", text):
                assert (folder / source).is_file(), f"{file} names {source}"
                named += 1
    assert named > 20


def test_the_sources_of_the_nuttx_application_make_a_program(boards: Path, tmp_path: Path) -> None:
    """NuttX has the names of POSIX, so the compiler of this machine can compile the sources for it. docs/install.md
    describes NuttX's simulator."""
    package = boards / "nuttx/tide_micro_ros"
    ports = [f"posix/{name}.c" for name in ("platform", "wake_up_lead", "measure")]
    ports += ["rtos/lanes.c", "nuttx/nuttx.c", "nuttx/link.c"]
    sources = [*sorted((package / "src").rglob("*.c")), *sorted((package / "messages/std_msgs").rglob("*.c"))]
    sources += sorted((package / "messages/builtin_interfaces").rglob("*.c"))
    sources += [package / "port" / port for port in ports]
    words = ["cc", "-O1", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-DTIDE_POSIX_PORTABLE", "-DTIDE_SOCKETS=0"]
    words += [f"-I{package / 'include'}", f"-I{package / 'messages'}", f"-I{package / 'port/exchange'}"]
    words.append(f"-I{package / 'port/nuttx'}")
    words += ['-DCONFIG_TIDE_EXAMPLE_DEVICE="/nonexistent"', "-DCONFIG_TIDE_EXCHANGE_STACKSIZE=65536"]
    words.append("-Wno-deprecated-declarations")  # glibc's mallinfo
    trial = [package / "port/exchange/tide_exchange.c", package / "example/exchange_main.c"]
    run([*words, "-r", *sources, "-o", tmp_path / "tide.o"], tmp_path)  # one object for both programs
    programs = {"1": ([package / "example/int32_publisher_main.c"], 1), "/nonexistent": (trial, 3)}
    for argument, (own, code) in programs.items():
        run([*words, *own, "tide.o", "-o", tmp_path / "program", "-lpthread"], tmp_path)
        done = subprocess.run([tmp_path / "program", argument], capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stdout + done.stderr
        assert "no session" in done.stdout, done.stdout + done.stderr


APPLICATION = """
COBJS = $(CSRCS:%=%.o)
MAINCOBJ = $(MAINSRC:%=%.o)
all: $(COBJS) $(MAINCOBJ)
$(COBJS) $(MAINCOBJ): %.o: %
\t@echo $<
\t@touch $@
"""


def test_an_option_of_nuttx_that_is_switched_later_compiles_all_again(boards: Path, tmp_path: Path) -> None:
    """NuttX's own list of dependencies names objects without their folders, so it must not list objects of the
    package."""
    package = Path(shutil.copytree(boards / "nuttx/tide_micro_ros", tmp_path / "apps/tide"))
    (tmp_path / "apps/Make.defs").touch()
    (tmp_path / "apps/Application.mk").write_text(APPLICATION)
    options = tmp_path / "include/nuttx/config.h"
    options.parent.mkdir(parents=True)
    options.touch()
    words = ["make", f"APPDIR={tmp_path / 'apps'}", f"TOPDIR={tmp_path}", "CONFIG_TIDE_EXCHANGE=y"]

    def compiled() -> set[str]:
        done = subprocess.run(words, cwd=package, capture_output=True, text=True, check=True)
        return {line for line in done.stdout.splitlines() if line.endswith(".c")}

    every = compiled()
    assert {"port/nuttx/nuttx.c", "port/rtos/lanes.c", "example/exchange_main.c"} <= every
    assert compiled() == set()
    later_ns = options.stat().st_mtime_ns + 10**12
    os.utime(options, ns=(later_ns, later_ns))
    assert compiled() == every


EXCHANGES = """
#include <stdbool.h>
#include <stdint.h>
uint8_t exchange(volatile void *, uint8_t, int) __asm__("__atomic_exchange_1");
int main(void) {
  static union { uint32_t words[2]; uint8_t bytes[8]; } place;
  for (unsigned index = 0; index < 8; index++) {
    place = (__typeof__(place)){.bytes = {10, 11, 12, 13, 14, 15, 16, 17}};
    if (exchange(&place.bytes[index], 200, 0) != 10 + index) return 1;
    for (unsigned other = 0; other < 8; other++) {
      if (place.bytes[other] != (other == index ? 200 : 10 + other)) return 2;
    }
  }
  return 0;
}
"""


def test_a_byte_is_exchanged_out_of_its_word(boards: Path, tmp_path: Path) -> None:
    """Tests the functions that the package has for RISC-V chips with old compilers. The compiler of this machine builds
    them."""
    (tmp_path / "main.c").write_text(EXCHANGES)
    source = boards / "esp_idf/tide_micro_ros/port/esp_idf/atomics.c"
    old = ["-D__riscv_atomic=1", "-U__GNUC__", "-D__GNUC__=12"]
    run(["cc", "-Wall", "-Wextra", "-Werror", *old, tmp_path / "main.c", source, "-o", tmp_path / "program"], tmp_path)
    run([tmp_path / "program"], tmp_path)
