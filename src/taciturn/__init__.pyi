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
from taciturn.accounting.ledger import Ledger as Ledger
from taciturn.calibration.mechanisms import BLT as BLT
from taciturn.calibration.mechanisms import BinaryTree as BinaryTree
from taciturn.calibration.mechanisms import DecayedBLT as DecayedBLT
from taciturn.calibration.mechanisms import Gaussian as Gaussian
from taciturn.calibration.mechanisms import SquareRoot as SquareRoot
from taciturn.core.private import Private as Private
from taciturn.errors import BudgetExhausted as BudgetExhausted
from taciturn.errors import InvalidInput as InvalidInput
from taciturn.errors import StateConflict as StateConflict
from taciturn.errors import StoreUnavailable as StoreUnavailable
from taciturn.errors import TaciturnError as TaciturnError
from taciturn.errors import Unprovable as Unprovable
from taciturn.kernel.accounting.cost import Cost as Cost
from taciturn.kernel.accounting.gdp import Privacy as Privacy
from taciturn.kernel.accounting.guarantee import Guarantee as Guarantee
from taciturn.kernel.accounting.unit import Example as Example
from taciturn.kernel.accounting.unit import User as User
from taciturn.kernel.learners.class_sums import ClassSums as ClassSums
from taciturn.kernel.learners.contributions import EntryLearner as EntryLearner
from taciturn.kernel.learners.contributions import Index as Index
from taciturn.kernel.learners.contributions import NonNegative as NonNegative
from taciturn.kernel.learners.contributions import Square as Square
from taciturn.kernel.learners.contributions import Unverified as Unverified
from taciturn.kernel.learners.contributions import Vector as Vector
from taciturn.kernel.learners.ftrl import FTRL as FTRL
from taciturn.kernel.learners.igd import IGD as IGD
from taciturn.kernel.learners.igd import FadingIGD as FadingIGD
from taciturn.kernel.learners.linear_bandit import LinearBandit as LinearBandit
from taciturn.kernel.learners.qftl import QFTL as QFTL
from taciturn.kernel.problem.features import Chain as Chain
from taciturn.kernel.problem.features import FeatureMap as FeatureMap
from taciturn.kernel.problem.losses import Absolute as Absolute
from taciturn.kernel.problem.losses import Hinge as Hinge
from taciturn.kernel.problem.losses import Huber as Huber
from taciturn.kernel.problem.losses import Linear as Linear
from taciturn.kernel.problem.losses import Logistic as Logistic
from taciturn.kernel.problem.losses import Quantile as Quantile
from taciturn.kernel.problem.losses import Squared as Squared
from taciturn.kernel.problem.multiclass import MultiHinge as MultiHinge
from taciturn.kernel.problem.multiclass import OneHot as OneHot
from taciturn.kernel.problem.multiclass import Softmax as Softmax
from taciturn.kernel.problem.problem import Problem as Problem
from taciturn.kernel.problem.row_wise import RowWise as RowWise
from taciturn.kernel.problem.scalar_loss import ScalarLoss as ScalarLoss
from taciturn.kernel.problem.sets import Box as Box
from taciturn.kernel.problem.sets import ConvexSet as ConvexSet
from taciturn.kernel.problem.sets import HalfSpace as HalfSpace
from taciturn.kernel.problem.sets import L1Ball as L1Ball
from taciturn.kernel.problem.sets import L2Ball as L2Ball
from taciturn.kernel.problem.sets import Simplex as Simplex
from taciturn.kernel.problem.sets import WholeSpace as WholeSpace
from taciturn.kernel.problem.vector_loss import VectorLoss as VectorLoss
from taciturn.kernel.stream.block_sums import BlockSums as BlockSums
from taciturn.kernel.stream.loop import block_statistics as block_statistics
from taciturn.kernel.stream.protocols import Certificate as Certificate
from taciturn.kernel.stream.protocols import Learner as Learner
from taciturn.kernel.stream.protocols import Mechanism as Mechanism
from taciturn.kernel.stream.release import Release as Release
from taciturn.kernel.stream.release import Releases as Releases
from taciturn.kernel.stream.schedule import Schedule as Schedule
from taciturn.kernel.stream.schedule import at as at
from taciturn.kernel.stream.schedule import every as every
from taciturn.kernel.stream.schedule import geometric as geometric
from taciturn.kernel.stream.state import State as State
from taciturn.methods.averaged import averaged as averaged
from taciturn.methods.ewoo import EWOO as EWOO
from taciturn.methods.ewoo import experts as experts
from taciturn.methods.exponential import Exponential as Exponential
from taciturn.methods.ftl import FTL as FTL
from taciturn.methods.giga import GIGA as GIGA
from taciturn.methods.nets import grid as grid
from taciturn.methods.objective_perturbation import ObjectivePerturbation as ObjectivePerturbation
from taciturn.methods.recipes import class_sums as class_sums
from taciturn.methods.recipes import ewoo as ewoo
from taciturn.methods.recipes import linear_bandit as linear_bandit
from taciturn.methods.recipes import output_perturbation as output_perturbation
from taciturn.methods.recipes import pftrl as pftrl
from taciturn.methods.recipes import pgiga as pgiga
from taciturn.methods.recipes import pigd as pigd
from taciturn.methods.recipes import pocp as pocp
from taciturn.methods.recipes import pol as pol
from taciturn.methods.recipes import pqftl as pqftl
from taciturn.methods.recipes import private_sum as private_sum
from taciturn.tables.random_features import RandomFeatures as RandomFeatures

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
    "RowWise",
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
