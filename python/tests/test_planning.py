"""Plans and verdicts for descriptions."""

from __future__ import annotations

from pathlib import Path

import bulkhead
import pytest
from bulkhead import DescriptionError, Task, analysis, files, planning


def test_the_case_study_of_the_catalog() -> None:
    assert "audsley" in planning.names()
    plan = bulkhead.check("audsley")
    assert plan.schedulable
    assert plan.failures == ()
    responses = [one.bound for one in plan.constraints if one.kind == "response"]
    # Audsley et al. 1993, in microseconds there; the twelfth has its jitter of 1000 on top.
    published = [51, 3504, 5906, 11512, 13064, 16217, 20821, 36637, 47798, 48949, 99150, 99550 + 1000,
                 140641, 141692, 143694, 145446, 146497, 147548]  # fmt: skip
    assert responses == [1000 * response for response in published]
    assert "audsley: 18 tasks" in str(plan)
    assert repr(plan) == "<Plan of audsley: schedulable>"


def test_what_fails_and_by_how_much() -> None:
    plan = bulkhead.check("audsley", overrides=["task-02@cost=4900us"])
    assert not plan.schedulable
    worst = plan.failures[0]
    assert not worst.holds
    assert worst.excess is None or worst.excess > 0
    assert "fail>" in repr(plan)
    # Going back to the published cost is one of the repairs, or less than that is enough.
    repairs = {(one.number, one.subject): one for one in plan.repairs()}
    repair = repairs["cost", "task-02"]
    assert 3_000_000 <= repair.after < repair.before == 4_900_000
    assert bulkhead.check("audsley", overrides=[f"task-02@cost={repair.after}ns"]).schedulable
    assert not bulkhead.check("audsley", overrides=[f"task-02@cost={repair.after + 1}ns"]).schedulable
    assert bulkhead.check("audsley").repairs() == []


def test_what_nobody_knows_is_not_judged() -> None:
    plan = bulkhead.check("oneshot/pair", overrides=["platform/network@credits=2"])
    assert plan.schedulable is None
    assert repr(plan) == "<Plan of pair: nothing was judged>"
    assert {one.holds for one in plan.constraints} == {None}
    assert all(one.note and "waits for room" in one.note for one in plan.constraints)
    assert plan.failures == ()
    assert plan.repairs() == []


def test_a_task_set_of_another_tool(tmp_path: Path) -> None:
    system = [Task(1, 4), Task(1, 5), Task(3, 9), Task(3, 18)]
    source = tmp_path / "tasks.xml"
    files.write_schedcat(source, system)
    out = tmp_path / "planned.xml"
    plan = bulkhead.plan(source, unit="1ms", out=out)
    assert plan.schedulable
    bounds = {one.subject: one.bound for one in plan.constraints if one.kind == "response"}
    expected = analysis.fixed_priority_response_times(system)
    assert sorted(bound or 0 for bound in bounds.values()) == sorted(1_000_000 * (r or 0) for r in expected)
    # What was written is complete: nothing is left to decide, and the verdict is the same.
    again = bulkhead.check(out)
    assert again.choices == ()
    assert again.constraints == plan.constraints
    exported = files.parse_schedcat(plan.export("schedcat", unit="1ms"))[0]
    assert sorted((t.cost, t.period) for t in exported) == sorted((t.cost, t.period) for t in system)
    assert plan.export("csv", unit="1ms").startswith("id,period,wcet")


def test_a_plan_that_fails_is_not_written(tmp_path: Path) -> None:
    source = tmp_path / "tasks.xml"
    files.write_schedcat(source, [Task(5, 8), Task(5, 8)])
    out = tmp_path / "planned.xml"
    assert not bulkhead.plan(source, out=out).schedulable
    assert not out.exists()
    assert bulkhead.plan(source, processors=2, out=out).schedulable
    assert out.exists()


def test_bad_descriptions(tmp_path: Path) -> None:
    bad = tmp_path / "bad.xml"
    bad.write_text('<task-system name="x">\n  <processors/>\n  <task name="t" period="5" cost="1us"/>\n</task-system>\n')
    with pytest.raises(DescriptionError, match=r"bad.xml:3:"):
        bulkhead.check(bad)
    bad.write_text("\x00")
    with pytest.raises(DescriptionError):
        bulkhead.check(bad)
    with pytest.raises((DescriptionError, OSError), match="nothing"):
        bulkhead.check(tmp_path / "nothing.xml")
    with pytest.raises(DescriptionError, match="there is no policy"):
        bulkhead.check("audsley", policy="best")
    with pytest.raises(DescriptionError, match="about task systems"):
        bulkhead.check("quickstart", policy="edf")
    with pytest.raises(bulkhead.TaskError, match="processors must not be negative"):
        bulkhead.check("audsley", processors=-1)
    with pytest.raises(TypeError, match="processors must be an integer"):
        bulkhead.check("audsley", processors=1.5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="not one str"):
        bulkhead.check("audsley", overrides="task-01@cost=1us")
    with pytest.raises(DescriptionError):
        bulkhead.check("audsley", overrides=["nonsense"])
    with pytest.raises(ValueError, match="unknown format"):
        bulkhead.check("audsley").export("pdf")  # type: ignore[arg-type]
    with pytest.raises(DescriptionError, match="is not a unit of time"):
        bulkhead.check("audsley").export("csv", unit="1 fortnight")


LOOP = """<system name="loop" platform="tiled-gem5">
  <domain name="control" criticality="A">
    <app name="sensor" program="p"><task period="1ms" cost="5us" accesses="40"/><sgate name="out" to="actuator"/></app>
    <app name="actuator" program="p"><task period="1ms" cost="5us" accesses="40"/><rgate name="in"/></app>
  </domain>
  <domain name="logger"><app name="hog" program="p"/></domain>
  <flow name="loop" from="sensor" to="actuator" deadline="150us"/>
</system>
"""


def test_a_system_with_a_chip(tmp_path: Path) -> None:
    source = tmp_path / "loop.xml"
    source.write_text(LOOP)
    nothing = bulkhead.check("quickstart")
    assert nothing.schedulable is None
    assert repr(nothing) == "<SystemPlan of quickstart: nothing was judged>"
    judged = bulkhead.check(source)
    assert isinstance(judged, planning.SystemPlan)
    # Nothing is promised while the hog has no limit; a plan gives it one.
    assert [one.kind for one in judged.constraints] == ["response", "response"]
    out = tmp_path / "planned.xml"
    plan = bulkhead.plan(source, out=out)
    assert plan.schedulable
    assert {one.what for one in plan.choices} == {"tiles", "limits"}
    again = bulkhead.check(out)
    (flow,) = [one for one in again.constraints if one.kind == "flow"]
    assert flow.holds
    assert flow.limit == 150_000
    assert flow.bound is not None
    assert flow.bound <= 150_000
    assert again.export() == out.read_text()
    late = bulkhead.check(out, overrides=["loop@deadline=100us"])
    assert [one.subject for one in late.failures] == ["loop"]
    repairs = {(one.subject, one.number): one for one in late.repairs()}
    assert repairs["flow[loop]", "deadline"].after == flow.bound
    assert "FAILED: 1 promise" in str(late)
    assert repr(late) == "<SystemPlan of loop: 1 of 3 fail>"
    with pytest.raises(ValueError, match="as XML"):
        plan.export("csv")
