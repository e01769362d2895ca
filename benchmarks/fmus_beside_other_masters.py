"""Two FMUs coupled by waves, beside masters that exchange samples: errors, calls of doStep and wall time.

    python benchmarks/fmus_beside_other_masters.py [quarter_car] [stiff_masses] [whole_periods]
        [--by c|pythonfmu|portwave] [--quick] [--masters waves …]

needs the Python package, SciPy, a C compiler and FMPy; libcosimpy and ecospy (pip install libcosimpy ecospy) are left
out, and said to be, where they are missing. All masters run the same FMUs (examples/fmu/quarter_car), which count
their own steps (tools/count_steps.py). What is right comes from SciPy's matrix exponential of the whole system.

The error is the root mean square, over time, of both positions' deviation, over that of the motion itself. Rows are
JSON as those of the other benchmarks: what is compared is the number of doSteps at equal error, of the best
settings that were tried on either side, interpolated between runs; and stability by step size.

Waves know the exact integrals of both ports' answers; `waves_without_integral` does not, and `iterated_integrals` is
the exchange that knows them, too. The settings of all masters stand in docs/reference/fmus.md.
"""

import argparse
import importlib.util
import json
import math
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.linalg import expm

sys.path[:0] = [str(Path(__file__).resolve().parent / "tools"),
                str(Path(__file__).resolve().parents[1] / "examples" / "fmu" / "quarter_car")]
import make_quarter_car as models  # noqa: E402
from count_steps import Counter, counted  # noqa: E402


@dataclass
class Case:
    """A pair, the values of its FMUs, and how long it runs."""

    name: str
    end_s: float
    chassis: dict
    wheel: dict

    def __post_init__(self):
        c, w = self.chassis, self.wheel
        # q, vc, xw - road, vw
        self.matrix = np.array([[0, 1, 0, -1],
                                [-c["k"] / c["m"], -c["d"] / c["m"], 0, c["d"] / c["m"]],
                                [0, 0, 0, 1],
                                [c["k"] / w["m"], c["d"] / w["m"], -w["k"] / w["m"], -(c["d"] + w["d"]) / w["m"]]])
        self.values, self.vectors = np.linalg.eig(self.matrix)
        start = np.array([0, 0, -w["road"], 0])
        self.shares = np.linalg.solve(self.vectors, start)
        for t in (0.01 * self.end_s, self.end_s):
            assert np.allclose(self._states([t])[0], expm(self.matrix * t) @ start, rtol=0, atol=1e-12)

    def _states(self, times):
        return (np.exp(np.outer(times, self.values)) * self.shares @ self.vectors.T).real

    def truth(self, times):
        """Positions of both bodies, shape [times, 2]."""
        q, _, wheel, _ = self._states(times).T
        wheel = wheel + self.wheel["road"]
        return np.stack([q + wheel, wheel], axis=1)

    def error(self, times, positions):
        """Relative; infinite where a run has diverged."""
        times, positions = np.asarray(times), np.asarray(positions)
        if len(times) < 2 or times[-1] < 0.99 * self.end_s:
            return math.inf  # a run that has ended early
        exact = self.truth(times)
        with np.errstate(over="ignore", invalid="ignore"):
            off = np.trapezoid(((positions - exact) ** 2).sum(axis=1), times)
            error = math.sqrt(off / np.trapezoid((exact**2).sum(axis=1), times))
        return error if math.isfinite(error) else math.inf


CASES = {
    "quarter_car": Case("quarter_car", 4.0, {"m": 400.0, "k": 15000.0, "d": 1000.0},
                        {"m": 40.0, "k": 150000.0, "d": 0.0, "road": 0.1}),
    # 145 Hz between two masses that swing at 1 Hz together. The chassis swings at 112 Hz where its neighbour is held.
    "stiff_masses": Case("stiff_masses", 4.0, {"m": 1.0, "k": 5e5, "d": 20.0},
                         {"m": 1.5, "k": 100.0, "d": 1.0, "road": 0.1}),
    # There at 159 Hz: steps of 12.5, 25, 50 and 100 ms are almost 2, 4, 8 and 16 whole periods, unseen by means.
    "whole_periods": Case("whole_periods", 4.0, {"m": 1.0, "k": 1e6, "d": 20.0},
                          {"m": 1.5, "k": 100.0, "d": 1.0, "road": 0.1}),
}


