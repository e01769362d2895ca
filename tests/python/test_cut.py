"""A part that is cut into pieces keeps its name in programs."""

import numpy as np
import pytest

import portwave as pw


def bar(parts):
    n = 6
    K = [[i, i, 4.0] for i in range(n)] + [[i, i + 1, -2.0] for i in range(n - 1)]
    K += [[i + 1, i, -2.0] for i in range(n - 1)]
    system = pw.System("bar", step_s=0.01, end_s=0.1, method={"kind": "auto", "tolerance": 1e-13})
    own = {
        "name": "bar", "type": "second_order_system",
        "parameters": {
            "coordinates": {"count": n, "name": "q"},
            "ports": [{"name": "end", "domain": "translation", "causality": "effort_in"}],
            "inputs": [{"name": "load", "unit": "N"}],
            "M": np.eye(n), "K": {"entries": K},
            "B": np.column_stack([np.eye(n)[0], np.ones(n)]),
        },
        "inputs": {"load": {"kind": "settable"}},
    }
    if parts:
        own["cut"] = {"parts": parts}
    document = system.to_dict()
    document["subsystems"].append(own)
    document["couplings"].append({"kind": "free", "ports": ["bar.end"]})
    document["outputs"] = {"observe": ["bar.q2", "bar.end.flow", "bar.storage"]}
    return pw.System.from_dict(document)


