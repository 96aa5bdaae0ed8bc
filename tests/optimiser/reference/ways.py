"""The way problem as a mixed-integer program for HiGHS: the reference for the exact method in analysis/src/mc2/ways.rs.

One binary variable says how many ways are locked, and for each number of locked ways one says how many ways each region has.
All coefficients are small integers, so HiGHS's tolerances cannot decide a constraint.
"""

import json
import math
import multiprocessing
import sys
import time

import highspy
import numpy as np


class Program:
    """Columns and rows as HiGHS takes them."""

    def __init__(self):
        self.cost, self.upper = [], []
        self.lowers, self.uppers, self.start, self.index, self.value = [], [], [0], [], []

    def column(self, cost):
        self.cost.append(cost)
        return len(self.cost) - 1

    def row(self, lower, upper, entries):
        for index, value in entries:
            if value:
                self.index.append(index)
                self.value.append(value)
        self.start.append(len(self.index))
        self.lowers.append(lower)
        self.uppers.append(upper)

    def solve(self):
        """Seconds in HiGHS, and the objective or None."""
        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = len(self.cost), len(self.lowers)
        lp.col_cost_ = np.array(self.cost, dtype=float)
        lp.col_lower_ = np.zeros(lp.num_col_)
        lp.col_upper_ = np.ones(lp.num_col_)
        lp.row_lower_ = np.array(self.lowers, dtype=float)
        lp.row_upper_ = np.array(self.uppers, dtype=float)
        lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        lp.a_matrix_.start_ = np.array(self.start, dtype=np.int32)
        lp.a_matrix_.index_ = np.array(self.index, dtype=np.int32)
        lp.a_matrix_.value_ = np.array(self.value, dtype=float)
        lp.integrality_ = [highspy.HighsVarType.kInteger] * lp.num_col_
        highs = highspy.Highs()
        for option, value in {
            "output_flag": False,
            "threads": 1,
            "mip_rel_gap": 0.0,
            "mip_abs_gap": 0.5,
            "mip_feasibility_tolerance": 1e-9,
            "primal_feasibility_tolerance": 1e-9,
            "dual_feasibility_tolerance": 1e-9,
        }.items():
            highs.setOptionValue(option, value)
        highs.passModel(lp)
        begin = time.perf_counter()
        highs.run()
        seconds = time.perf_counter() - begin
        status = highs.getModelStatus()
        if status in (highspy.HighsModelStatus.kInfeasible, highspy.HighsModelStatus.kUnboundedOrInfeasible):
            return seconds, None
        if status != highspy.HighsModelStatus.kOptimal:
            raise RuntimeError(f"HiGHS says {status}")
        solution = np.rint(np.array(highs.getSolution().col_value))
        return seconds, int(solution @ np.array(self.cost))


def solve(instance):
    """Seconds and (objective, slack) in units, or None."""
    ways, one, processors = instance["ways"], instance["one"], instance["processors"]
    all_processors = len(processors) * one
    stride = ways + 1
    low, high = instance["locked"]
    # Least utilisation of level C first, then least utilisation of levels A and B: what is left is the slack.
    weight = all_processors + 1
    program = Program()
    locked = {l: program.column(0) for l in range(low, min(high, ways) + 1)}
    if not locked:
        return 0.0, None
    regions = []
    for a, b, c in processors:
        regions.append({(l, w): program.column(c[l * stride + w]) for l in locked for w in range(stride)})
    total, largest = instance["c_total"], instance["c_largest"]
    level_c = {
        (l, w): program.column(weight * total[l * stride + w])
        for l in locked
        for w in range(instance["minimum_level_c"], stride)
    }
    program.row(1, 1, [(column, 1) for column in locked.values()])
    for region in [*regions, level_c]:
        for l, column in locked.items():
            program.row(0, 0, [(x, 1) for (m, _), x in region.items() if m == l] + [(column, -1)])
    every_way = [(column, l) for l, column in locked.items()]
    for region in [*regions, level_c]:
        every_way += [(x, w) for (_, w), x in region.items()]
    program.row(-math.inf, ways, every_way)
    left = []
    for region, tables in zip(regions, processors):
        for table in tables:
            program.row(-math.inf, one, [(x, table[l * stride + w]) for (l, w), x in region.items()])
        left += [(x, tables[2][l * stride + w]) for (l, w), x in region.items()]
    program.row(-math.inf, all_processors, left + [(x, total[l * stride + w]) for (l, w), x in level_c.items()])
    asked = [(x, largest[l * stride + w]) for (l, w), x in level_c.items()]
    program.row(-math.inf, all_processors, left + [(x, u + 1 if u else 0) for x, u in asked])
    seconds, objective = program.solve()
    if objective is None:
        return seconds, None
    return seconds, (objective // weight, all_processors - objective % weight - objective // weight)


def main():
    with open(sys.argv[1]) as file:
        instances = json.load(file)
    with multiprocessing.Pool() as pool:
        results = pool.map(solve, instances, chunksize=32)
    with open(sys.argv[2], "w") as file:
        json.dump({"answers": [answer for _, answer in results], "seconds": [seconds for seconds, _ in results]}, file)


if __name__ == "__main__":
    main()
