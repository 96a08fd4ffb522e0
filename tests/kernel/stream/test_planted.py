"""Faults planted in the kernels, one at a time: the comparison with the definition finds each of them."""

from __future__ import annotations

import pytest

from kernel.python_kernels import ORDER, python_kernels, sources
from kernel.stream.equivalence import assert_agree

IGD, ABSOLUTE = ("igd, hinge, ball", "gaussian", "every 7"), ("igd, absolute, ball", "gaussian", "every")
GIGA, PRINTED = ("giga, squared, box", "gaussian", "every 7"), ("printed giga, logistic, ball", "gaussian", "every")
FADING, SUFFIX = ("fading, hinge, ball", "gaussian", "at"), ("suffix of giga", "gaussian", "every")
FAR, FAR_BETWEEN = ("fading, logistic, far box", "gaussian", "every"), ("fading, logistic, far box", "gaussian", "at")
BLT, TREE, QFTL = ("qftl, ball", "blt", "every"), ("total", "tree", "every"), ("qftl, ball", "blt", "every 7")
ONE_BUFFER, LEADER_BUFFER = (
    ("qftl, ball", "blt, one buffer", "every"),
    ("ftrl, hinge, ball", "blt, one buffer", "every 7"),
)
RARE, FTRL = ("qftl, one hot, ball", "blt", "at"), ("ftrl, softmax, box", "blt", "every 7")
SPARSE, SPARSE_NUMBERS = (*LEADER_BUFFER, "compressed"), ("ftrl, squared, box", "blt", "every 7", "compressed")
MARGIN, MARGINS_MET = ("ftrl, multi hinge, ball", "blt", "every 7"), ("ftrl, margins met", "blt", "every")
SPARSE_MARGIN = (*MARGINS_MET, "compressed")
CURVED, CURVED_REST = ("ftrl, curved, ball", "blt", "every 7"), ("ftrl, curved, ball", "blt", "geometric, endless")
SPARSE_FTRL = ("ftrl, softmax, ball", "blt", "every 7", "compressed")
ARMS = ("linear bandit, own models", "blt", "every 7")
CASES = [ARMS, IGD, ABSOLUTE, GIGA, PRINTED, FADING, FAR, FAR_BETWEEN, SUFFIX, BLT, TREE, QFTL, ONE_BUFFER]
CASES += [LEADER_BUFFER, RARE, FTRL, SPARSE, SPARSE_NUMBERS, SPARSE_FTRL, MARGIN, SPARSE_MARGIN, CURVED, CURVED_REST]
CASES += [("igd, logistic, space", "gaussian", "every"), ("qftl, one hot, box", "plain tree", "geometric")]
CASES += [("ftrl, one hot, ball", "blt", "every")]


@pytest.mark.parametrize("case", CASES, ids=" ".join)
def test_without_a_fault_plain_python_agrees(case, monkeypatch):
    """The sources themselves, not compiled, release what the definition does: it is the fault that is found below."""
    python_kernels(monkeypatch)
    assert_agree(*case)


def test_all_kernels_are_there():
    """Those that plain Python replaces are all there are, each once."""
    assert sorted(name for names in ORDER.values() for name in names) == sorted(sources())