@dataclass
class Run:
    master: str
    setting: str
    error: float
    steps: int
    wall_s: float


class Fmus:
    """The counted FMUs of a case, and the names of their variables."""

    def __init__(self, folder, case, by):
        made = folder / f"{case.name}_by_{by}"
        made.mkdir()
        self.by, self.case = by, case
        self.names = {"chassis": {"F": "F", "v": "v", "x": "x", "P": "impulse"},
                      "wheel": {"F": "F", "v": "v", "x": "x"}}
        self.start = {"chassis": case.chassis, "wheel": case.wheel}
        if by == "portwave":
            models.by_portwave(made, case.chassis, case.wheel)
            self.start = {"chassis": {}, "wheel": {}}  # they are built in
            self.names = {
                "chassis": {"F": "strut.right.effort", "v": "strut.right.flow", "x": "body.position",
                            "P": "strut.right.effort_integral"},
                "wheel": {"F": "body.port_2.effort", "v": "body.velocity", "x": "body.position"},
            }
        elif by == "pythonfmu":
            models.by_python(made, 2)
        else:
            models.by_c(made)
        self.files = {name: counted(made / f"{name}.fmu", made / f"counted_{name}.fmu") for name in self.names}

    def join(self, system, integral):
        """As parts of a system, joined by their power."""
        if self.by == "portwave":  # whose ports are declared
            for name, file in self.files.items():
                system.add_fmu(name, file)
            return system.connect("chassis.strut_right", "wheel.body_port_2")
        hub = {"name": "hub", "effort": "F", "flow": "v"}
        impulse, x = ({"integral": own} if integral else {} for own in ("impulse", "x"))
        system.add_fmu("chassis", self.files["chassis"], start=self.start["chassis"],
                       ports=[{**hub, "input": "flow", "power": "out", **impulse}])
        system.add_fmu("wheel", self.files["wheel"], start=self.start["wheel"],
                       ports=[{**hub, "input": "effort", **x}])
        return system.join("common_flow", "chassis.hub", "wheel.hub")


