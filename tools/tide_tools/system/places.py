# SPDX-License-Identifier: Apache-2.0
"""Executors, which run the callbacks of a description, and the links between them."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, ClassVar, Literal

from pydantic import Field, PrivateAttr

from tide_tools.system.fields import (
    MTU_MINIMUM,
    BoardPolicy,
    Core,
    DelayQuantiles,
    HostExecutor,
    Milliseconds,
    MillisecondsOrZero,
    Name,
    Scheduling,
    Source,
    ThreadPriority,
    Where,
    nanoseconds,
)
from tide_tools.system.fields import Entry as _Entry


class PoolSizes(_Entry):
    """Pool sizes of existing firmware, as its program defines them for tide/pools.h and, without an agent,
    tide/rclc_rtps.h. An omitted size is the one that `tide footprint --header` writes, or the runtime's default."""

    small_nodes: Annotated[int | None, Field(ge=1, le=4096, description="TIDE_SMALL_NODES.")] = None
    small_node_bytes: Annotated[int | None, Field(ge=64, le=65_535, description="TIDE_SMALL_NODE_BYTES.")] = None
    large_nodes: Annotated[int | None, Field(ge=0, le=4096, description="TIDE_LARGE_NODES.")] = None
    large_node_bytes: Annotated[int | None, Field(ge=64, le=1_000_000, description="TIDE_LARGE_NODE_BYTES.")] = None
    slots: Annotated[int | None, Field(ge=2, le=4096, description="TIDE_SLOTS.")] = None
    reassemblies: Annotated[int | None, Field(ge=0, le=64, description="TIDE_REASSEMBLIES.")] = None
    reassembly_bytes: Annotated[int | None, Field(ge=16, le=1_000_000, description="TIDE_REASSEMBLY_BYTES.")] = None
    subscription_depth: Annotated[int | None, Field(ge=1, le=255, description="TIDE_SUBSCRIPTION_DEPTH.")] = None
    window: Annotated[int | None, Field(ge=1, le=16, description="TIDE_WINDOW, of both sides.")] = None
    rtps_writers: Annotated[int | None, Field(ge=1, le=4096, description="TIDE_RTPS_WRITERS.")] = None
    rtps_readers: Annotated[int | None, Field(ge=1, le=16, description="TIDE_RTPS_READERS.")] = None
    rtps_peers: Annotated[int | None, Field(ge=1, le=65_535, description="TIDE_RTPS_PEERS.")] = None
    rtps_matches: Annotated[int | None, Field(ge=1, le=65_535, description="TIDE_RTPS_MATCHES.")] = None
    rtps_history: Annotated[int | None, Field(ge=1, le=255, description="TIDE_RTPS_HISTORY.")] = None
    rtps_sample_bytes: Annotated[int | None, Field(ge=4, le=65_000, description="TIDE_RTPS_SAMPLE_BYTES.")] = None
    rtps_frames: Annotated[int | None, Field(ge=1, le=16, description="TIDE_RTPS_FRAMES.")] = None
    rtps_streams: Annotated[int | None, Field(ge=2, le=255)] = None
    """TIDE_RTPS_AGENT_STREAMS, compiled into the runtime."""
    rtps_name_bytes: Annotated[int | None, Field(ge=16, le=255)] = None
    """TIDE_RTPS_NAME_BYTES, compiled into the runtime."""
    rtps_type_bytes: Annotated[int | None, Field(ge=16, le=255)] = None
    """TIDE_RTPS_TYPE_BYTES, compiled into the runtime."""