@pytest.mark.parametrize("parts", [1, 2, 3])
def test_a_part_in_pieces_is_read_set_and_recorded_by_its_own_name(parts):
    whole, cut = pw.Stepper(bar(0)), pw.Stepper(bar(parts))
    assert cut.state_names == whole.state_names
    assert cut.input_names == whole.input_names == ["bar.load"]
    for stepper in (whole, cut):
        stepper["bar.load"] = 2.0
        stepper.step(10)
    assert cut["bar.load"] == 2.0 and abs(whole["bar.q2"]) > 1e-4
    np.testing.assert_allclose(cut.states(), whole.states(), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(cut.state("bar"), whole.state("bar"), rtol=1e-9, atol=1e-12)
    a, b = whole.record(steps=5), cut.record(steps=5)
    assert b.names == ["bar.q2", "bar.end.flow", "bar.storage"] == a.names and b.units == a.units
    np.testing.assert_allclose(b.values, a.values, rtol=1e-8, atol=1e-11)
    u = np.linspace(0, 1, 7)
    np.testing.assert_allclose(cut.rollout(u, ["bar.q6"]), whole.rollout(u, ["bar.q6"]), rtol=1e-8, atol=1e-11)
    linear = cut.linearise(["bar.q2", "bar.end.flow"])
    assert linear.input_names == ["bar.load"] and linear.C.shape[0] == 2
    known = whole.linearise(["bar.q2", "bar.end.flow"])

    def response(own, s=1.3j):
        return own.C @ np.linalg.solve(s * own.E - own.A, own.B) + own.D

    np.testing.assert_allclose(response(linear), response(known), rtol=1e-8)
    clone = cut.clone()
    clone.restore(cut.snapshot())
    assert np.array_equal(clone.states(), cut.states())


def test_a_part_in_pieces_has_its_names_within_a_step():
    chosen = {"/time": {"step": {"kind": "adaptive", "tolerance": 1e-6, "largest_s": 0.01}, "end_s": 1}}
    cut = pw.Stepper(bar(3), overrides=chosen)
    cut["bar.load"] = 2.0
    cut.step(5)
    assert np.array_equal(cut.state_at(cut.time_s), cut.states())
    within = cut.time_s - 0.25 * cut.report["step_s"]
    assert np.all(np.abs(cut.state_at(within) - cut.states()) < 0.1 * np.abs(cut.states()).max())


def test_unknown_names_are_told_by_those_of_the_part():
    cut = pw.Stepper(bar(3))
    with pytest.raises(KeyError, match='"bar" has nothing named "q9"'):
        cut["bar.q9"]
    with pytest.raises(KeyError, match='Did you mean "bar"'):
        cut.state("baar")
    with pytest.raises(Exception, match="cut into pieces"):
        cut.set_parameter("bar.M", 1.0)
    assert cut.state("bar/0").size > 0  # pieces have names of their own too


def test_replicas_of_a_part_in_pieces_begin_and_end_with_its_states():
    whole, cut = pw.Ensemble(bar(0), 2), pw.Ensemble(bar(3), 2)
    assert cut.state_names == whole.state_names and cut.input_names == ["bar.load"]
    x0 = np.random.default_rng(3).normal(size=(2, 12))
    u = np.ones((4, 1))
    a, b = whole.rollout(x0, u), cut.rollout(x0, u)
    assert a.shape == b.shape == (2, 4, 12)
    np.testing.assert_allclose(b, a, rtol=1e-8, atol=1e-10)
    out = np.empty((2, 4, 12))
    assert cut.rollout(x0, u, out=out) is out and np.array_equal(out, b)
    cut.start_from(x0[0])
    np.testing.assert_array_equal(cut.states(), [x0[0], x0[0]])


def membrane(side):
    """Mass, stiffness and damping of a membrane of side × side nodes, fixed at its edge."""
    sparse = pytest.importorskip("scipy.sparse")
    line = sparse.diags([2.0 * np.ones(side), -np.ones(side - 1), -np.ones(side - 1)], [0, 1, -1])
    K = 50.0 * (sparse.kron(line, sparse.eye(side)) + sparse.kron(sparse.eye(side), line))
    M = sparse.diags(1.0 + 0.1 * (np.arange(side * side) % 3))
    B = sparse.csc_matrix(([1.0], ([side // 2], [0])), shape=(side * side, 1))
    return M, K, 0.1 * M + 1e-3 * K, B


def stepped(M, K, D, B, cut):
    system = pw.System(step_s=0.01, method={"kind": "auto", "tolerance": 1e-13})
    system.add_second_order("plate", M, K, D, B, cut=cut, inputs={"u1": "settable"})
    stepper = pw.Stepper(system)
    stepper["plate.u1"] = 3.0
    stepper.step(20)
    return stepper


@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
def test_sparse_matrices_of_any_format_make_a_part_in_pieces(form):
    M, K, D, B = membrane(6)
    whole = stepped(M, K, D, B, None)
    cut = stepped(*(own.asformat(form) for own in (M, K, D, B)), 3)
    assert cut.state_names == whole.state_names and cut.state_names[0] == "plate.q1"
    assert abs(whole["plate.q4"]) > 1e-4
    np.testing.assert_allclose(cut.state("plate"), whole.state("plate"), rtol=1e-8, atol=1e-12)
    dense = stepped(*(own.toarray() for own in (M, K, D, B)), None)
    np.testing.assert_array_equal(dense.state("plate"), whole.state("plate"))


def test_sparse_matrices_are_not_made_dense():
    M, K, D, B = membrane(300)  # dense: 65 GB
    system = pw.System().add_second_order("plate", M, K, D, B, cut=4)
    assert len(system.to_dict()["subsystems"][0]["parameters"]["K"]["entries"]) == K.nnz


def test_matrices_in_memory_step_as_those_of_a_file():
    M, K, D, B = membrane(12)
    system = pw.System(step_s=0.01).add_second_order("plate", M, K, D, B, cut=2, inputs={"u1": 3.0})
    written = pw.System.from_dict(system.to_dict())
    assert '"entries": [[' in system.to_json() and "file" not in system.to_json()
    steppers = [pw.Stepper(own) for own in (system, written, system.copy())]
    for own in steppers:
        own.step(10)
        np.testing.assert_array_equal(own.states(), steppers[0].states())
    assert np.abs(steppers[0].states()).max() > 1e-6
    K[0, 0] = 1e9  # the system does not follow the caller's matrices
    again = pw.Stepper(system)
    again.step(10)
    np.testing.assert_array_equal(again.states(), steppers[0].states())
    many = pw.Ensemble(system, 2)
    np.testing.assert_allclose(many.rollout(steps=10)[0, -1], steppers[0].states(), rtol=1e-8, atol=1e-12)


def test_any_matrix_parameter_may_be_sparse():
    sparse = pytest.importorskip("scipy.sparse")
    n = 40
    J = np.zeros((2 * n, 2 * n))
    J[:n, n:], J[n:, :n] = np.eye(n), -np.eye(n)
    line = 2.0 * np.eye(n) - np.eye(n, k=1) - np.eye(n, k=-1)
    Q = np.block([[line, np.zeros((n, n))], [np.zeros((n, n)), np.eye(n)]])
    given = dict(states={"count": 2 * n}, ports=[], inputs=["u"], G=np.eye(2 * n, 1, -n), J=J, Q=Q)
    as_sparse = {**given, **{name: sparse.csr_matrix(given[name]) for name in "GJQ"}}
    results = []
    for own in (given, {**given, "J": J.tolist()}, as_sparse):
        stepper = pw.Stepper(pw.System(step_s=0.1).add("line", pw.linear_port_hamiltonian(**own), inputs={"u": 1.0}))
        stepper.step(20)
        results.append(stepper.states())
        np.testing.assert_array_equal(results[-1], results[0])
    assert np.abs(results[0]).max() > 0.1
    with pytest.raises(TypeError, match="'line': a matrix must hold real numbers, got complex128"):
        pw.System().add("line", pw.linear_port_hamiltonian(**{**as_sparse, "J": 1j * as_sparse["J"]}))
    bad = as_sparse["Q"].copy()
    bad[3, 3] = np.inf
    with pytest.raises(pw.ConfigError, match=r"entry \(3,3\) is not finite"):
        pw.Stepper(pw.System().add("line", pw.linear_port_hamiltonian(**{**as_sparse, "Q": bad})))


def test_all_defects_of_matrices_are_told_at_once():
    M, K, D, B = (own.tolil() for own in membrane(4))
    M[0, 1] = 5.0  # without M[1, 0]
    K[2, 2] = np.nan
    system = pw.System()
    with pytest.raises(pw.ConfigError) as caught:
        system.add_second_order("plate", M, K, D[:, :7], B[:9], cut=0)
    text = str(caught.value)
    for part in ('/M: "plate": must be symmetric', "K(2,2) = nan is not finite", '/D: "plate": must be 16×16',
                 "must have 16 rows", '/cut: "plate": must be 1 piece or more, got 0'):
        assert part in text, text
    assert len(caught.value.issues) == 5 and system.parts == []
    with pytest.raises(pw.ConfigError, match='/M: "plate": must be square, got 15×16'):
        system.add_second_order("plate", M[:15], K, D, B)
    M, K, D, B = membrane(4)
    with pytest.raises(pw.ConfigError, match='/cut: "plate": must be at most the 16 coordinates, got 17'):
        system.add_second_order("plate", M, K, D, B, cut=17)
    with pytest.raises(pw.ConfigError, match="must have a column for each of 1 scalar ports and 1 inputs, got 1"):
        system.add_second_order("plate", M, K, D, B, ports=["tip"], input_names=["load"])
    with pytest.raises(pw.ConfigError, match='/K: "plate": is required'):
        system.add_second_order("plate", M, None)
    system.add_second_order("plate", M - 2.0 * M, K, D, B, cut=2)  # not definite: the stepper finds that
    with pytest.raises(pw.ConfigError, match=r'"plate" \(second_order_system\): .*M is not positive'):
        pw.Stepper(system)
    with pytest.raises(pw.ConfigError, match="load it first, by scipy.io.mmread"):
        system.add_second_order("bar", "M.mtx", K)