class Masters:
    """Each method runs FMUs to the end of their case: times, positions of chassis and wheel, and wall time."""

    def __init__(self, fmus):
        self.fmus, self.case = fmus, fmus.case

    def _sample(self, step_s, step, read):
        """Steps of one size, timed."""
        count = round(self.case.end_s / step_s)
        positions = np.zeros((count + 1, 2))
        begin = time.perf_counter()
        for n in range(count):
            step(n * step_s)
            positions[n + 1] = read()
        return np.arange(count + 1) * step_s, positions, time.perf_counter() - begin

    def waves(self, step_s, integral=True):
        import portwave as pw

        system = pw.System(self.case.name, step_s=step_s, end_s=self.case.end_s, allow_plugins=True)
        positions = [f"{name}.{own['x'].replace('.', '_')}" for name, own in self.fmus.names.items()]
        self.fmus.join(system, integral).observe(*positions)
        stepper = pw.Stepper(system)
        return self._sample(step_s, lambda t: stepper.step(), lambda: [stepper[own] for own in positions])

    def waves_without_integral(self, step_s):
        return self.waves(step_s, integral=False)

    def our_jacobi(self, step_s):
        """The FMUs as blocks of a signal graph: samples of an instant go into the step after it."""
        import portwave as pw

        system = pw.System(self.case.name, step_s=step_s, end_s=self.case.end_s, allow_plugins=True)
        # A system has a part; this one has nothing to do with the FMUs.
        system.add("aside", "mass", mass_kg=1.0)
        system.join("free", "aside.port")
        names = self.fmus.names
        for name, given, taken, other in (("chassis", "F", "v", "wheel"), ("wheel", "v", "F", "chassis")):
            system.add_block(name, "fmu", path=str(self.fmus.files[name]), start=self.fmus.start[name],
                             outputs=[names[name][given], names[name]["x"]],
                             signals={names[name][taken]: f"{other}[0]"})
        system.observe("chassis[1]", "wheel[1]")
        stepper = pw.Stepper(system)
        return self._sample(step_s, lambda t: stepper.step(), lambda: [stepper["chassis[1]"], stepper["wheel[1]"]])

    def _by_fmpy(self, step_s, stepper):
        """`stepper` makes, of the FMUs by name, ways to get and to put a variable: a step from a time."""
        import fmpy
        from fmpy.fmi2 import FMU2Slave

        own, references = {}, {}
        for name, file in self.fmus.files.items():
            description = fmpy.read_model_description(str(file), validate=False)
            known = {v.name: v.valueReference for v in description.modelVariables}
            references[name] = {short: known[long] for short, long in self.fmus.names[name].items()}
            own[name] = FMU2Slave(guid=description.guid, unzipDirectory=fmpy.extract(str(file)),
                                  modelIdentifier=description.coSimulation.modelIdentifier, instanceName=name)
            own[name].instantiate()
            own[name].setupExperiment(startTime=0.0)
            for key, value in self.fmus.start[name].items():
                own[name].setReal([known[key]], [value])
            own[name].enterInitializationMode()
            own[name].exitInitializationMode()

        def get(name, variable):
            return own[name].getReal([references[name][variable]])[0]

        def put(name, variable, value):
            own[name].setReal([references[name][variable]], [value])

        try:
            return self._sample(step_s, stepper(own, get, put), lambda: [get("chassis", "x"), get("wheel", "x")])
        finally:
            for slave in own.values():
                slave.terminate()
                slave.freeInstance()

    def fmpy_gauss_seidel(self, step_s, is_jacobi=False):
        """The wheel steps after the chassis, with the force at the end of its step; or both with that of its start."""

        def stepper(own, get, put):
            def step(t):
                force = get("chassis", "F")
                put("chassis", "v", get("wheel", "v"))
                own["chassis"].doStep(currentCommunicationPoint=t, communicationStepSize=step_s)
                put("wheel", "F", force if is_jacobi else get("chassis", "F"))
                own["wheel"].doStep(currentCommunicationPoint=t, communicationStepSize=step_s)

            return step

        return self._by_fmpy(step_s, stepper)

    def fmpy_jacobi(self, step_s):
        return self.fmpy_gauss_seidel(step_s, is_jacobi=True)

    def _iterated(self, step_s, held, is_secant):
        """One after the other, and back to the start of the step, until the wheel answers what the chassis was given.

        The inputs of a step are what the other FMU `held` over it: its answer at the end; the mean of its answers at
        both ends; or the mean by its integral. With `is_secant` the next guess is where the line through the last two
        meets what it leads to, which is all that a linear pair with one number between its FMUs needs; the slope is
        kept from step to step.
        """

        def stepper(own, get, put):
            slope, largest = 0.0, 0.0  # of the answer over the guess; of the velocities that there were

            def step(t):
                nonlocal slope, largest
                before = {name: slave.getFMUState() for name, slave in own.items()}
                velocity, force = get("wheel", "v"), get("chassis", "F")
                x, impulse = get("wheel", "x"), get("chassis", "P")
                guess, last = velocity, None
                for count in range(100):
                    if count:
                        for name, slave in own.items():
                            slave.setFMUState(before[name])
                    put("chassis", "v", guess)
                    own["chassis"].doStep(currentCommunicationPoint=t, communicationStepSize=step_s)
                    if held == "integral":
                        given = (get("chassis", "P") - impulse) / step_s
                    elif held == "mean":
                        # That of the end is the force at the velocity of the end.
                        put("chassis", "v", 2 * guess - velocity)
                        given = (force + get("chassis", "F")) / 2
                    else:
                        given = get("chassis", "F")
                    put("wheel", "F", given)
                    own["wheel"].doStep(currentCommunicationPoint=t, communicationStepSize=step_s)
                    if held == "integral":
                        answer = (get("wheel", "x") - x) / step_s
                    else:
                        answer = get("wheel", "v")
                        answer = (velocity + answer) / 2 if held == "mean" else answer
                    largest = max(largest, abs(answer))
                    if not math.isfinite(answer) or abs(answer - guess) <= self.AGREES * largest:
                        break
                    if is_secant and last is not None and guess != last[0]:
                        slope = (answer - last[1]) / (guess - last[0])
                    last = guess, answer
                    guess += (answer - guess) / (1 - slope)
                else:
                    raise RuntimeError(f"the exchange does not end at {t} s")
                for name, slave in own.items():
                    slave.freeFMUState(before[name])

            return step

        return self._by_fmpy(step_s, stepper)

    # Of the largest velocity: an iterated exchange ends where guess and answer differ by less.
    AGREES = 1e-6

    def iterated(self, step_s):
        return self._iterated(step_s, "end", is_secant=False)

    def iterated_secant(self, step_s):
        return self._iterated(step_s, "end", is_secant=True)

    def iterated_means(self, step_s):
        return self._iterated(step_s, "mean", is_secant=True)

    def iterated_integrals_plain(self, step_s):
        return self._iterated(step_s, "integral", is_secant=False)

    def iterated_integrals(self, step_s):
        return self._iterated(step_s, "integral", is_secant=True)

    def libcosim(self, step_s=None, ecco=None):
        from libcosimpy.CosimAlgorithm import CosimAlgorithm, EccoParams
        from libcosimpy.CosimEnums import CosimVariableType
        from libcosimpy.CosimExecution import CosimExecution
        from libcosimpy.CosimLogging import CosimLogLevel, log_output_level
        from libcosimpy.CosimObserver import CosimObserver
        from libcosimpy.CosimSlave import CosimLocalSlave

        log_output_level(CosimLogLevel.ERROR)
        algorithm = None
        if ecco is None:
            execution = CosimExecution.from_step_size(step_s * 1e9)
        else:
            algorithm = CosimAlgorithm.create_ecco_algorithm(EccoParams(**ecco))
            execution = CosimExecution.from_algorithm(algorithm)
        slaves = {name: CosimLocalSlave(str(file), name) for name, file in self.fmus.files.items()}
        index = {name: execution.add_local_slave(slave) for name, slave in slaves.items()}
        known = {name: {v.name.decode(): v.reference for v in execution.slave_variables(i)}
                 for name, i in index.items()}
        for name, values in self.fmus.start.items():
            for key, value in values.items():
                execution.real_initial_value(index[name], known[name][key], value)
        c, w = index["chassis"], index["wheel"]
        of_c, of_w = ({short: known[name][long] for short, long in self.fmus.names[name].items()} for name in index)
        execution.connect_real_variables(c, of_c["F"], w, of_w["F"])
        execution.connect_real_variables(w, of_w["v"], c, of_c["v"])
        room = 8_000_000 if ecco else round(self.case.end_s / step_s) + 10
        observer = CosimObserver.create_time_series(room)
        execution.add_observer(observer)
        shown = [(c, of_c["x"]), (w, of_w["x"])]
        if algorithm is not None:
            algorithm.add_power_bond(c, of_c["F"], of_c["v"], w, of_w["v"], of_w["F"])
            # It reads inputs, too, and can only read what is observed.
            shown += [(c, of_c["v"]), (w, of_w["F"])]
        for slave, reference in shown:
            observer.start_time_series(slave, reference, CosimVariableType.REAL)
        begin = time.perf_counter()
        succeeded = execution.simulate_until(round(self.case.end_s * 1e9))
        wall_s = time.perf_counter() - begin
        if not succeeded:
            return [], [], wall_s
        columns = [observer.time_series_real_samples(slave, reference, 1, room) for slave, reference in shown[:2]]
        times = np.array([0.0, *(1e-9 * np.array(columns[0][0]))])
        return times, np.array([[0.0, *own[2]] for own in columns]).T, wall_s

    def ecco(self, tolerance, **others):
        """libcosim's energy-conserving algorithm, with the values of its own quarter truck (tests/data/fmi2 there).

        But for the shortest step, 1e-5 s there, which would keep it from small errors, and the tolerance, 1e-6 there.
        """
        return self.libcosim(ecco={
            "safety_factor": 0.99, "step_size": 1e-4, "min_step_size": 1e-7, "max_step_size": 0.01,
            "min_change_rate": 0.2, "max_change_rate": 1.5, "abs_tolerance": tolerance, "rel_tolerance": tolerance,
            "p_gain": 0.2, "i_gain": 0.15, **others})

    def ecco_longer(self, tolerance):
        """It may take steps as long as the longest of waves."""
        return self.ecco(tolerance, max_step_size=0.1)

    def ecco_gains(self, tolerance):
        """Half the gains, and a smaller safety factor."""
        return self.ecco(tolerance, p_gain=0.1, i_gain=0.075, safety_factor=0.8)

    def ecos(self, step_s):
        from ecospy import EcosSimulation, EcosSimulationStructure

        structure = EcosSimulationStructure()
        names = {name: {short: f"{name}::{long}" for short, long in own.items()}
                 for name, own in self.fmus.names.items()}
        for name, file in self.fmus.files.items():
            structure.add_model(name, str(file))
        structure.make_real_connection(names["chassis"]["F"], names["wheel"]["F"])
        structure.make_real_connection(names["wheel"]["v"], names["chassis"]["v"])
        structure.add_parameter_set("own", {f"{name}::{key}": float(value)
                                            for name, values in self.fmus.start.items()
                                            for key, value in values.items()})
        with EcosSimulation(structure=structure, step_size=step_s) as simulation:
            simulation.init(parameter_set="own")
            result = self._sample(step_s, lambda t: simulation.step(), lambda: [
                simulation.get_real(names["chassis"]["x"]), simulation.get_real(names["wheel"]["x"])])
            simulation.terminate()
        return result


