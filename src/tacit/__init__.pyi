from tacit.accounting.cost import Cost as Cost
from tacit.accounting.exact import Privacy as Privacy
from tacit.accounting.guarantee import Guarantee as Guarantee
from tacit.accounting.ledger import Ledger as Ledger
from tacit.algorithms import ewoo as ewoo
from tacit.algorithms import output_perturbation as output_perturbation
from tacit.algorithms import pftrl as pftrl
from tacit.algorithms import pgiga as pgiga
from tacit.algorithms import pigd as pigd
from tacit.algorithms import pocp as pocp
from tacit.algorithms import pol as pol
from tacit.algorithms import pqftl as pqftl
from tacit.algorithms import private_sum as private_sum
from tacit.contracts import Certificate as Certificate
from tacit.contracts import Learner as Learner
from tacit.contracts import Mechanism as Mechanism
from tacit.core import Private as Private
from tacit.errors import BudgetExhausted as BudgetExhausted
from tacit.errors import InvalidInput as InvalidInput
from tacit.errors import StateConflict as StateConflict
from tacit.errors import TacitError as TacitError
from tacit.errors import Unprovable as Unprovable
from tacit.learners.averaged import averaged as averaged
from tacit.learners.experts import experts as experts
from tacit.learners.fading import FadingIGD as FadingIGD
from tacit.learners.ftrl import FTRL as FTRL
from tacit.learners.giga import GIGA as GIGA
from tacit.learners.igd import IGD as IGD
from tacit.learners.leader import FTL as FTL
from tacit.learners.qftl import QFTL as QFTL
from tacit.learners.weights import EWOO as EWOO
from tacit.mechanisms.anytime import Anytime as Anytime
from tacit.mechanisms.blt import BLT as BLT
from tacit.mechanisms.exponential import Exponential as Exponential
from tacit.mechanisms.gaussian import Gaussian as Gaussian
from tacit.mechanisms.toeplitz import SquareRoot as SquareRoot
from tacit.mechanisms.tree import BinaryTree as BinaryTree
from tacit.perturbation import ObjectivePerturbation as ObjectivePerturbation
from tacit.problem.losses import Absolute as Absolute
from tacit.problem.losses import Hinge as Hinge
from tacit.problem.losses import Huber as Huber
from tacit.problem.losses import Linear as Linear
from tacit.problem.losses import Logistic as Logistic
from tacit.problem.losses import Quantile as Quantile
from tacit.problem.losses import Squared as Squared
from tacit.problem.nets import grid as grid
from tacit.problem.problem import Problem as Problem
from tacit.problem.scalar import ScalarLoss as ScalarLoss
from tacit.problem.scores import MultiHinge as MultiHinge
from tacit.problem.scores import OneHot as OneHot
from tacit.problem.scores import Softmax as Softmax
from tacit.problem.sets import Box as Box
from tacit.problem.sets import ConvexSet as ConvexSet
from tacit.problem.sets import HalfSpace as HalfSpace
from tacit.problem.sets import L1Ball as L1Ball
from tacit.problem.sets import L2Ball as L2Ball
from tacit.problem.sets import Simplex as Simplex
from tacit.problem.sets import WholeSpace as WholeSpace
from tacit.problem.vector import VectorLoss as VectorLoss
from tacit.release import Release as Release
from tacit.release import Releases as Releases
from tacit.schedule import Schedule as Schedule
from tacit.schedule import at as at
from tacit.schedule import every as every
from tacit.schedule import geometric as geometric
from tacit.state import State as State

__version__: str
__all__ = [
    "BLT",
    "EWOO",
    "FTL",
    "FTRL",
    "GIGA",
    "IGD",
    "QFTL",
    "Absolute",
    "Anytime",
    "BinaryTree",
    "Box",
    "BudgetExhausted",
    "Certificate",
    "ConvexSet",
    "Cost",
    "Exponential",
    "FadingIGD",
    "Gaussian",
    "Guarantee",
    "HalfSpace",
    "Hinge",
    "Huber",
    "InvalidInput",
    "L1Ball",
    "L2Ball",
    "Learner",
    "Ledger",
    "Linear",
    "Logistic",
    "Mechanism",
    "MultiHinge",
    "ObjectivePerturbation",
    "OneHot",
    "Privacy",
    "Private",
    "Problem",
    "Quantile",
    "Release",
    "Releases",
    "ScalarLoss",
    "Schedule",
    "Simplex",
    "Softmax",
    "SquareRoot",
    "Squared",
    "State",
    "StateConflict",
    "TacitError",
    "Unprovable",
    "VectorLoss",
    "WholeSpace",
    "at",
    "averaged",
    "every",
    "ewoo",
    "experts",
    "geometric",
    "grid",
    "output_perturbation",
    "pftrl",
    "pgiga",
    "pigd",
    "pocp",
    "pol",
    "pqftl",
    "private_sum",
]