CUT = "labels[i] = missing if bad else y[i] if kind == CLASS else min(max(y[i], -label_bound), label_bound)"
UNCUT = "labels[i] = missing if bad else y[i]"
DOOR = {
    "rows are not shortened": ("if length * unit > longest:", "if False:", IGD),
    "rows are shortened to half": ("scale = longest / length", "scale = 0.5 * longest / length", IGD),
    "no intercept": ("V[i, j] = intercept", "V[i, j] = 0.0", IGD),
    "labels are not cut": (f"{CUT}\n    return labels, first_bad", f"{UNCUT}\n    return labels, first_bad", QFTL),
    "compressed labels are not cut": (f"{CUT}\n    return begins", f"{UNCUT}\n    return begins", SPARSE_NUMBERS),
    "halves are not added up": ("V[place] += entries[p]", "V[place] = entries[p]", SPARSE),
    "a place of another row": ("if begin <= place < end and where[place] == j", "if place < end", SPARSE),
    "halves in any order are not seen": ("if columns[p] <= columns[p - 1]", "if False", SPARSE),
    "no compressed intercept": ("width - 1, intercept", "width - 1, 0.0", SPARSE),
}
LATTICE = {
    "no noise": (" + take(noise, at, left)", "", IGD),
    "rows are rounded down": ("* per_step + 0.5) + take", "* per_step) + take", IGD),
    "a sum without noise": (" + take(noise, at, left)", "", BLT),
    "noisy rows are rounded down": ("* per_step + 0.5) + take", "* per_step) + take", BLT),
    "encoded rows are rounded down": ("* per_step + 0.5) + take", "* per_step) + take", FTRL),
}
STRATEGIES = {
    "a stale buffer": ("old * decays[i] + row", "old * decays[i]", BLT),
    "a buffer that does not fade": ("old * decays[i] + row", "old + row", ONE_BUFFER),
    "a buffer of a leader that does not fade": ("old * decays[i] + row", "old + row", LEADER_BUFFER),
    "a buffer that is left out": ("out + old * weights[i]", "out", BLT),
    "a noisy sum that starts anew": ("take(total, j, left) * decay + noisy", "noisy", BLT),
    "noise of one row for all": ("per_step, noise, at, left)", "per_step, noise, j, left)", BLT),
}
TREES = {
    "a node that is a leaf": ("waiting[height] = out[place + height]", "waiting[height] = rows[i]", TREE),
    "a node of the wrong weight": ("* weights[h]", "* 0.5", TREE),
}
STEPS = {
    "one round too late": ("== t + i + 1\n    return until", "== t + i\n    return until", IGD),
    "totals one round too early": ("and t + i + 1 >= first", "and t + i + 2 >= first", SUFFIX),
    "another regulariser": ("shrink = 1.0 / (1.0 + eta * strength)", "shrink = 1.0", IGD),
    "a pull that does not fade": (", strength * t**-0.25", ", strength", FADING),
    "the other step": ("t / 2.0 if kind == PRINTED else t + delay", "t + delay", PRINTED),
    "prox, then project": ("root_of_excess(loss, domain, x, V, i, y, pull, -steepest, steepest)", "-move / pull", IGD),
    "a release that is not made up for": ("_release_if_due(domain, z, outputs, done, due)\n\n", "done\n\n", IGD),
    "a release that is lost at the border": ("            due = done < len(rounds)", "            due = False", IGD),
    "an iterate that leans before it is shown": (
        "_release_if_due(domain, z, outputs, done, due), False",
        "done, due",
        FAR,
    ),
    "a centre that does not pull": ("_pull_to_centre(how, z, t + i + 1, centre)", "pass", FAR),
    "a centre that does not pull in between": ("_pull_to_centre(how, x, t, centre)", "pass", ("mean of far", *FAR[1:])),
}
LOSSES = {
    "a kink in the wrong place": (
        "(parameter, y) if y * u < 1.0 else 0.0",
        "(parameter, y) if y * u < 0.0 else 0.0",
        LEADER_BUFFER,
    ),
    "a kink that is not smoothed": ("z + step / (step + width) * (", "z + (", ABSOLUTE),
}
SETS = {
    "a ball of the wrong size": ("high / unit / math.sqrt(squared)", "1.0 / unit / math.sqrt(squared)", IGD),
    "a box without a floor": ("min(max(x[j], low), high)", "min(x[j], high)", GIGA),
    "a box without a floor for points": ("least, most = low, high", "most = high", GIGA),
}
QUADRATIC = {
    "a lost square root of two": ("math.sqrt(0.5)", "1.0", QFTL),
    "a lost weight": (" / weight", "", QFTL),
    "a ridge of another round": ("_unpack(noisy[k], ridges[k], L)", "_unpack(noisy[k], ridges[0], L)", BLT),
    "sums that go on": ("total[:] = 0.0", "pass", BLT),
    "factors that grow": ("np.trunc(", "np.rint(", RARE),
}
BANDIT = {
    "rewards of the first arm": ("v, place = V[i], arms[i] * size", "v, place = V[i], 0 * size", ARMS),
    "products without a row": ("place += d - a", "place += d - a - 1", ARMS),
    "rewards that are lost": ("int(rewards[i] * v[b])", "0", ARMS),
    "sums of arms that go on": ("total[:] = 0", "pass", ARMS),
}
LEADER = {
    "noise of one release for all": ("noise, k * size + j, left)", "noise, j, left)", FTRL),
    "gradients that go on": ("put(total, j, left, zeros())", "pass", FTRL),
    "a gradient in other columns": ("np.uint64(here[p])", "np.uint64(p)", SPARSE_FTRL),
    "compressed gradients off their lattice": (
        "here[p])] += np.rint(entry * per_lattice) * lattice",
        "here[p])] += entry",
        SPARSE_FTRL,
    ),
    "gradients off their lattice": ("+ multiples * lattice", "+ multiples", FTRL),
    "a public part for every row so far": (
        "since = i + 1\n            lattice_of_row",
        "lattice_of_row",
        CURVED,
    ),
    "a public part off its lattice": ("np.rint(entry / lattice) * lattice", "entry", CURVED),
    "a public part that pushes": ("total[j] -= count *", "total[j] += count *", CURVED),
    "a rest without a public part": ("point, len(y), total)", "point, 0, total)", CURVED_REST),
    "scores of one class": ("here, v, point, row * d", "here, v, point, 0", SPARSE_FTRL),
}
SCORES = {
    "a class too far": ("if k == y else 0.0\n    return", "if k == y + 1 else 0.0\n    return", FTRL),
    "a target that is not centred": ("hit - 1.0 / count", "hit", ("ftrl, one hot, ball", "blt", "every")),
    "no margin": ("short = 1.0 + top - u[own]", "short = top - u[own]", MARGIN),
    "a margin that is never met": ("if short > close:", "if True:", SPARSE_MARGIN),
    "classes that always tie": ("if u[j] >= top - close and j != own", "if j != own", MARGIN),
    "a class that is its own rival": ("u[k] > u[best] and k != y", "u[k] > u[best]", SPARSE_MARGIN),
    "a rival that may only be the first": ("1 if y == 0.0 else 0\n", "0\n", MARGINS_MET),
}
BY_MODULE = {"clipping": DOOR, "lattice": LATTICE, "blt": STRATEGIES, "tree": TREES, "igd": STEPS, "losses": LOSSES}
BY_MODULE |= {"sets": SETS, "qftl": QUADRATIC, "ftrl": LEADER, "multiclass": SCORES, "linear_bandit": BANDIT}
FAULTS = {fault: (module, *change) for module, faults in BY_MODULE.items() for fault, change in faults.items()}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found(fault, monkeypatch):
    """Each of them alone; where releases are missing, by the stream itself."""
    module, old, new, case = FAULTS[fault]
    python_kernels(monkeypatch, module, old, new)
    with pytest.raises((AssertionError, RuntimeError)):
        assert_agree(*case)
