"""Faults planted in the kernels, one at a time: the comparison with the definition finds each of them."""

from __future__ import annotations

import pytest

from kernels.agree import assert_agree
from kernels.plain import ORDER, plain_kernels, sources

IGD = ("igd, hinge, ball", "gaussian", "every 7")
CASES = [
    IGD,
    ("igd, logistic, space", "gaussian", "every"),
    ("giga, squared, box", "gaussian", "every 7"),
    ("printed giga, logistic, ball", "gaussian", "every"),
    ("fading, hinge, ball", "gaussian", "at"),
    ("suffix of giga", "gaussian", "every"),
    ("total", "tree", "every 7"),
    ("qftl, ball", "blt", "every"),
    ("qftl, one hot, box", "plain tree", "geometric"),
    ("ftrl, hinge, ball", "blt, one buffer", "every 7"),
    ("ftrl, softmax, box", "anytime", "every"),
    ("ftrl, one hot, ball", "tree", "every"),
    ("igd, hinge, ball", "gaussian", "every 7", "compressed"),
    ("igd, logistic, ball", "gaussian", "every 7", "compressed"),
    ("igd, logistic, box", "gaussian", "every 7", "compressed"),
    ("printed giga, logistic, ball", "gaussian", "every", "compressed"),
    ("fading, hinge, ball", "gaussian", "at", "compressed"),
    ("giga, squared, box", "gaussian", "every 7", "compressed"),
    ("ftrl, softmax, ball", "blt", "every 7", "compressed"),
]


@pytest.mark.parametrize("case", CASES, ids=" ".join)
def test_without_a_fault_plain_python_agrees(case, monkeypatch):
    """The sources themselves, not compiled, release what the definition does: it is the fault that is found below."""
    plain_kernels(monkeypatch)
    assert_agree(*case)


def test_all_kernels_are_there():
    """Those that plain Python replaces are all there are."""
    assert set(ORDER) == sources()


