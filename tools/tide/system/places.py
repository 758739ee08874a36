# SPDX-License-Identifier: Apache-2.0
"""Where the callbacks of a description run, and what joins these places: executors and links."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Literal

from pydantic import Field

from tide.system.fields import (
    MTU_MINIMUM,
    BoardPolicy,
    Milliseconds,
    MillisecondsOrZero,
    Name,
    Source,
    Where,
    nanoseconds,
)
from tide.system.fields import Entry as _Entry


class PoolSizes(_Entry):
    """Sizes of a firmware that exists, as its program defines them for tide/pools.h. What is absent is as `tide
    footprint --header` writes it."""

    small_nodes: Annotated[int | None, Field(ge=1, le=4096, description="TIDE_SMALL_NODES.")] = None
    small_node_bytes: Annotated[int | None, Field(ge=64, le=65_535, description="TIDE_SMALL_NODE_BYTES.")] = None
    large_nodes: Annotated[int | None, Field(ge=0, le=4096, description="TIDE_LARGE_NODES.")] = None
    large_node_bytes: Annotated[int | None, Field(ge=64, le=1_000_000, description="TIDE_LARGE_NODE_BYTES.")] = None
    slots: Annotated[int | None, Field(ge=2, le=4096, description="TIDE_SLOTS.")] = None
    reassemblies: Annotated[int | None, Field(ge=0, le=64, description="TIDE_REASSEMBLIES.")] = None
    reassembly_bytes: Annotated[int | None, Field(ge=16, le=1_000_000, description="TIDE_REASSEMBLY_BYTES.")] = None
    subscription_depth: Annotated[int | None, Field(ge=1, le=255, description="TIDE_SUBSCRIPTION_DEPTH.")] = None
    window: Annotated[int | None, Field(ge=1, le=16, description="TIDE_WINDOW, of both sides.")] = None


class Load(_Entry):
    """What a board executes beside its callbacks: an interrupt, a task of higher priority, a write to flash, the ping
    and the time synchronisation of a reconnection loop. It goes before every callback, and is over before it comes
    again."""

    name: Name
    execution_ms: Annotated[
        Milliseconds,
        Field(description="CPU time of one run with all that it waits for, the worst that occurs."),
    ]
    period_ms: Annotated[Milliseconds, Field(description="Least time from the beginning of one to that of the next.")]
    masks_interrupts: Annotated[
        bool,
        Field(description="Interrupts are off meanwhile, so that the link stands still; hardware keeps what arrives."),
    ] = False
    agent_bytes: Annotated[
        int,
        Field(
            ge=0,
            le=512,
            description="It asks the agent and waits for the answer: bytes of the longer of the two, as 24 of a ping "
            "or a time synchronisation. The wait is part of execution_ms. 0: it does not.",
        ),
    ] = 0
    source: Source = "estimated"

    @property
    def execution_ns(self) -> int:
        return nanoseconds(self.execution_ms)

    @property
    def period_ns(self) -> int:
        return nanoseconds(self.period_ms)


class Executor(_Entry):
    """Who runs callbacks. Each executor of a microcontroller is a board of its own, with its own link, unless several
    name one board. The policy and the way of sending may be chosen at the run, so that one description serves the
    comparison."""

    name: Name
    where: Where
    link: Annotated[
        Name | None,
        Field(description="Of a board: name of its link. Absent: that of its chains, or the only one."),
    ] = None
    board: Annotated[
        Name | None,
        Field(
            description="Of executors on several cores of one board: the same name. They have one session, one link "
            "and one set of pools, and each has a core of its own. Absent: a board of its own."
        ),
    ] = None
    policy: Annotated[
        BoardPolicy | None,
        Field(
            description="Of a board: tide (most urgent first; preemptive where it has lanes), or rclc's rounds by the "
            "way of publishing: batch (never waits), batch_stock (a reliable one waits), batch_blocking (each waits). "
            "Absent: tide."
        ),
    ] = None
    lanes: Annotated[int, Field(ge=1, le=64, description="Threads that run callbacks.")] = 1
    budget_ms: Annotated[
        MillisecondsOrZero,
        Field(
            description="CPU time of each lane in every budget_period_ms: tide run keeps it; bounds of the host. "
            "0: no budget, a core of its own."
        ),
    ] = Decimal(0)
    budget_period_ms: Annotated[MillisecondsOrZero, Field(description="How often a budget comes back.")] = Decimal(0)
    submit_ms: Annotated[MillisecondsOrZero, Field(description="CPU time to make one message.")] = Decimal(0)
    process_ms: Annotated[MillisecondsOrZero, Field(description="CPU time to take over one received frame.")] = Decimal(
        0
    )
    dispatch_ms: Annotated[MillisecondsOrZero, Field(description="CPU time to choose a callback.")] = Decimal(0)
    interrupt_ms: Annotated[MillisecondsOrZero, Field(description="CPU time of the interrupt of one frame.")] = Decimal(
        0
    )
    loads: Annotated[
        tuple[Load, ...],
        Field(strict=False, max_length=64, description="Of a board: what it executes beside its callbacks."),
    ] = ()
    pools: Annotated[
        PoolSizes | None,
        Field(
            description="Of a board whose firmware exists: the sizes of its pools. tide check holds them against what "
            "the chains need, and tide simulate plays them. Absent: those that tide footprint --header writes."
        ),
    ] = None
    source: Source = "estimated"
    command: Annotated[
        str | None,
        Field(
            min_length=1,
            description="Program that tide run starts in its place, in the folder of this file: a client of the agent "
            "on POSIX, a ROS 2 node, a launch file. {device}, {baud}, {port} and {domain} in it are those of the run. "
            "Absent: tide run plays it.",
        ),
    ] = None
    image: Annotated[
        str | None,
        Field(
            min_length=1,
            description="Of a board on a serial line: ELF file that tide run starts in QEMU (mps2-an500), whose first "
            "UART is the line.",
        ),
    ] = None
    attach: Annotated[
        str | None,
        Field(
            min_length=1,
            description="Of a board that is there already: its serial device, as /dev/ttyACM0; on a network the UDP "
            "port at which it looks for the agent.",
        ),
    ] = None


class Line(_Entry):
    """What carries the bytes of one board to the agent, one after the other, and back."""

    name: Name
    kind: Literal["serial", "usb_cdc"]
    mtu_bytes: Annotated[
        int, Field(ge=MTU_MINIMUM, le=65535, description="Largest message; longer ones go in fragments.")
    ] = 512
    quantum_bytes: Annotated[
        int, Field(ge=0, le=65535, description="Largest piece before an urgent frame may pass. 0: the MTU.")
    ] = 0
    agent_ms: Annotated[
        MillisecondsOrZero,
        Field(
            description="Serial adapter, agent and DDS, from the last byte to the ROS 2 node, the worst that occurs."
        ),
    ] = Decimal(0)
    return_ms: Annotated[
        MillisecondsOrZero, Field(description="The same from a node's publish until the frame can go.")
    ] = Decimal(0)
    source: Source = "estimated"
    escaped_bytes: Annotated[
        int | None,
        Field(ge=0, le=65535, description="Bytes 0x7D and 0x7E in a frame at most. Absent: any byte may be one."),
    ] = None
    exact_sizes: Annotated[
        bool, Field(description="Every message is as long as its payload_bytes says. Else that is the most.")
    ] = False
    heartbeat_delay_ms: Annotated[
        MillisecondsOrZero | None,
        Field(
            le=1000,
            description="From the end of a reliable message to the HEARTBEAT that asks for its acknowledgment. 0: at "
            "once, as in the PoDS paper. Absent: a round trip, measured, 20 ms at least.",
        ),
    ] = None
    agent_heartbeat_ms: Annotated[
        MillisecondsOrZero,
        Field(
            le=10_000,
            description="From the end of a reliable answer to the HEARTBEAT by which the agent asks whether it was "
            "taken. 0 also covers a stock agent, which looks every 200 ms.",
        ),
    ] = Decimal(100)

    @property
    def heartbeat_delay_ns(self) -> int:
        """-1: measured."""
        return -1 if self.heartbeat_delay_ms is None else nanoseconds(self.heartbeat_delay_ms)

    @property
    def byte_ns(self) -> int:
        """Wire time of one byte, rounded up."""
        return -(-10 * 1_000_000_000 // self.rate)

    @property
    def rate(self) -> int:
        """Tenths of a byte a second, as the baud rate of 8N1."""
        raise NotImplementedError

    @property
    def device_baud(self) -> int:
        """With which its device is opened; of a USB device it means nothing."""
        return 115_200

    @property
    def poll_ns(self) -> int:
        """How long a frame waits on an idle line until its first byte can go."""
        return 0


class SerialLink(Line):
    """A serial line with 8N1 framing, ten bit times a byte, full duplex, between the microcontroller and the agent."""

    kind: Literal["serial"]
    baud: Annotated[int, Field(ge=1200, le=20_000_000)]

    @property
    def rate(self) -> int:
        return self.baud

    @property
    def device_baud(self) -> int:
        return self.baud


class UsbLink(Line):
    """A serial port over USB (CDC ACM) between the microcontroller and the agent. It has no baud rate: what it carries
    is measured. A frame waits for the host to poll, and then goes in packets at that rate."""

    kind: Literal["usb_cdc"]
    bytes_per_s: Annotated[
        int,
        Field(
            ge=1000,
            le=50_000_000,
            description="What it carries in the slower direction, measured with messages as long as the chains'.",
        ),
    ]
    poll_ms: Annotated[
        MillisecondsOrZero,
        Field(description="From a frame that is ready to its first packet, at most: a frame of USB at full speed."),
    ] = Decimal(1)

    @property
    def rate(self) -> int:
        return 10 * self.bytes_per_s

    @property
    def poll_ns(self) -> int:
        return nanoseconds(self.poll_ms)


class UdpLink(_Entry):
    """UDP or TCP on IPv4 between one or several microcontrollers and the agent. Bounds take its delays as they are
    given."""

    name: Name
    kind: Literal["udp", "tcp"]
    port: Annotated[int, Field(ge=1, le=65535)] = 8888
    mtu_bytes: Annotated[int, Field(ge=MTU_MINIMUM, le=65535)] = 512
    quantum_bytes: Annotated[int, Field(ge=0, le=65535)] = 0
    agent_ms: Annotated[
        MillisecondsOrZero | None,
        Field(
            description="Network, agent and DDS, from a board's send to the ROS 2 node, the worst that occurs, "
            "whatever else is sent. Absent: there is no bound."
        ),
    ] = None
    return_ms: Annotated[
        MillisecondsOrZero | None,
        Field(description="The same from a node's publish to the board. Absent: there is no bound."),
    ] = None
    source: Source = "estimated"
    heartbeat_delay_ms: Annotated[
        MillisecondsOrZero | None,
        Field(le=1000, description="As of a serial line."),
    ] = None
    agent_heartbeat_ms: Annotated[
        MillisecondsOrZero | None, Field(le=10_000, description="As of a serial line. Absent: measured.")
    ] = None

    @property
    def heartbeat_delay_ns(self) -> int:
        """-1: measured."""
        return -1 if self.heartbeat_delay_ms is None else nanoseconds(self.heartbeat_delay_ms)


def rate_of(link: Line) -> str:
    """In words."""
    return f"{link.bytes_per_s} bytes/s" if isinstance(link, UsbLink) else f"{link.rate} baud"


Link = Annotated[SerialLink | UsbLink | UdpLink, Field(discriminator="kind")]