def front(runs):
    """Those that no other run beats in both error and steps, the most exact one last."""
    out = []
    for own in sorted(runs, key=lambda run: (run.steps, run.error)):
        if math.isfinite(own.error) and (not out or own.error < out[-1].error):
            out.append(own)
    return out


def at_error(runs, error, what):
    """Steps or wall time at an error, between the runs about it; nothing where none is as exact."""
    best = front(runs)
    for before, after in zip(best, best[1:]):
        if before.error >= error > after.error:
            share = math.log(before.error / error) / math.log(before.error / after.error)
            return math.exp((1 - share) * math.log(what(before)) + share * math.log(what(after)))
    return None


class Study:
    """Runs of one case, and the rows that come of them."""

    # Of the car, by a factor of 2 each: steps below those are exact enough for every error that is compared.
    STEPS_S = [0.1, 0.05, 0.025, 0.0125, 0.01, 0.005, 0.0025, 0.00125, 0.000625]
    # What has order 1, or no integrals, needs shorter ones, halved so often: FMUs in C are fast enough for 5 µs.
    HALVED = {"fmpy_gauss_seidel": 7, "iterated": 4, "iterated_secant": 5, "iterated_means": 2,
              "waves_without_integral": 2}
    TOLERANCES = [1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8]

    def __init__(self, fmus, counter, is_quick):
        self.masters, self.case, self.counter = Masters(fmus), fmus.case, counter
        self.name = f"fmus_beside_other_masters/{fmus.case.name}_by_{fmus.by}"
        self.steps_s = self.STEPS_S[:-3] if is_quick else self.STEPS_S
        # Each step of another size costs ours some preparation, and those in Python take long.
        self.tolerances = self.TOLERANCES[: 4 if is_quick or fmus.by != "c" else None]
        self.takes_shorter = fmus.by == "c" and not is_quick
        self.runs = {}

    def run(self, master, setting, **options):
        rounds = []
        for _ in range(3):
            self.counter.reset()
            try:
                times, positions, wall_s = getattr(self.masters, master)(**options)
            except RuntimeError as error:  # a run of ours that has diverged says so
                times, positions, wall_s = [], [], math.nan
                print(f"{self.name}: {master} at {setting}: {error}", file=sys.stderr)
            rounds.append(Run(master, setting, self.case.error(times, positions), int(self.counter), wall_s))
            if not rounds[-1].wall_s < 0.3:
                break
        best = min(rounds, key=lambda own: own.wall_s)
        self.runs.setdefault(master, {})[setting] = best
        print(f"{self.name:48s} {master:18s} {setting:8g} error {best.error:9.2e}  doSteps {best.steps:8d}  "
              f"{1e3 * best.wall_s:9.1f} ms", file=sys.stderr)

    def all(self, masters):
        for master in masters:
            if master.startswith("ecco"):
                for tolerance in self.tolerances[: None if master == "ecco" else 5]:
                    self.run(master, tolerance, tolerance=tolerance)
                continue
            shorter = self.HALVED.get(master, 0) if self.takes_shorter else 0
            for h in self.steps_s + [self.STEPS_S[-1] / 2**n for n in range(1, shorter + 1)]:
                self.run(master, h, step_s=h)

    def row(self, name, ours, reference, goal, note, sense="at least"):
        ratio = None if None in (ours, reference) or not ours else reference / ours
        print(json.dumps({
            "name": f"{self.name}/{name}", "ours": ours, "reference": reference, "sense": sense, "ratio": ratio,
            "goal": goal, "holds": None if goal is None or ratio is None else ratio >= goal, "note": note,
            "processes": 1}))

    def report(self):
        waves = self.runs["waves"]
        self.check_samples()
        for error in (1e-3, 1e-4, 1e-5):
            ours = [at_error(waves.values(), error, what) for what in (steps_of, time_of)]
            for master in sorted(set(self.runs) - {"waves"}):
                runs = self.runs[master].values()
                theirs = [at_error(runs, error, what) for what in (steps_of, time_of)]
                best = front(runs)
                note = "doSteps of all FMUs"
                if theirs[0] is None and best and best[-1].error < 1e2 * error:
                    note = f"not reached: its most exact run has {best[-1].error:.1e}"
                    theirs = [steps_of(best[-1]), time_of(best[-1])]
                if theirs[0] is not None:
                    goal = 5 if master.startswith("ecco") else None
                    self.row(f"doSteps_at_{error:g}_of_{master}", ours[0], theirs[0], goal, note)
                    self.row(f"time_at_{error:g}_of_{master}", ours[1], theirs[1], None, "s, without setting up")
        for master in ("our_jacobi", "fmpy_gauss_seidel"):
            for h, own in self.runs.get(master, {}).items():
                if h in waves and math.isfinite(waves[h].error):
                    other = own.error if math.isfinite(own.error) else None
                    is_goal = self.case.name == "quarter_car" and master == "our_jacobi"
                    self.row(f"error_at_{h:g}s_of_{master}", waves[h].error, other, 100 if is_goal else None,
                             "at equal step" if other else "at equal step, where it diverges")
        worst = max(own.error for own in waves.values())
        self.row("largest_error_of_any_step", worst, 1.0, 1.0, "of waves, at steps of up to 0.1 s: 1 is the motion")

    def check_samples(self):
        """Four programs that exchange samples alike have the same errors."""
        for h, own in self.runs.get("our_jacobi", {}).items():
            for master in {"fmpy_jacobi", "libcosim", "ecos"} & set(self.runs):
                other = self.runs[master][h].error
                if own.error < 1 and not math.isclose(own.error, other, rel_tol=1e-6):
                    sys.exit(f"{self.name}: {master} has the error {other} at {h} s, and our exchange {own.error}")