CUT = "labels[i] = y[i] if kind == CLASS else min(max(y[i], -label_bound), label_bound)"
UNCUT = "labels[i] = y[i]"
BLT, TREE, QFTL = ("qftl, ball", "blt", "every"), ("total", "tree", "every"), ("qftl, ball", "blt", "every 7")
ANYTIME, FTRL = ("ftrl, hinge, ball", "anytime", "every"), ("ftrl, softmax, box", "blt", "every 7")
GIGA, PRINTED, FADING, SUFFIX = CASES[2:6]
ONE_BUFFER, ABSOLUTE = ("qftl, ball", "blt, one buffer", "every"), ("igd, absolute, ball", "gaussian", "every")
SPARSE, SPARSE_BALL, SPARSE_BOX, SPARSE_PRINTED, SPARSE_FADING, SPARSE_GIGA, SPARSE_FTRL = CASES[-7:]
DOOR = {
    "rows are not shortened": ("if length * unit > longest:", "if False:", IGD),
    "rows are shortened to half": ("scale = longest / length", "scale = 0.5 * longest / length", IGD),
    "no intercept": ("V[i, j] = intercept", "V[i, j] = 0.0", IGD),
    "labels are not cut": (f"{CUT}\n    return labels, bad", f"{UNCUT}\n    return labels, bad", QFTL),
    "compressed labels are not cut": (f"{CUT}\n    return begins", f"{UNCUT}\n    return begins", SPARSE_GIGA),
    "halves are not added up": ("V[place] += entries[p]", "V[place] = entries[p]", SPARSE),
    "a place of another row": ("if begin <= place < end and where[place] == j", "if place < end", SPARSE),
    "halves in any order are not seen": ("if columns[p] <= columns[p - 1]", "if False", SPARSE),
    "no compressed intercept": ("width - 1, intercept", "width - 1, 0.0", SPARSE),
}
COMPRESSED = {
    "a compressed row on another lattice": ("steps[k], magnitude, noise,", "steps[0], magnitude, noise,", SPARSE),
    "a ridge that does not pull": ("scale = length[0] * shrink", "scale = length[0]", SPARSE),
    "a scale that is lost": ("_multiply(domain, x, length[0])", "_multiply(domain, x, 1.0)", SPARSE_GIGA),
    "a fading pull that stays": ("total / (total + weight)", "1.0", SPARSE_FADING),
    "the other compressed step": ("i / 2.0 if kind == PRINTED else i + delay", "i + delay", SPARSE_PRINTED),
    "a compressed step too early": ("kind == GRADIENT or i >= delay", "True", SPARSE_PRINTED),
    "a slope at z": ("length[0] * dots_at(columns, v, z, 0)[1]", "dots_at(columns, v, z, 0)[1]", SPARSE_GIGA),
    "a plane without a rest": ("first, math.sqrt(rest), longest", "first, 0.0, longest", SPARSE_BALL),
    "an anchor at z": ("= length[0] * z[columns[p]], v[p]", "= z[columns[p]], v[p]", SPARSE_BOX),
    "a box of z": ("domain[1] / scale), domain[2] / scale", "domain[1]), domain[2]", SPARSE_GIGA),
    "a length that stays": ("squared += change", "pass", SPARSE),
    "a ball that is not felt": ("if squared > border", "if False", SPARSE),
}
LATTICE = {
    "no noise": (" + noise[k, j]) * step\n", ") * step\n", IGD),
    "no noise on sums": (" + noise[k, j]) * step[k]", ") * step[k]", BLT),
    "rows are rounded down": ("* per_step + 0.5)\n\n", "* per_step)\n\n", IGD),
}
STRATEGIES = {
    "a stale buffer": ("buffers[i, j] = a * u + x", "buffers[i, j] = a * u", BLT),
    "a buffer that does not fade": ("decay * buffers[i, j] + row[j]", "buffers[i, j] + row[j]", ONE_BUFFER),
    "a buffer that is left out": ("p * u + q * v + r * w + s * z", "p * u + q * v + r * w", BLT),
    "a sum that starts anew": ("total[j] += row[j]", "total[j] = row[j]", BLT),
}
TREES = {
    "a node that is a leaf": ("waiting[height] = out[place + height]", "waiting[height] = rows[i]", TREE),
    "a node of the wrong weight": ("* weights[h]", "* 0.5", TREE),
}
STEPS = {
    "one round too late": ("if done < count and rounds[done] == t + i + 1", "if rounds[done] == t + i", IGD),
    "totals one round too early": ("and t + i + 1 >= first", "and t + i + 2 >= first", SUFFIX),
    "another regulariser": ("shrink = 1.0 / (1.0 + eta * strength)", "shrink = 1.0", IGD),
    "a pull that does not fade": (", strength * t**-0.25", ", strength", FADING),
    "the other step": ("t / 2.0 if kind == PRINTED else t + delay", "t + delay", PRINTED),
    "prox, then project": ("_root(loss, domain, x, V, i, y, pull, -steepest, steepest)", "-ahead / pull", IGD),
}
LOSSES = {
    "a kink in the wrong place": ("-y if y * u < 1.0 else 0.0", "-y if y * u < 0.0 else 0.0", CASES[9]),
    "a kink that is not rounded off": ("z + step / (step + width) * (", "z + (", ABSOLUTE),
}
SETS = {
    "a ball of the wrong size": ("scale = high / math.sqrt(length) if", "scale = 1.0 / math.sqrt(length) if", IGD),
    "a box without a floor": ("min(max(x[j], low), high)", "min(x[j], high)", GIGA),
    "a box without a floor for points": ("min(max(rows[k, j], low), high)", "min(rows[k, j], high)", GIGA),
}
QUADRATIC = {
    "a lost square root of two": ("math.sqrt(0.5)", "1.0", QFTL),
    "a lost weight": (" / weight", "", QFTL),
    "a ridge of another round": ("_unpack(noisy[k], ridges[k], L)", "_unpack(noisy[k], ridges[0], L)", BLT),
    "sums that go on": ("total[:] = 0.0", "pass", BLT),
}
LEADER = {
    "noise of one release for all": ("noise[done, j]", "noise[0, j]", FTRL),
    "encoded rows are rounded down": ("row[j] * to_steps + 0.5", "row[j] * to_steps", FTRL),
    "gradients that go on": ("= row[j]\n                total[j] = 0.0", "= row[j]", FTRL),
    "an epoch's total that forgets": ("epoch[j] += total[j]", "epoch[j] = total[j]", ANYTIME),
    "a past that is forgotten": ("past[j] + running[j]", "running[j]", ANYTIME),
    "a gradient in other columns": ("np.uint64(here[p])", "np.uint64(p)", SPARSE_FTRL),
    "compressed gradients off their lattice": (
        "here[p])] += np.rint(entry * per_lattice) * lattice",
        "here[p])] += entry",
        SPARSE_FTRL,
    ),
    "scores of one class": ("here, v, point, row * d", "here, v, point, 0", SPARSE_FTRL),
    "a class too far": ("/ total - (1.0 if row == y else", "/ total - (1.0 if row == y + 1 else", FTRL),
}
BY_MODULE = {"door": DOOR, "lattice": LATTICE, "blt": STRATEGIES, "tree": TREES, "steps": STEPS, "losses": LOSSES}
BY_MODULE |= {"sets": SETS, "quadratic": QUADRATIC, "leader": LEADER, "sparse": COMPRESSED}
FAULTS = {fault: (module, *change) for module, faults in BY_MODULE.items() for fault, change in faults.items()}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found(fault, monkeypatch):
    """Each of them alone."""
    module, old, new, case = FAULTS[fault]
    plain_kernels(monkeypatch, module, old, new)
    with pytest.raises(AssertionError):
        assert_agree(*case)