class Load(_Entry):
    """Work of a board besides its callbacks: an interrupt, a task of higher priority, a write to flash, the ping and
    the time synchronisation of a reconnection loop. It is more urgent than every callback, and each run ends before the
    next begins."""

    name: Name
    """Name of the load, unique on its board."""
    execution_ms: Milliseconds
    """Worst-case time of one run, including all waiting; with sleeps, its CPU time."""
    period_ms: Milliseconds
    """Least time from the beginning of one run to the next."""
    sleeps: bool = False
    """true: a thread that sleeps during a run and leaves the core meanwhile, for example until a sensor has answered.
    Only its CPU time is in execution_ms."""
    masks_interrupts: bool = False
    """true: interrupts are masked during a run, so the link stops; the hardware keeps the bytes that arrive."""
    agent_bytes: Annotated[int, Field(ge=0, le=512)] = 0
    """For a load that sends the agent a request and waits for the answer: the bytes of the longer of these two
    messages, 24 for a ping or a time synchronisation. The wait is part of execution_ms, unless the load
    sleeps. 0: the load sends no request."""
    source: Source = "estimated"

    @property
    def execution_ns(self) -> int:
        return nanoseconds(self.execution_ms)

    @property
    def period_ns(self) -> int:
        return nanoseconds(self.period_ms)


class Executor(_Entry):
    """An executor of callbacks. Each executor on a microcontroller is its own board with its own link, except executors
    that name the same board. A run may override the policy, to compare policies with one description."""

    name: Name
    """Callbacks refer to their executor by this name."""
    where: Where
    """mcu: a microcontroller, a board of its own and a client of the agent. host: a ROS 2 process."""
    link: Name | None = None
    """Boards only: name of its link. Absent: the link that its chains name, or the only link."""
    board: Name | None = None
    """A common name for several executors of one board. These executors share one session, one link and one set of
    pools; each has its own core, or all have the same core and different thread_priority. Absent: the executor is its
    own board."""
    policy: Literal[BoardPolicy, HostExecutor] | None = None
    """On a board: tide (the most urgent callback first, preemptive if the board has several lanes); batch, batch_stock,
    batch_blocking (rclc's rounds, in which publishing never waits, waits for reliable messages, or always waits).
    Absent: tide. On the host, the executor of the process: single_threaded, multi_threaded, events, events_cbg
    (rclcpp's SingleThreadedExecutor, MultiThreadedExecutor, EventsExecutor and EventsCBGExecutor); callback_isolated
    (CallbackIsolatedExecutor, a thread for each callback group and each callback without one); tide (tide_ros or
    tide_rclcpp, the most urgent first). Absent: each callback once in a ready set and timers whenever they expire,
    which covers rclcpp on one thread; beside boards, any order."""
    scheduling: Scheduling | None = None
    """callback_isolated only: the scheduling of its threads. fifo: SCHED_FIFO or SCHED_RR, each thread on a core of its
    own, unless core says otherwise. deadline: SCHED_DEADLINE, with budget_ms and budget_period_ms of each thread.
    other: SCHED_OTHER, for which there is no bound. Absent: other."""
    core: Core | None = None
    """Number of the core to which the executor's only thread is pinned; for callback_isolated, the threads whose group
    has no core. Threads on one core of the host, or of a board, have different thread_priority. Absent: each thread has
    a core of its own."""
    thread_priority: ThreadPriority | None = None
    """With core: the priority of the thread (SCHED_FIFO on the host); larger is more urgent, and preempts. Without
    core, a thread of the host shares several cores, for which there is no bound."""
    # Set where the executors of a board on one core are taken as one (tide_tools.system.servers.on_one_core): the
    # chains of each of them, the least urgent first.
    _bands: tuple[frozenset[str], ...] = PrivateAttr(())

    @property
    def bands(self) -> tuple[frozenset[str], ...]:
        return self._bands

    lanes: Annotated[int, Field(ge=1, le=64)] = 1
    """Threads that run callbacks. callback_isolated: omitted, as groups determine it."""
    budget_ms: MillisecondsOrZero = Decimal(0)
    """CPU time of each lane in every budget_period_ms. tide run enforces the budget; bounds take it into account on the
    host. 0: no budget, a dedicated core."""
    budget_period_ms: MillisecondsOrZero = Decimal(0)
    """Period after which a budget is replenished."""
    submit_ms: MillisecondsOrZero = Decimal(0)
    """CPU time to encode and submit one message."""
    process_ms: MillisecondsOrZero = Decimal(0)
    """CPU time to process one received frame."""
    dispatch_ms: MillisecondsOrZero = Decimal(0)
    """CPU time to choose a callback."""
    interrupt_ms: MillisecondsOrZero = Decimal(0)
    """CPU time of the interrupt for one frame. Over RTPS: CPU time to send or receive one datagram, including the work
    of the agent on the board."""
    loads: Annotated[tuple[Load, ...], Field(strict=False, max_length=64)] = ()
    """Boards only: work that the board executes besides its callbacks."""
    pools: PoolSizes | None = None
    """Boards with existing firmware only: the sizes of its pools. tide check compares them with the sizes that the
    chains need, and tide simulate uses them. Absent: the sizes that tide footprint --header writes."""
    source: Source = "estimated"
    command: Annotated[str | None, Field(min_length=1)] = None
    """Command that tide run executes as this executor, in the folder of this file: a client of the agent on POSIX, a
    ROS 2 node, a launch file. {device}, {baud}, {port} and {domain} are replaced by the values of the run. Absent: tide
    run simulates the executor."""
    image: Annotated[str | None, Field(min_length=1)] = None
    """Boards on a serial line only: ELF file that tide run starts in QEMU (mps2-an500), with its first UART as the
    line."""
    attach: Annotated[str | None, Field(min_length=1)] = None
    """Connected boards only: the serial device, for example /dev/ttyACM0; on a network the UDP port at which the board
    looks for the agent."""


