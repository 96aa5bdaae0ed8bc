"""Bounds on traffic: network calculus over token buckets and rate-latency servers, and interference in memory banks.

Numbers are integers or :class:`fractions.Fraction` in any units; results are exact fractions. Sources and assumptions are
in ``docs/analyses/network-calculus.md`` and ``docs/analyses/memory-banks.md``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from . import _native
from .tasks import Task

Number = Fraction | int
"""An exact number; a float is refused."""


@dataclass(frozen=True, slots=True)
class TokenBucket:
    """At most ``burst + rate * t`` in any window of length t."""

    rate: Number
    """Amount a unit of time."""
    burst: Number
    """Amount at once."""


@dataclass(frozen=True, slots=True)
class RateLatency:
    """At least ``rate * (t - latency)`` in any window of length t in which something waits."""

    rate: Number
    """Amount a unit of time."""
    latency: Number = 0
    """Time before service starts."""


Arrival = TokenBucket | Sequence[TokenBucket]
"""What a flow sends: it keeps to each of these buckets."""
Service = RateLatency | Sequence[RateLatency]
"""What a server guarantees: each of these."""


@dataclass(frozen=True, slots=True)
class ServerBounds:
    """Bounds of a flow at a server."""

    delay: Fraction
    """Longest stay."""
    backlog: Fraction
    """Largest amount in the server."""
    output: tuple[TokenBucket, ...]
    """What leaves: it keeps to each of these buckets."""


@dataclass(frozen=True, slots=True)
class TandemFlow:
    """A flow over a path of servers."""

    sends: Arrival
    """What it sends into the first server."""
    path: Sequence[int]
    """Servers in order, each at most once."""


@dataclass(frozen=True, slots=True)
class TandemBound:
    """End-to-end bounds of a flow, one for each analysis; None if a server leaves no service to the flow."""

    total_flow: Fraction | None
    """TFA: sum over the servers, each for all its flows together; valid if servers serve in order of arrival."""
    separate_flow: Fraction | None
    """SFA: the path as one server, so that the flow's burst is paid once; valid for any order between flows."""
    total_flow_any_order: Fraction | None
    """TFA for any order between flows: the longest busy times of the servers."""
    separate_flow_in_order: Fraction | None
    """SFA for servers that serve in order of arrival."""
    pay_multiplexing_once: Fraction | None
    """PMOO: bursts of others are paid once for the path, too; valid for any order between flows."""
    least_upper_delay_bound: Fraction | None
    """LUDB: the same for servers that serve in order of arrival, with parameters at their best."""
    reason: str | None
    """Which server leaves nothing, if there is no bound by some analysis."""

    def least(self, *, in_order: bool) -> tuple[str, Fraction] | None:
        """The smallest bound and the name of its analysis; None if there is none.

        ``in_order``: all servers serve in order of arrival.
        """
        bounds = [
            ("SFA", self.separate_flow),
            ("TFA", self.total_flow_any_order),
            ("PMOO", self.pay_multiplexing_once),
        ]
        if in_order:
            bounds += [
                ("TFA", self.total_flow),
                ("SFA", self.separate_flow_in_order),
                ("LUDB", self.least_upper_delay_bound),
            ]
        found = [(name, bound) for name, bound in bounds if bound is not None]
        return min(found, key=lambda pair: pair[1], default=None)


def _buckets(curve: Arrival) -> list[tuple[Number, Number]]:
    pieces = [curve] if isinstance(curve, TokenBucket) else list(curve)
    return [(piece.rate, piece.burst) for piece in pieces]


def _rates(curve: Service) -> list[tuple[Number, Number]]:
    pieces = [curve] if isinstance(curve, RateLatency) else list(curve)
    return [(piece.rate, piece.latency) for piece in pieces]


def server_bounds(flow: Arrival, server: Service) -> ServerBounds | None:
    """Delay, backlog and output of one flow at one server; None if the flow may send more than the server serves."""
    found = _native.network_bounds(_buckets(flow), _rates(server))
    if found is None:
        return None
    delay, backlog, output = found
    leaving = tuple(TokenBucket(Fraction(*rate), Fraction(*burst)) for rate, burst in output)
    return ServerBounds(Fraction(*delay), Fraction(*backlog), leaving)


@dataclass(frozen=True, slots=True)
class _Plain:
    sends: list[tuple[Number, Number]]
    path: list[int]


def tandem_bounds(servers: Iterable[Service], flows: Iterable[TandemFlow]) -> list[TandemBound]:
    """End-to-end bounds of all flows of a feed-forward network.

    Servers that feed each other in a circle, and servers that do not exist, raise :class:`bulkhead.TaskError`.
    """
    plain = [_Plain(_buckets(flow.sends), list(flow.path)) for flow in flows]
    found = _native.network_tandem([_rates(server) for server in servers], plain)

    def exact(pair: tuple[int, int] | None) -> Fraction | None:
        return None if pair is None else Fraction(*pair)

    def named(bounds: Iterable[tuple[int, int] | None], reason: str | None) -> TandemBound:
        total, separate, total_any, separate_in_order, once, least = (exact(bound) for bound in bounds)
        return TandemBound(total, separate, total_any, separate_in_order, once, least, reason)

    return [named(bounds, reason) for bounds, reason in found]


@dataclass(frozen=True, slots=True)
class Memory:
    """A memory with banks and one bus."""

    banks: int
    """Number of banks."""
    open: int
    """Longest time from the begin of a request's service until it is ready for the bus."""
    transfer: int
    """Longest transfer on the bus."""
    overtaking: int = 0
    """Row hits that overtake a request at most."""


@dataclass(frozen=True, slots=True)
class BankCore:
    """The tasks of a core, by decreasing priority, and the banks that it uses."""

    tasks: Sequence[Task]
    """Tasks; costs contain each access at its longest."""
    accesses: Sequence[int]
    """Memory accesses of a job of each task at most."""
    banks: Sequence[int] = field(default=())
    """Banks that its tasks use."""


def memory_bank_response_times(
    memory: Memory, cores: Iterable[BankCore], *, by_requests_alone: bool = False
) -> list[list[int | None]]:
    """Response times on all cores with interference in the DRAM (after Kim et al. 2014).

    None: no bound within the deadline. The result is the smaller of two bounds: by the task's own requests, and by the
    jobs of the other cores. The second relies on the deadlines of the other cores; ``by_requests_alone`` leaves it out.
    """
    return _native.memory_bank_response_times(
        memory.banks, memory.open, memory.transfer, memory.overtaking, list(cores), int(by_requests_alone)
    )