def steps_of(run):
    return run.steps


def time_of(run):
    return run.wall_s


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("cases", nargs="*", default=list(CASES), help=", ".join(CASES))
    parser.add_argument("--by", choices=["c", "pythonfmu", "portwave"], default="c")
    parser.add_argument("--quick", action="store_true", help="few and large steps")
    parser.add_argument("--masters", nargs="+", help="these alone, beside waves")
    given = parser.parse_args()
    masters = ["waves", "waves_without_integral", "our_jacobi", "fmpy_jacobi", "fmpy_gauss_seidel", "iterated",
               "iterated_secant", "iterated_means", "iterated_integrals_plain", "iterated_integrals"]
    if given.by == "portwave":  # whose ports are declared with their integrals
        masters.remove("waves_without_integral")
    for package, own in (("libcosimpy", ["libcosim", "ecco", "ecco_longer", "ecco_gains"]), ("ecospy", ["ecos"])):
        if importlib.util.find_spec(package):
            masters += own
        else:
            print(f"{package} is not installed: left out", file=sys.stderr)
    if given.masters:
        masters = [own for own in masters if own == "waves" or own in given.masters]
    with tempfile.TemporaryDirectory() as scratch:
        counter = Counter(Path(scratch) / "steps")
        for name in given.cases:
            study = Study(Fmus(Path(scratch), CASES[name], given.by), counter, given.quick)
            study.all(masters)
            study.report()


if __name__ == "__main__":
    main()
