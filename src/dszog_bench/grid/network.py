"""The grid: preventive security-constrained dispatch of 200 buses in Illinois.

Variables are the power of each generator (but the slack) as a share of its range, and
the voltage set point of each generator bus between 0.95 and 1.10, all from 0 to 1. A
case is the outage of one line under one load scenario; its limits are the currents of
all lines and transformers, the voltages of all buses, and the power of the slack, each
relative to its size. The objective is the cost of the intact grid over that of the
base dispatch.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import dszog
from dszog.contract.arrays import FloatArray, IntArray
from dszog.errors import MissingExtraError

DERATED = 0.9  # of the rating of a line may be used under the usual load
LOWEST, HIGHEST = 0.95, 1.10  # voltage set points
SPREAD = 0.1  # of single loads in a scenario; all together stay within 1 %


def load_network() -> Any:
    """Return the network, whose power flows are lightsim2grid's."""
    try:
        import pandapower
        import pandapower.networks
        from lightsim2grid.network import init_from_pandapower  # noqa: F401
    except ImportError as error:
        raise MissingExtraError.of(
            "The grid", "pandapower and lightsim2grid", "grid"
        ) from error
    return pandapower.networks.case_illinois200()


class Grid:
    """Power flows of the grid after outages, one call each; counted."""

    def __init__(self, n_scenarios: int = 1) -> None:
        network = load_network()
        self.n_calls = 0
        self.rated = DERATED if n_scenarios == 1 else 1.0  # less has no solution
        self._read_generators(network)
        self._read_branches(network)
        self._draw_loads(network, n_scenarios)
        self._open(network)
        self.outages = self._survivable()
        self.n_outages, self.n_scenarios = len(self.outages), n_scenarios
        self.n_cases = self.n_outages * n_scenarios
        self.cost_base = 1.0
        self.cost_base = self.cost(self.x_base)
        self.n_calls = 0

    # --------------------------------------------------------------------- the data

    def _read_generators(self, network: Any) -> None:
        gens, slack = network.gen, network.ext_grid
        self.p_least = np.append(gens.min_p_mw.values, slack.min_p_mw.values)
        self.p_most = np.append(gens.max_p_mw.values, slack.max_p_mw.values)
        self.p_base = np.append(gens.p_mw.values, 0.0)  # the slack balances the rest
        v_base = np.append(gens.vm_pu.values, slack.vm_pu.values)
        buses = np.append(gens.bus.values, slack.bus.values)
        self.slack = len(gens)
        self.n_generators = len(gens) + 1
        costs = np.zeros((3, self.n_generators))
        for row in network.poly_cost.itertuples():
            place = int(row.element) if row.et == "gen" else self.slack
            costs[0, place] += row.cp0_eur
            if row.et in ("gen", "ext_grid"):  # others feed in what they do
                costs[1:, place] += row.cp1_eur_per_mw, row.cp2_eur_per_mw2
        self.prices = costs
        moves = self.p_most > self.p_least + 1e-6
        moves[self.slack] = False
        self.free = np.flatnonzero(moves)
        _, first, self.set_point = np.unique(
            buses, return_index=True, return_inverse=True
        )
        self.room = self.p_most - self.p_least
        power = (self.p_base - self.p_least)[self.free] / self.room[self.free]
        voltage = (v_base[first] - LOWEST) / (HIGHEST - LOWEST)
        self.x_base = np.clip(np.append(power, voltage), 0.0, 1.0)
        self.dim = len(self.x_base)

    def _read_branches(self, network: Any) -> None:
        lines, trafos = network.line, network.trafo
        self.currents = self.rated * (lines.max_i_ka * lines.parallel * lines.df).values
        self.ratings = (trafos.sn_mva * trafos.parallel).values
        self.volts = trafos.vn_hv_kv.values, trafos.vn_lv_kv.values
        self.n_buses = len(network.bus)
        self.line_ends = network.line[["from_bus", "to_bus"]].values
        self.limit_names = (
            *(f"current of line {a}-{b}" for a, b in self.line_ends),
            *(f"load of transformer {k}" for k in range(len(trafos))),
            *(f"high voltage of bus {k}" for k in range(self.n_buses)),
            *(f"low voltage of bus {k}" for k in range(self.n_buses)),
            "most power of the slack",
            "least power of the slack",
        )
        self.width = len(self.limit_names)

    def _draw_loads(self, network: Any, n_scenarios: int) -> None:
        self.loads = np.array([network.load.p_mw.values, network.load.q_mvar.values])
        if n_scenarios == 1:
            self.factors = np.ones((1, self.loads.shape[1]))
            return
        rng = np.random.default_rng(0)
        half = SPREAD / 2
        common = 1 + half * rng.uniform(-1, 1, n_scenarios)
        single = rng.uniform(-1, 1, (n_scenarios, self.loads.shape[1]))
        factors = common[:, np.newaxis] * (1 + SPREAD * single)
        total = factors @ self.loads[0] / self.loads[0].sum()
        wanted = 1 + 0.01 * rng.uniform(-1, 1, n_scenarios)
        self.factors = factors * (wanted / total)[:, np.newaxis]

    # ----------------------------------------------------------------- power flows

    def _open(self, network: Any) -> None:
        from lightsim2grid.network import init_from_pandapower

        self._intact = init_from_pandapower(network)
        flat = np.full(self.n_buses, 1.04, dtype=complex)
        self._first = np.array(self._intact.ac_pf(flat, 20, 1e-8))

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if k != "_intact"}

    def open(self) -> None:
        """Build the simulator where it is not there yet: once in each worker."""
        if not hasattr(self, "_intact"):
            self._open(load_network())

    def _survivable(self) -> IntArray:
        """Return the outages after which the base dispatch has a power flow."""
        found = []
        for line in range(len(self.currents)):
            self._intact.deactivate_powerline(line)
            if len(self._intact.ac_pf(self._first.copy(), 20, 1e-8)):
                found.append(line)
            self._intact.reactivate_powerline(line)
        return np.array(found)

    def _solved(
        self, x: FloatArray, outage: int | None = None, scenario: int = 0
    ) -> tuple[FloatArray, FloatArray] | None:
        """Return the generators' power and all limits; None without a power flow.

        Without an outage under the usual load.
        """
        self.open()
        self.n_calls += 1
        grid = self._intact.copy()  # one used before gives other last digits
        if outage is not None:
            grid.deactivate_powerline(outage)
        n_free = len(self.free)
        power = self.p_base.copy()
        power[self.free] = self.p_least[self.free] + x[:n_free] * self.room[self.free]
        volts = (LOWEST + (HIGHEST - LOWEST) * x[n_free:])[self.set_point]
        for k in range(self.n_generators):
            if k != self.slack:
                grid.change_p_gen(k, power[k])
            grid.change_v_gen(k, volts[k])
        if self.n_scenarios > 1 and outage is not None:
            active, reactive = self.loads * self.factors[scenario]
            for k in range(len(active)):
                grid.change_p_load(k, active[k])
                grid.change_q_load(k, reactive[k])
        found = grid.ac_pf(self._first.copy(), 15, 1e-8)
        if not len(found):
            return None
        power[self.slack] = np.asarray(grid.get_gen_res()[0])[self.slack]
        return power, self._limits(grid, np.abs(found[: self.n_buses]), power)

    def _limits(self, grid: Any, volts: FloatArray, power: FloatArray) -> FloatArray:
        ends = grid.get_line_res1()[3], grid.get_line_res2()[3]
        currents = np.maximum(*map(np.asarray, ends)) / self.currents - 1
        sides = grid.get_trafo_res1()[3], grid.get_trafo_res2()[3]
        high, low = (np.asarray(a) * v for a, v in zip(sides, self.volts, strict=True))
        loads = np.maximum(high, low) * np.sqrt(3) / self.ratings - 1
        k, slack = self.slack, power[self.slack]
        least, most = self.p_least[k], self.p_most[k]
        ends = np.array([slack - 1.05 * most, least - slack]) / max(most - least, 1.0)
        return np.concatenate(
            [currents, loads, (volts - 1.1) / 0.1, (0.9 - volts) / 0.1, ends]
        )

    # ----------------------------------------------------------- what is optimised

    def cost(self, x: FloatArray) -> float:
        """Return the cost of the intact grid under the usual load."""
        found = self._solved(x)
        if found is None:
            return float("nan")
        fixed, linear, square = self.prices
        power, _ = found
        total = fixed.sum() + linear @ power + square @ power**2
        return float(total / self.cost_base)

    def limits(self, x: FloatArray, case: int) -> FloatArray:
        """Return all limits of a case: an outage under a load scenario."""
        scenario, outage = divmod(case, self.n_outages)
        found = self._solved(x, int(self.outages[outage]), scenario)
        return np.full(self.width, np.nan) if found is None else found[1]

    def case_name(self, case: int) -> str:
        """Return what has happened in a case."""
        scenario, outage = divmod(case, self.n_outages)
        start, end = self.line_ends[self.outages[outage]]
        load = f" at load {scenario}" if self.n_scenarios > 1 else ""
        return f"line {start}-{end} lost{load}"

    def worst(self, x: FloatArray) -> float:
        """Return the worst limit of all cases, uncounted; infinite if one fails."""
        n = self.n_calls
        found = [self.limits(x, i).max() for i in range(self.n_cases)]
        self.n_calls = n
        return float("inf") if np.isnan(found).any() else float(np.max(found))

    def start(self, which: int) -> FloatArray:
        """Return the base dispatch (0), or a random point."""
        if which:
            return np.random.default_rng(which).uniform(0.0, 1.0, self.dim)
        base: FloatArray = self.x_base.copy()
        return base

    def problem(self, start: int = 0) -> dszog.Problem:
        """Return the problem from a start."""
        simulator = dszog.Simulator(
            self.limits,
            (self.n_scenarios, self.n_outages),
            self.width,
            objective=self.cost,
            names=(self.case_name, self.limit_names),
            initializer=self.open,
        )
        return dszog.Problem(
            simulator,
            None,
            self.dim,
            bounds=[(0.0, 1.0)] * self.dim,
            x0=self.start(start),
        )
