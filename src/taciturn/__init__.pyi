from taciturn.accounting.cost import Cost as Cost
from taciturn.accounting.exact import Privacy as Privacy
from taciturn.accounting.guarantee import Guarantee as Guarantee
from taciturn.accounting.ledger import Ledger as Ledger
from taciturn.algorithms import ewoo as ewoo
from taciturn.algorithms import output_perturbation as output_perturbation
from taciturn.algorithms import pftrl as pftrl
from taciturn.algorithms import pgiga as pgiga
from taciturn.algorithms import pigd as pigd
from taciturn.algorithms import pocp as pocp
from taciturn.algorithms import pol as pol
from taciturn.algorithms import pqftl as pqftl
from taciturn.algorithms import private_sum as private_sum
from taciturn.contracts import Certificate as Certificate
from taciturn.contracts import Learner as Learner
from taciturn.contracts import Mechanism as Mechanism
from taciturn.core import Private as Private
from taciturn.errors import BudgetExhausted as BudgetExhausted
from taciturn.errors import InvalidInput as InvalidInput
from taciturn.errors import StateConflict as StateConflict
from taciturn.errors import TaciturnError as TaciturnError
from taciturn.errors import Unprovable as Unprovable
from taciturn.learners.averaged import averaged as averaged
from taciturn.learners.experts import experts as experts
from taciturn.learners.fading import FadingIGD as FadingIGD
from taciturn.learners.ftrl import FTRL as FTRL
from taciturn.learners.giga import GIGA as GIGA
from taciturn.learners.igd import IGD as IGD
from taciturn.learners.leader import FTL as FTL
from taciturn.learners.qftl import QFTL as QFTL
from taciturn.learners.weights import EWOO as EWOO
from taciturn.mechanisms.anytime import Anytime as Anytime
from taciturn.mechanisms.blt import BLT as BLT
from taciturn.mechanisms.exponential import Exponential as Exponential
from taciturn.mechanisms.gaussian import Gaussian as Gaussian
from taciturn.mechanisms.toeplitz import SquareRoot as SquareRoot
from taciturn.mechanisms.tree import BinaryTree as BinaryTree
from taciturn.perturbation import ObjectivePerturbation as ObjectivePerturbation
from taciturn.problem.losses import Absolute as Absolute
from taciturn.problem.losses import Hinge as Hinge
from taciturn.problem.losses import Huber as Huber
from taciturn.problem.losses import Linear as Linear
from taciturn.problem.losses import Logistic as Logistic
from taciturn.problem.losses import Quantile as Quantile
from taciturn.problem.losses import Squared as Squared
from taciturn.problem.nets import grid as grid
from taciturn.problem.problem import Problem as Problem
from taciturn.problem.scalar import ScalarLoss as ScalarLoss
from taciturn.problem.scores import MultiHinge as MultiHinge
from taciturn.problem.scores import OneHot as OneHot
from taciturn.problem.scores import Softmax as Softmax
from taciturn.problem.sets import Box as Box
from taciturn.problem.sets import ConvexSet as ConvexSet
from taciturn.problem.sets import HalfSpace as HalfSpace
from taciturn.problem.sets import L1Ball as L1Ball
from taciturn.problem.sets import L2Ball as L2Ball
from taciturn.problem.sets import Simplex as Simplex
from taciturn.problem.sets import WholeSpace as WholeSpace
from taciturn.problem.vector import VectorLoss as VectorLoss
from taciturn.release import Release as Release
from taciturn.release import Releases as Releases
from taciturn.schedule import Schedule as Schedule
from taciturn.schedule import at as at
from taciturn.schedule import every as every
from taciturn.schedule import geometric as geometric
from taciturn.state import State as State

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
    "TaciturnError",
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