class Line(_Entry):
    """A link that carries the bytes of one board to the agent and back, one byte after the other."""

    name: Name
    """Chains refer to their link by this name."""
    kind: Literal["serial", "usb_cdc"]
    mtu_bytes: Annotated[int, Field(ge=MTU_MINIMUM, le=65535)] = 512
    """Largest message; longer messages are sent in fragments."""
    quantum_bytes: Annotated[int, Field(ge=0, le=65535)] = 0
    """Largest frame. A more urgent frame waits for at most one frame of this size. 0: the MTU."""
    agent_ms: MillisecondsOrZero = Decimal(0)
    """Worst-case delay of serial adapter, agent and DDS, from the last byte to the ROS 2 node."""
    return_ms: MillisecondsOrZero = Decimal(0)
    """Worst-case delay from a node's publish until the agent may send the frame."""
    source: Source = "estimated"
    escaped_bytes: Annotated[int | None, Field(ge=0, le=65535)] = None
    """Largest number of bytes 0x7D and 0x7E in a frame. Absent: every byte may be one of these."""
    exact_sizes: bool = False
    """true: every message has exactly payload_bytes. false: a message has at most payload_bytes."""
    heartbeat_delay_ms: Annotated[MillisecondsOrZero | None, Field(le=1000)] = None
    """Time from the end of a reliable message to the HEARTBEAT that requests its acknowledgment. 0: at once, as in the
    PoDS paper. Absent: the board uses the measured round trip, at least 20 ms."""
    agent_heartbeat_ms: Annotated[MillisecondsOrZero, Field(le=10_000)] = Decimal(100)
    """Time from the end of a reliable answer to the HEARTBEAT by which the agent requests its acknowledgment. 0 also
    covers a stock agent, which sends HEARTBEATs every 200 ms."""

    @property
    def heartbeat_delay_ns(self) -> int:
        """heartbeat_delay_ms in nanoseconds; -1: the delay follows the measured round trip."""
        return -1 if self.heartbeat_delay_ms is None else nanoseconds(self.heartbeat_delay_ms)

    @property
    def byte_ns(self) -> int:
        """The wire time of one byte, rounded up."""
        return -(-10 * 1_000_000_000 // self.rate)

    @property
    def rate(self) -> int:
        """Ten times the number of bytes per second, which is the baud rate of 8N1."""
        raise NotImplementedError

    @property
    def device_baud(self) -> int:
        """The baud rate with which the host opens the device; irrelevant for a USB device."""
        return 115_200

    @property
    def poll_ns(self) -> int:
        """Time that a frame waits on an idle line until its first byte can be sent."""
        return 0


class SerialLink(Line):
    """A serial line with 8N1 framing, ten bit times a byte, full duplex, between the microcontroller and the agent."""

    kind: Literal["serial"]
    """A serial line: 8N1, full duplex."""
    baud: Annotated[int, Field(ge=1200, le=20_000_000)]
    """Bits per second; a byte takes ten bits."""

    @property
    def rate(self) -> int:
        return self.baud

    @property
    def device_baud(self) -> int:
        return self.baud


class UsbLink(Line):
    """A serial port over USB (CDC ACM) between the microcontroller and the agent. The port has no baud rate; its
    throughput (bytes_per_s) is measured. A frame waits until the host polls, and is then sent in packets at the
    measured rate."""

    kind: Literal["usb_cdc"]
    """A serial port over USB, CDC ACM."""
    bytes_per_s: Annotated[int, Field(ge=1000, le=50_000_000)]
    """Throughput in the slower direction, measured with messages as long as those of the chains."""
    poll_ms: MillisecondsOrZero = Decimal(1)
    """Longest time from the moment at which a frame is ready to its first packet. The default is the length of a USB
    frame at full speed."""

    @property
    def rate(self) -> int:
        return 10 * self.bytes_per_s

    @property
    def poll_ns(self) -> int:
        return nanoseconds(self.poll_ms)


class UdpLink(_Entry):
    """UDP or TCP on IPv4 between one or several microcontrollers and the agent. Bounds use the stated delays of the
    network. If quantiles of its delays are known, as on Wi-Fi, chains also have probabilities."""

    name: Name
    """Chains refer to their link by this name."""
    kind: Literal["udp", "tcp"]
    """UDP or TCP on IPv4. Networks guarantee no bound: agent_ms and return_ms are taken as given."""
    port: Annotated[int, Field(ge=1, le=65535)] = 8888
    """UDP port of the agent."""
    mtu_bytes: Annotated[int, Field(ge=MTU_MINIMUM, le=65535)] = 512
    """Largest message; longer messages are sent in fragments."""
    quantum_bytes: Annotated[int, Field(ge=0, le=65535)] = 0
    """Largest frame. A more urgent frame waits for at most one frame of this size. 0: the MTU."""
    agent_ms: MillisecondsOrZero | None = None
    """Worst-case delay of network, agent and DDS, from a board's send to the ROS 2 node, under any other traffic.
    Absent: there is no bound."""
    return_ms: MillisecondsOrZero | None = None
    """Worst-case delay from a node's publish until the board receives the message. Absent: there is no bound."""
    agent_quantiles_ms: DelayQuantiles = ()
    """Measured delays of messages to the ROS 2 node, by the share of messages that take no longer, for example { "0.5"
    = 2, "0.99" = 8, "0.999" = 25 }. agent_ms remains the longest delay: a later message counts as lost. A chain with
    such messages has a probability instead of a guarantee."""
    return_quantiles_ms: DelayQuantiles = ()
    """As agent_quantiles_ms, for the delay from a node's publish until the board receives the message. return_ms
    remains the longest delay."""
    source: Source = "estimated"
    heartbeat_delay_ms: Annotated[MillisecondsOrZero | None, Field(le=1000)] = None
    """Same as for a serial line."""
    agent_heartbeat_ms: Annotated[MillisecondsOrZero | None, Field(le=10_000)] = None
    """Same as for a serial line. Absent: measured."""

    @property
    def heartbeat_delay_ns(self) -> int:
        """heartbeat_delay_ms in nanoseconds; -1: the delay follows the measured round trip."""
        return -1 if self.heartbeat_delay_ms is None else nanoseconds(self.heartbeat_delay_ms)


class RtpsLink(_Entry):
    """Ethernet over which a board speaks RTPS to ROS 2 nodes without an agent (tide/rclc_rtps.h). There are bounds for
    topics and services between the board and nodes of the host, with the stated delays of the network."""

    name: Name
    """Chains refer to their link by this name."""
    kind: Literal["rtps"]
    """RTPS over UDP, without an agent. Networks guarantee no bound: to_host_ms and to_board_ms are taken as given."""
    mbit_per_s: Annotated[int, Field(ge=1, le=100_000)] = 100
    """Rate of the board's interface."""
    mtu_bytes: Annotated[int, Field(ge=MTU_MINIMUM, le=65535)] = 512
    """TIDE_MTU_BYTES of the board. Between the board's session and its RTPS, longer reliable messages are sent in
    fragments."""
    datagram_bytes: Annotated[int, Field(ge=768, le=65_507)] = 1472
    """Longest datagram that the board sends, TIDE_RTPS_DATAGRAM_BYTES."""
    queued_datagrams: Annotated[int, Field(ge=1, le=1000)] = 1
    """Largest number of datagrams that wait in the board's network stack. A more urgent datagram waits for all of
    them."""
    more_readers: Annotated[int, Field(ge=0, le=64)] = 0
    """Readers of each topic of the board besides those in this file, for example a recorder. Each reader is sent a
    datagram of its own."""
    discovery_datagrams: Annotated[int, Field(ge=1, le=10_000)] = 64
    """Largest number of datagrams of discovery that the board sends and receives in 3 s while no node starts or ends.
    Each takes interrupt_ms, and a sample waits for at most queued_datagrams of them."""
    to_host_ms: MillisecondsOrZero | None = None
    """Worst-case delay of network and DDS, from the end of a datagram at the board's interface to the ROS 2 node, under
    any other traffic. Absent: there is no bound."""
    to_board_ms: MillisecondsOrZero | None = None
    """Worst-case delay from a node's publish until the board has received the datagram. Absent: there is no bound."""
    acknowledge_ms: MillisecondsOrZero = Decimal(10)
    """Longest time from a HEARTBEAT's arrival at a node to its ACKNACK, and from an ACKNACK's arrival to the samples
    that it requests, for reliable topics. Fast DDS waits 5 ms."""
    heartbeat_ms: MillisecondsOrZero = Decimal(3000)
    """Longest distance of a node's HEARTBEATs while a sample to the board is not acknowledged, for bounds with losses.
    Fast DDS: 3 s, unless its profile gives heartbeat_period."""
    source: Source = "estimated"

    @property
    def agent_ms(self) -> Decimal | None:
        return self.to_host_ms

    @property
    def return_ms(self) -> Decimal | None:
        return self.to_board_ms

    @property
    def quantum_bytes(self) -> int:
        return 0

    # The session's HEARTBEATs stay on the board.
    heartbeat_delay_ms: ClassVar[Decimal | None] = None
    agent_heartbeat_ms: ClassVar[Decimal | None] = None
    heartbeat_delay_ns: ClassVar[int] = -1


@dataclass(frozen=True)
class Delays:
    """The delays of a link's messages to the agent's node and back. late: the shares of messages that may take
    longer."""

    agent_ns: int
    return_ns: int
    late: tuple[Decimal, Decimal] = (Decimal(0), Decimal(0))


def delays_at(link: Line | UdpLink | RtpsLink, share: Decimal) -> Delays:
    """The least described delays that this share of the messages does not exceed."""
    found: list[tuple[int, Decimal]] = []
    for longest_ms, quantiles in (
        (link.agent_ms, link.agent_quantiles_ms if isinstance(link, UdpLink) else ()),
        (link.return_ms, link.return_quantiles_ms if isinstance(link, UdpLink) else ()),
    ):
        longest = Decimal(1), longest_ms or Decimal(0)
        least = next(one for one in (*quantiles, longest) if one[0] >= share)
        found.append((nanoseconds(least[1]), 1 - least[0]))
    (agent_ns, up), (return_ns, down) = found
    return Delays(agent_ns, return_ns, (up, down))


def rate_of(link: Line) -> str:
    """The rate of the link in words."""
    return f"{link.bytes_per_s} bytes/s" if isinstance(link, UsbLink) else f"{link.rate} baud"


Network = UdpLink | RtpsLink
Link = Annotated[SerialLink | UsbLink | UdpLink | RtpsLink, Field(discriminator="kind")]
