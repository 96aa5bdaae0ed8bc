"""Network calculus and memory banks, against numbers of the literature and by hand."""

from __future__ import annotations

from fractions import Fraction

import pytest
from bulkhead import Task, TaskError, analysis
from bulkhead.traffic import (
    BankCore,
    Memory,
    RateLatency,
    TandemFlow,
    TokenBucket,
    memory_bank_response_times,
    server_bounds,
    tandem_bounds,
)


def test_a_bucket_through_a_server() -> None:
    # Shared oracle: rate 5, burst 25 through rate 10, latency 10.
    found = server_bounds(TokenBucket(5, 25), RateLatency(10, 10))
    assert found is not None
    assert found.delay == Fraction(25, 2)
    assert found.backlog == 75
    assert found.output == (TokenBucket(Fraction(5), Fraction(75)),)
    assert server_bounds(TokenBucket(11, 1), RateLatency(10, 0)) is None
    # Le Boudec and Thiran, the flow of the integrated services: T-SPEC (peak p, packet M, rate r, burst b): the delay is
    # T + (M + (b - M) (p - R) / (p - r)) / R for r <= R <= p. M=1, p=20, r=5, b=25, R=10, T=10.
    spec = [TokenBucket(20, 1), TokenBucket(5, 25)]
    found = server_bounds(spec, RateLatency(10, 10))
    assert found is not None
    assert found.delay == 10 + Fraction(1 + Fraction(24 * (20 - 10), 20 - 5), 10)


def test_bursts_are_paid_once() -> None:
    # Two servers in a row, nobody else: latencies add up, the burst counts once, against twice with total flow.
    servers = [RateLatency(10, 2), RateLatency(8, 3)]
    (bound,) = tandem_bounds(servers, [TandemFlow(TokenBucket(4, 16), [0, 1])])
    assert bound.separate_flow == 2 + 3 + Fraction(16, 8)
    # First server: 2 + 16/10; its output has burst 16 + 4 * 2; second: 3 + 24/8.
    assert bound.total_flow == 2 + Fraction(16, 10) + 3 + Fraction(24, 8)
    # A rival at the second server: rate 2, burst 6 leave rate 6 after (6 + 8 * 3) / 6.
    flows = [TandemFlow(TokenBucket(4, 16), [0, 1]), TandemFlow(TokenBucket(2, 6), [1])]
    assert tandem_bounds(servers, flows)[0].separate_flow == 2 + 5 + Fraction(16, 6)


def test_every_analysis_of_a_tandem() -> None:
    # Shared oracle: two flows over the same two servers; LUDB by hand: min over theta of max(theta, 50 - theta).
    flows = [TandemFlow(TokenBucket(5, 25), [0, 1])] * 2
    bound = tandem_bounds([RateLatency(10, 10)] * 2, flows)[0]
    exact = [Fraction(number) for number in (40, 65, 35, 50, 25)]
    assert [bound.total_flow, bound.separate_flow, bound.separate_flow_in_order] == exact[:3]
    assert [bound.pay_multiplexing_once, bound.least_upper_delay_bound] == exact[3:]
    assert bound.least(in_order=True) == ("LUDB", Fraction(25))
    assert bound.least(in_order=False) == ("PMOO", Fraction(50))
    # Full servers may be busy for ever.
    assert bound.total_flow_any_order is None
    assert bound.reason == "server 0 is offered 10 a unit of time and guarantees 10: nothing bounds the delay behind it"
    overload = tandem_bounds([RateLatency(9)], [TandemFlow(TokenBucket(5, 25), [0])] * 2)[0]
    assert overload.least(in_order=True) is None


def test_nonsense_is_refused() -> None:
    with pytest.raises(TypeError, match="Fraction or an integer"):
        server_bounds(TokenBucket(0.5, 1), RateLatency(1))  # type: ignore[arg-type]
    with pytest.raises(TaskError, match="must not be negative"):
        server_bounds(TokenBucket(-1, 1), RateLatency(1))
    with pytest.raises(TaskError, match="empty"):
        server_bounds([], RateLatency(1))
    with pytest.raises(TaskError, match="there is no server 7"):
        tandem_bounds([RateLatency(1)], [TandemFlow(TokenBucket(0, 1), [7])])
    with pytest.raises(TaskError, match="twice"):
        tandem_bounds([RateLatency(1)], [TandemFlow(TokenBucket(0, 1), [0, 0])])
    circle = [TandemFlow(TokenBucket(0, 1), [0, 1]), TandemFlow(TokenBucket(0, 1), [1, 0])]
    with pytest.raises(TaskError, match="circle"):
        tandem_bounds([RateLatency(1), RateLatency(1)], circle)
    with pytest.raises(TaskError, match="accesses for 0"):
        memory_bank_response_times(Memory(1, 1, 1), [BankCore([Task(1, 4)], [], [0])])
    with pytest.raises(TaskError, match="above"):
        memory_bank_response_times(Memory(1, 1 << 60, 1), [])


def test_memory_banks() -> None:
    # The example of the analysis's page: 112 and 23; by requests alone 124.
    memory = Memory(banks=2, open=7, transfer=3)
    cores = [BankCore([Task(100, 500)], [8], [0]), BankCore([Task(20, 50)], [1], [1])]
    assert memory_bank_response_times(memory, cores) == [[112], [23]]
    assert memory_bank_response_times(memory, cores, by_requests_alone=True)[0] == [124]
    alone = BankCore([Task(1, 4), Task(1, 5), Task(3, 9), Task(3, 18)], [0, 0, 0, 0])
    assert memory_bank_response_times(memory, [alone])[0] == analysis.fixed_priority_response_times(alone.tasks)
