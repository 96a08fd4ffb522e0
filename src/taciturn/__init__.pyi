from taciturn import audit as audit
from taciturn import averages as averages
from taciturn import bandits as bandits
from taciturn import checks as checks
from taciturn import datasets as datasets
from taciturn import drift as drift
from taciturn import mechanisms as mechanisms
from taciturn import memories as memories
from taciturn import plan as plan
from taciturn import regret as regret
from taciturn.accounting.cost import Cost as Cost
from taciturn.accounting.gdp import Privacy as Privacy
from taciturn.accounting.guarantee import Guarantee as Guarantee
from taciturn.accounting.ledger import Ledger as Ledger
from taciturn.accounting.unit import Example as Example
from taciturn.accounting.unit import User as User
from taciturn.algorithms.objective_perturbation import ObjectivePerturbation as ObjectivePerturbation
from taciturn.algorithms.recipes import class_sums as class_sums
from taciturn.algorithms.recipes import ewoo as ewoo
from taciturn.algorithms.recipes import linear_bandit as linear_bandit
from taciturn.algorithms.recipes import output_perturbation as output_perturbation
from taciturn.algorithms.recipes import pftrl as pftrl
from taciturn.algorithms.recipes import pgiga as pgiga
from taciturn.algorithms.recipes import pigd as pigd
from taciturn.algorithms.recipes import pocp as pocp
from taciturn.algorithms.recipes import pol as pol
from taciturn.algorithms.recipes import pqftl as pqftl
from taciturn.algorithms.recipes import private_sum as private_sum
from taciturn.core.block_sums import BlockSums as BlockSums
from taciturn.core.contributions import EntryLearner as EntryLearner
from taciturn.core.contributions import Index as Index
from taciturn.core.contributions import NonNegative as NonNegative
from taciturn.core.contributions import Square as Square
from taciturn.core.contributions import Unverified as Unverified
from taciturn.core.contributions import Vector as Vector
from taciturn.core.loop import block_statistics as block_statistics
from taciturn.core.private import Private as Private
from taciturn.core.protocols import Certificate as Certificate
from taciturn.core.protocols import Learner as Learner
from taciturn.core.protocols import Mechanism as Mechanism
from taciturn.core.release import Release as Release
from taciturn.core.release import Releases as Releases
from taciturn.core.schedule import Schedule as Schedule
from taciturn.core.schedule import at as at
from taciturn.core.schedule import every as every
from taciturn.core.schedule import geometric as geometric
from taciturn.core.state import State as State
from taciturn.errors import BudgetExhausted as BudgetExhausted
from taciturn.errors import InvalidInput as InvalidInput
from taciturn.errors import StateConflict as StateConflict
from taciturn.errors import StoreUnavailable as StoreUnavailable
from taciturn.errors import TaciturnError as TaciturnError
from taciturn.errors import Unprovable as Unprovable
from taciturn.learners.averaged import averaged as averaged
from taciturn.learners.class_sums import ClassSums as ClassSums
from taciturn.learners.ewoo import EWOO as EWOO
from taciturn.learners.ewoo import experts as experts
from taciturn.learners.ftl import FTL as FTL
from taciturn.learners.ftrl import FTRL as FTRL
from taciturn.learners.giga import GIGA as GIGA
from taciturn.learners.igd import IGD as IGD
from taciturn.learners.igd import FadingIGD as FadingIGD
from taciturn.learners.linear_bandit import LinearBandit as LinearBandit
from taciturn.learners.qftl import QFTL as QFTL
from taciturn.mechanisms.calibration import BLT as BLT
from taciturn.mechanisms.calibration import BinaryTree as BinaryTree
from taciturn.mechanisms.calibration import DecayedBLT as DecayedBLT
from taciturn.mechanisms.calibration import Gaussian as Gaussian
from taciturn.mechanisms.calibration import SquareRoot as SquareRoot
from taciturn.mechanisms.exponential import Exponential as Exponential
from taciturn.problem.features import Chain as Chain
from taciturn.problem.features import FeatureMap as FeatureMap
from taciturn.problem.losses import Absolute as Absolute
from taciturn.problem.losses import Hinge as Hinge
from taciturn.problem.losses import Huber as Huber
from taciturn.problem.losses import Linear as Linear
from taciturn.problem.losses import Logistic as Logistic
from taciturn.problem.losses import Quantile as Quantile
from taciturn.problem.losses import Squared as Squared
from taciturn.problem.multiclass import MultiHinge as MultiHinge
from taciturn.problem.multiclass import OneHot as OneHot
from taciturn.problem.multiclass import Softmax as Softmax
from taciturn.problem.nets import grid as grid
from taciturn.problem.problem import Problem as Problem
from taciturn.problem.random_features import RandomFeatures as RandomFeatures
from taciturn.problem.scalar_loss import ScalarLoss as ScalarLoss
from taciturn.problem.sets import Box as Box
from taciturn.problem.sets import ConvexSet as ConvexSet
from taciturn.problem.sets import HalfSpace as HalfSpace
from taciturn.problem.sets import L1Ball as L1Ball
from taciturn.problem.sets import L2Ball as L2Ball
from taciturn.problem.sets import Simplex as Simplex
from taciturn.problem.sets import WholeSpace as WholeSpace
from taciturn.problem.vector_loss import VectorLoss as VectorLoss

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
    "BinaryTree",
    "BlockSums",
    "Box",
    "BudgetExhausted",
    "Certificate",
    "Chain",
    "ClassSums",
    "ConvexSet",
    "Cost",
    "DecayedBLT",
    "EntryLearner",
    "Example",
    "Exponential",
    "FadingIGD",
    "FeatureMap",
    "Gaussian",
    "Guarantee",
    "HalfSpace",
    "Hinge",
    "Huber",
    "Index",
    "InvalidInput",
    "L1Ball",
    "L2Ball",
    "Learner",
    "Ledger",
    "Linear",
    "LinearBandit",
    "Logistic",
    "Mechanism",
    "MultiHinge",
    "NonNegative",
    "ObjectivePerturbation",
    "OneHot",
    "Privacy",
    "Private",
    "Problem",
    "Quantile",
    "RandomFeatures",
    "Release",
    "Releases",
    "ScalarLoss",
    "Schedule",
    "Simplex",
    "Softmax",
    "Square",
    "SquareRoot",
    "Squared",
    "State",
    "StateConflict",
    "StoreUnavailable",
    "TaciturnError",
    "Unprovable",
    "Unverified",
    "User",
    "Vector",
    "VectorLoss",
    "WholeSpace",
    "at",
    "averaged",
    "block_statistics",
    "class_sums",
    "every",
    "ewoo",
    "experts",
    "geometric",
    "grid",
    "linear_bandit",
    "output_perturbation",
    "pftrl",
    "pgiga",
    "pigd",
    "pocp",
    "pol",
    "pqftl",
    "private_sum",
]
