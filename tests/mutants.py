"""Ways to break the package's privacy by one line, and how its own tests are run on a copy that is broken so."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "taciturn"

SELECTED = (
    "kernel/learners/test_contributions.py",
    "kernel/problem/test_multiclass_loops.py::test_slopes_are_clipped_to_what_is_certified",
    "kernel/noise/test_sampling.py::test_secret_bits_never_repeat",
    "bandits/test_off_policy.py",
    "kernel/stream/test_hashed_rows.py",
    "kernel/stream/test_fingerprint.py",
    "kernel/learners/test_linear_bandit.py::test_the_tight_pair_is_nearly_as_far_apart_as_certified",
    "service/test_writer.py",
    "streams/test_stored.py::test_a_commit_that_was_stopped_is_completed_or_repeated",
    "service/test_events.py::test_a_row_is_predicted_waits_and_is_learnt_with_its_label",
    "service/test_events.py::test_what_is_repeated_has_the_same_outcome_and_is_learnt_once",
    "service/test_events.py::test_a_label_after_the_wait_is_rejected_and_never_learnt",
    "service/test_events.py::test_an_event_of_another_token_tells_nothing",
    "service/test_events.py::test_nothing_of_an_event_is_in_clear",
    "service/test_renewal.py",
    "service/test_rank.py::test_what_one_visitor_draws_changes_no_action_of_others",
    "store/test_restores.py::test_under_processes_that_use_it_a_backup_neither_goes_on_nor_is_shown"
    "[SQLite-with a witness]",
    "engines/test_files.py::test_gaps_other_queries_and_files_that_come_twice_are_rejected",
    "kernel/stream/test_block_sums.py::test_sums_of_other_bounds_or_another_point_are_rejected",
    "kernel/stream/test_block_sums.py::test_no_count_or_sum_overflows",
    "kernel/stream/test_participation.py::test_rows_of_a_time_before_a_clock_was_set_back_count_in_the_newest_period",
    "kernel/mechanisms/test_prefix_sum.py::test_all_rows_of_a_user_may_lie_in_the_longest_block[first-BLT]",
    "kernel/stream/test_block_sums.py::test_sums_without_admission_are_rejected_under_a_users_unit",
    "kernel/stream/test_block_sums.py::test_what_no_clipped_examples_add_up_to_is_rejected",
    "kernel/stream/test_block_sums.py::test_a_sum_moves_by_no_more_than_the_certificate_and_the_tight_example_reaches_it",
    "kernel/learners/test_certificates.py::test_the_certificate_is_reached_whichever_example_changes",
    "kernel/learners/test_class_sums.py::test_no_pair_exceeds_the_certificate",
    "kernel/learners/test_linear_bandit.py",
    "bandits/test_private_bandit.py::test_releases_are_made_by_counting_decisions",
    "bandits/test_private_bandit.py::test_the_order_of_rewards_does_not_matter",
    "bandits/test_private_bandit.py::test_a_decision_of_another_bandit_is_not_learnt",
    "bandits/test_private_bandit.py::test_decisions_of_another_time_than_the_state_are_rejected",
    "kernel/stream/test_participation.py::test_a_row_counts_if_and_only_if_the_bounds_allow_it",
    "kernel/stream/test_hashed_rows.py::test_partitions_decide_as_one_process_does",
    "service/dashboard/test_views.py::test_ledger_shows_what_is_visible_and_its_chain",
    "service/dashboard/test_routes.py::test_what_is_not_visible_yet_is_on_no_page",
    "service/dashboard/test_routes.py::test_a_token_sees_what_its_scope_allows",
    "methods/test_staged.py::test_every_row_is_read_once_and_in_one_part",
    "methods/test_staged.py::test_what_stages_find_is_decided_from_what_they_release",
    "methods/test_staged.py::test_an_example_costs_the_largest_mu_and_the_samplers_shares_add_up",
    "methods/test_staged.py::test_a_split_may_cost_more_than_any_part",
    "kernel/learners/test_bin_counts.py::test_excluded_and_bad_rows_have_no_influence_and_no_label",
    "kernel/accounting/test_ledger.py",
    "test_renewal.py::test_someone_in_all_streams_pays_the_sum",
    "runs/test_renewal.py::test_a_run_is_closed_and_followed[one]",
    "methods/test_selection.py::test_a_row_pays_for_its_part_and_for_no_more",
    "methods/test_selection.py::test_an_exact_choice_would_be_refuted",
    "methods/test_selection.py::test_models_that_do_not_share_the_budget_are_refused",
    "methods/test_selection.py::test_moments_bound_the_delta_of_a_composition",
    "methods/test_selection.py::test_moments_of_both_kinds_fit_the_budget",
    "methods/test_selection.py::test_pilots_and_the_winner_keep_the_budget_together",
    "methods/test_selection.py::test_the_most_expensive_winner_is_charged",
    "methods/test_selection.py::test_it_is_charged_and_verified",
    "estimators/test_search.py::test_the_winner_states_the_cost_of_the_search_and_not_of_its_share",
    "estimators/test_search.py::test_the_successor_of_a_winner_pays_for_the_search",
    "estimators/test_fits.py::test_interrupted_fits_are_counted",
    "checks/test_ledgers.py::test_the_ledger_in_memory_is_the_default",
    "kernel/mechanisms/test_tree.py",
    "kernel/mechanisms/test_prefix_sum_endless.py::test_an_endless_stream_is_paid_for_in_advance",
    "kernel/mechanisms/test_decayed_blt.py",
    "kernel/problem/test_problem.py",
    "kernel/problem/test_features.py",
    "methods/test_weighted.py",
    "readers/test_csv.py::test_a_corrupt_row_changes_no_other_and_takes_one_round",
    "readers/test_rows.py::test_batches_have_as_many_rows_however_long_a_row_is",
    "checks/test_readers.py::test_it_keeps_its_contract[json-label-user]",
    "checks/test_readers.py::test_it_keeps_its_contract[dicts-zero-out-user]",
    "checks/test_everything.py::test_it_keeps_its_contract[mechanism: gaussian]",
    "checks/test_everything.py::test_it_keeps_its_contract[strategy: tree]",
    "kernel/mechanisms/test_gaussian.py",
    "kernel/mechanisms/test_release_noise.py",
    "kernel/stream/test_one_row.py::test_secret_noise_is_on_every_release_of_one_row",
    "kernel/noise/test_secrecy.py::test_children_and_parents_have_no_noise_in_common",
    "kernel/noise/test_secrecy.py::test_secret_bytes_are_drawn_for_each_call_and_stored_nowhere",
    "kernel/stream/test_private.py",
    "kernel/mechanisms/test_whitebox.py::test_other_shapes_cost_the_same",
    "kernel/stream/test_relations.py::test_for_iterates_it_is_the_sum_over_the_noise_really_drawn",
    "kernel/learners/test_labels.py::test_the_worst_labels_reach_the_certificate_and_no_more[qftl]",
    "kernel/learners/test_labels.py::test_the_sum_of_features_is_the_same_for_any_labels",
)
"""Where privacy is tested, the quickest first: of these, the tests marked `privacy`."""

PYTEST = "import sys, pytest, taciturn; print(taciturn.__file__, flush=True); sys.exit(pytest.main(sys.argv[1:]))"


@dataclass(frozen=True)
class Mutant:
    """A fault: what stands once in a file of the package, and what stands there instead."""

    name: str
    file: str
    text: str
    instead: str

    def planted(self, source: str) -> str:
        """The source with the fault in it."""
        if (count := source.count(self.text)) != 1:
            raise LookupError(
                f"{self.name!r} replaces a text that should occur once in {self.file}, and occurs {count} times: "
                f"{self.text!r}. Let the mutant in tests/mutants.py say what stands there now."
            )
        return source.replace(self.text, self.instead)


MUTANTS = (
    Mutant(
        "the page of a ledger has what releases cost that are not visible",
        "service/dashboard/views.py",
        "    if seen is not None:\n        return seen.spent\n",
        "    if seen is not None:\n        return line.spent\n",
    ),
    Mutant(
        "the page of a stream has releases that are not visible",
        "service/dashboard/routes.py",
        "self._growing.extend(_lines(host, self._growing, shown.k))",
        "self._growing.extend(_lines(host, self._growing, host.store.load(host.name).position[2]))",
    ),
    Mutant(
        "readers see the operator's numbers",
        "service/dashboard/routes.py",
        '("GET", "/streams/{s}/operator", "operate", _operator)',
        '("GET", "/streams/{s}/operator", "read", _operator)',
    ),
    Mutant(
        "a successor starts from a model that is not visible",
        "service/service.py",
        "renewal_of(self.store, closing, before.delta, closes.view.k, seeded",
        "renewal_of(self.store, closing, before.delta, seeded",
    ),
    Mutant(
        "shown before the commit",
        "service/writer.py",
        "        released = at.waiting > 0\n",
        "        released = at.waiting > 0\n"
        "        if at.k > host.view.k:\n"
        "            vars(host.view).update(k=at.k, t=at.t)\n",
    ),
    Mutant(
        "a commit that was stopped is taken for one that took effect",
        "streams/stored.py",
        "        taken = newest.position == self._attempt\n",
        "        taken = True\n",
    ),
    Mutant(
        "requests that were learnt are not in the transaction",
        "store/store.py",
        "                self._insert_requests(now, saved, requests)\n",
        "",
    ),
    Mutant(
        "the key of a request is checked outside of the transaction only",
        "store/store.py",
        "            if inserted != len(part):\n",
        "            if inserted > len(part):\n",
    ),
    Mutant(
        "the witness is asked after the commit only",
        "store/store.py",
        "            self._witness.must_allow(saved.lineage, saved.place, saved.name)\n",
        "            pass\n",
    ),
    Mutant(
        "a release is read without a look at the witness",
        "store/store.py",
        "        self._must_be_newest(name, lineage, Place(int(generation), chain, previous=previous), newest)\n",
        "",
    ),
    Mutant(
        "a release is shown before its tick",
        "store/store.py",
        "(visible_at IS NULL OR visible_at <= ? OR",
        "(visible_at IS NULL OR visible_at <= 0 + ? * 1000 OR",
    ),
    Mutant(
        "predictions by a model that is not visible yet",
        "service/host.py",
        "        view = self.view\n        model = view.model\n",
        "        view = self.view\n"
        "        while (found := self.store.chunk(self.lineage, view.k + 1)) is not None:\n"
        "            view = self._view(view.tick, found[0].last, False)\n"
        "        model = view.model\n",
    ),
    Mutant(
        "an answer that tells of a bad row",
        "service/writer.py",
        "                outcomes.append((t + 1, t + entry.batch.count))\n",
        "                rows, plain = entry.batch.records or (), entry.batch.plain is not None\n"
        "                good = sum(plain or isinstance(each, dict) for each in rows)\n"
        "                outcomes.append((t + 1, t + good))\n",
    ),
    Mutant(
        "an event is learnt as soon as its label is there",
        "store/events.py",
        '"SELECT number, due FROM stream_events WHERE lineage = ? AND number > ? ORDER',
        '"SELECT number, CASE WHEN label IS NULL THEN due ELSE 0 END FROM stream_events WHERE lineage = ? AND '
        "number > ? ORDER",
    ),
    Mutant(
        "what waits is counted by what rows hold",
        "service/writer.py",
        "if self._queue and self.rows + batch.count > self._most:",
        "if self._queue and sum(len(str(e.batch.records or e.batch.arrays)) for e in self._queue) > 256 * self._most:",
    ),
    Mutant(
        "labels are taken after the wait",
        "store/events.py",
        "elif progress.ended(found.number, found.due <= time):",
        "elif progress.ended(found.number):",
    ),
    Mutant(
        "visitors draw from one random generator",
        "service/rank.py",
        "return generator(None if seed is None else [seed, next(self._decisions)])",
        'return self.__dict__.setdefault("_drawn", generator(seed))',
    ),
    Mutant(
        "events of all tokens have one name",
        "service/events.py",
        'hashes.of(b"event", f"{owner}\\0{name}".encode())',
        'hashes.of(b"event", name.encode())',
    ),
    Mutant(
        "what was learnt of events stays in the store",
        "store/events.py",
        '"UPDATE stream_events SET content = NULL, label = NULL WHERE lineage = ? AND number > ? AND number <= ?"',
        '"UPDATE stream_events SET label = NULL WHERE lineage = ? AND number > ? AND number <= ?"',
    ),
    Mutant(
        "contributions are clipped to twice their bound",
        "kernel/learners/contributions.py",
        "else scaled * (bound / length)",
        "else scaled * (2.0 * bound / length)",
    ),
    Mutant(
        "contributions are clipped from twice their bound on",
        "kernel/learners/contributions.py",
        "_CLIPS_ABOVE = 1.0 + 2.0**-41",
        "_CLIPS_ABOVE = 2.0 + 2.0**-41",
    ),
    Mutant(
        "contributions that are not finite are added",
        "kernel/learners/contributions.py",
        "return vector if np.isfinite(vector).all() else None",
        "return np.nan_to_num(vector, nan=1e12)",
    ),
    Mutant(
        "negative entries stay in a form that has none",
        "kernel/learners/contributions.py",
        "super().to_integers(np.maximum(vector, 0.0))",
        "super().to_integers(vector)",
    ),
    Mutant(
        "slopes of several classes are not clipped",
        "kernel/learners/ftrl_loops.py",
        "        if squared > (steepest * _CLIPS_ABOVE) ** 2:\n",
        "        if squared < 0.0:\n",
    ),
    Mutant(
        "a learner remembers the rows that it has seen",
        "kernel/learners/contributions.py",
        "        return deepcopy(self.learner, dict(self._shared))\n",
        "        return self.learner\n",
    ),
    Mutant(
        "a learner writes to the released point of others",
        "kernel/learners/contributions.py",
        'fixed(np.array(each, dtype=np.float64, order="C")) for each in (v, point)',
        "np.asarray(each) for each in (v, point)",
    ),
    Mutant(
        "a row without influence is given to the learner",
        "kernel/learners/contributions.py",
        "            if v.any() and (made",
        "            if (made",
    ),
    Mutant(
        "an exception of a learner stops its stream",
        "kernel/learners/contributions.py",
        "        except BaseException:  # whatever it is, it may be the row's doing: it must not be seen",
        "        except ZeroDivisionError:",
    ),
    Mutant(
        "a certificate of one's own is taken for proven",
        "kernel/learners/contributions.py",
        "    if not _is_proven_here(made):\n",
        "    if False:\n",
    ),
    Mutant(
        "sensitivity halved: a vector of one's own",
        "kernel/learners/contributions.py",
        "else self.farthest * self.longest",
        "else self.longest",
    ),
    Mutant(
        "sensitivity halved: a linear bandit",
        "kernel/learners/linear_bandit.py",
        "partial(product_bound, self.sums.moved,",
        "partial(product_bound, self.sums.moved / 2.0,",
    ),
    Mutant(
        "rows of a user before the first release are counted as those of a later block",
        "kernel/mechanisms/prefix_sum.py",
        "longest = max(longest, int(np.max(np.diff(rounds, prepend=last))))",
        "longest = max(longest, int(np.max(np.diff(rounds, prepend=last or rounds[0]))))",
    ),
    Mutant(
        "sums of more rows than integers are exact for",
        "kernel/stream/loop.py",
        "if most is not None and t - began > most:",
        "if most is not None and part.count > most:",
    ),
    Mutant(
        "a bandit goes on with decisions of another time",
        "bandits/private_bandit.py",
        "if log.progress.learnt != stream.t:",
        "if log.progress.learnt < 0:",
    ),
    Mutant(
        "a clock that is set back begins an old period again",
        "kernel/stream/participation.py",
        "taken = np.maximum(periods, records.period)  # a clock",
        "taken = periods  # a clock",
    ),
    Mutant(
        "users begin anew where workers decide which rows count",
        "kernel/stream/hashed_rows.py",
        "np.concatenate(task.found)[order][differs]",
        "0 * np.concatenate(task.found)[order][differs]",
    ),
    Mutant(
        "a state of any settings goes on",
        "kernel/stream/stream.py",
        "if state.settings == self.settings or state.settings != earlier_fingerprint(self):",
        "if state.settings == self.settings:",
    ),
    Mutant(
        "settings that differ in a field with a default are taken for the same",
        "kernel/stream/fingerprint.py",
        "getattr(value, name))) != absent:",
        "getattr(value, name))) != absent and not absent:",
    ),
    Mutant(
        "streams of before are taken for streams with a new setting",
        "kernel/stream/earlier.py",
        "if is_setting(kind, now[name]) and (",
        "if not is_setting(kind, now[name]) and (",
    ),
    Mutant(
        "sums of rows that were clipped to other bounds",
        "kernel/stream/block_sums.py",
        "if part.settings != settings:",
        "if len(part.settings) != len(settings):",
    ),
    Mutant(
        "sums of any number of rows of a user",
        "kernel/stream/stream.py",
        "if not admission.fits(parts):",
        "if sum(part.count for part in parts) != admission.rows:",
    ),
    Mutant(
        "partitions that forget what users have contributed",
        "kernel/stream/hashed_rows.py",
        "records = np.ascontiguousarray(np.concatenate(task.found)[order][differs])",
        "records = np.zeros((int(differs.sum()), 4), dtype=np.int64)",
    ),
    Mutant(
        "a user in as many partitions as there are parts",
        "kernel/stream/hashed_rows.py",
        "differs = np.append(True, (in_order[1:] != in_order[:-1]).any(axis=1))[: len(users)]",
        "differs = np.ones(len(users), dtype=np.bool_)",
    ),
    Mutant(
        "a file that comes twice is learnt twice",
        "engines/files.py",
        "if twice or len(set(files)) < len(files):",
        "if len(set(files)) < len(files):",
    ),
    Mutant(
        "a sum that weighs more than its count of examples",
        "kernel/stream/block_sums.py",
        "largest = part.count * learner.most_units",
        "largest = 2**62",
    ),
    Mutant(
        "rows that are never forgotten",
        "kernel/mechanisms/decayed_blt.py",
        "return np.concatenate([buffers[m:], np.zeros_like(buffers[m:])])",
        "return buffers",
    ),
    Mutant(
        "decay applied to noise and not to sums: by the definition",
        "kernel/mechanisms/decayed_blt.py",
        "first = th[:, None] * first + row",
        "first = (th / self.decay)[:, None] * first + row",
    ),
    Mutant(
        "decay applied to noise and not to sums: in compiled code",
        "kernel/mechanisms/blt_pass.py",
        "return (*coder.both, buffers) if both else (th, om, buffers[: len(th)])",
        "return (*coder.both, buffers) if both else (th / coder.decay, om, buffers[: len(th)])",
    ),
    Mutant(
        "a window read off the data",
        "kernel/mechanisms/decayed_blt.py",
        "first = th[:, None] * first + row",
        "first = th[:, None] * first * (np.linalg.norm(row) < 10.0) + row",
    ),
    Mutant(
        "sums that forget, charged for one row of a user",
        "kernel/mechanisms/prefix_sum.py",
        "self.sensitivity = sensitivity_to(coder, unit)",
        "self.sensitivity = coder.sensitivity",
    ),
    Mutant(
        "the life of a row in a sum that forgets is not charged",
        "kernel/mechanisms/prefix_sum.py",
        "self._rows = coder.life * unit.rows",
        "self._rows = unit.rows",
    ),
    Mutant(
        "winner of a search has the whole budget again",
        "methods/selection.py",
        "(pilot / candidates, 1.0 - pilot)",
        "(pilot / candidates, 1.0)",
    ),
    Mutant(
        "pilots of a search not charged",
        "methods/selection.py",
        "total([*(each.total_cost for each in self.pilots), last])",
        "total([last])",
    ),
    Mutant(
        "pilots of a search not charged: moments",
        "methods/selection.py",
        "math.fsum(one(a) for one, _ in pilots) + max",
        "max",
    ),
    Mutant(
        "the cheapest winner of a search is charged",
        "methods/selection.py",
        "return Cost(*map(max, zip(",
        "return Cost(*map(min, zip(",
    ),
    Mutant(
        "the cheapest winner of a search is charged: moments",
        "methods/selection.py",
        "max(one(a) for one, _ in finals)",
        "min(one(a) for one, _ in finals)",
    ),
    Mutant(
        "moments of objective perturbation without those of a length",
        "methods/objective.py",
        "    if dimensions == 1:\n        length",
        "    if dimensions >= 1:\n        length = tail\n    elif dimensions == 1:\n        length",
    ),
    Mutant(
        "choice of a search without noise",
        "methods/selection.py",
        "int(self.choice.fit(losses).point.argmax())",
        "min(range(len(self.finals)), key=lambda j: sum(row[j] for row in losses))",
    ),
    Mutant(
        "winner of a search states its share of the budget",
        "estimators/search.py",
        "        winner._count_with(base, selection)\n",
        "",
    ),
    Mutant(
        "fits counted after they have released",
        "estimators/stream.py",
        "if not wanted():\n                return None\n            self.commit(releases)",
        "self.commit(releases)\n            if not wanted():\n                return None",
    ),
    Mutant(
        "search not charged",
        "methods/selection.py",
        "        if not self.simulated:\n",
        "        if self.simulated:\n",
    ),
    Mutant(
        "sensitivity halved",
        "kernel/learners/igd.py",
        "moved = self.problem.gradient_diameter / self.inertia(t)",
        "moved = 0.5 * self.problem.gradient_diameter / self.inertia(t)",
    ),
    Mutant(
        "rewards not clipped to their range",
        "kernel/learners/linear_bandit.py",
        "np.clip(y - _APART * arms, -1.0, 1.0)",
        "y - _APART * arms",
    ),
    Mutant(
        "the certificate of a bandit halved",
        "kernel/learners/linear_bandit.py",
        "partial(product_bound, self.sums.moved,",
        "partial(product_bound, 0.5 * self.sums.moved,",
    ),
    Mutant(
        "rows enter when their rewards come",
        "core/events.py",
        "        return stored, ended, again\n",
        "        self.seal(int(numbers.max()))\n        return stored, ended, again\n",
    ),
    Mutant(
        "a decision of another bandit learnt as one of this",
        "core/events.py",
        "            if each not in self._ids:\n                return False\n",
        "            if each not in self._ids:\n                continue\n",
    ),
    Mutant(
        "negative entries let through: by the definition",
        "kernel/learners/class_sums.py",
        "np.clip(X[numbers >= 0], 0.0, R)",
        "np.clip(X[numbers >= 0], -R, R)",
    ),
    Mutant(
        "negative entries let through: of compressed rows, in compiled code",
        "kernel/learners/class_sums_loops.py",
        "min(max(entries[at], 0.0), largest)",
        "min(entries[at], largest)",
    ),
    Mutant(
        "a weight of a class above 1",
        "methods/weighted.py",
        "lambda x: 0.0 < x <= 1.0,",
        "lambda x: 0.0 < x < 1e9,",
    ),
    Mutant(
        "a label that moves is not counted",
        "kernel/learners/class_sums.py",
        "else math.sqrt(2.0) * R",
        "else math.sqrt(2.0) * self.problem.feature_bound",
    ),
    Mutant(
        "noise on one release skipped: not drawn",
        "kernel/mechanisms/lattice.py",
        "(sd / step)[:, None])",
        "(sd / step * (np.array(releases) != 2))[:, None])",
    ),
    Mutant(
        "noise on one release skipped: not added, in compiled code",
        "kernel/mechanisms/lattice_loops.py",
        "+ take(noise, at, left)",
        "+ take(noise, at, left) * (0.0 if at == 0 else 1.0)",
    ),
    Mutant(
        "same noise twice: one row for two releases",
        "kernel/mechanisms/release_noise.py",
        "return drawn(self.noise_needed(releases), None, 0)",
        "return drawn(self.noise_needed(releases), None, 0)[np.arange(len(releases)) // 2 * 2]",
    ),
    Mutant(
        "same noise twice: a row drawn ahead is left where it was",
        "kernel/mechanisms/release_noise.py",
        "release, row = rows.popleft()",
        "release, row = rows[0]",
    ),
    Mutant(
        "same noise twice: a forked process has what its parent drew ahead",
        "kernel/mechanisms/release_noise.py",
        "drawn_here = process is _PROCESS[0] and number == process_number()",
        "drawn_here = process is not None and number > 0",
    ),
    Mutant(
        "noise of one release skipped: a call of one row, in compiled code",
        "kernel/learners/igd_pass.py",
        "        noise = self.calibrated.noise(seed, k + 1, 1)\n        noise_sd, step",
        "        noise = 0 * self.calibrated.noise(seed, k + 1, 1)\n        noise_sd, step",
    ),
    Mutant(
        "same noise twice: one key for two calls",
        "kernel/noise/sampling.py",
        "    keyed: list[Bits] = []  # one key, drawn when it is needed",
        "    keyed = [_counter_mode(str(os.getpid()).zfill(32).encode())]",
    ),
    Mutant(
        "clipping off",
        "kernel/problem/clipping.py",
        "return bound * (1.0 - max(1e-12, dimension * 2.0**-51))",
        "return bound * 1e9",
    ),
    Mutant(
        "the image of a bad row survives",
        "kernel/problem/features.py",
        "return np.where(bad[:, None], np.nan, Z) if bad.any() else Z",
        "return Z",
    ),
    Mutant(
        "level count off by one",
        "kernel/mechanisms/tree.py",
        "return math.sqrt(self.levels) *",
        "return math.sqrt(max(1, self.levels - 1)) *",
    ),
    Mutant(
        "rows of a user charged as one",
        "kernel/mechanisms/prefix_sum.py",
        "moved * self.sensitivity * (1.0 + 2.0**-40) + errors])\n        per_step = self._rounding",
        "moved * coder.sensitivity * (1.0 + 2.0**-40) + errors])\n        per_step = self._rounding",
    ),
    Mutant(
        "floating-point errors not charged",
        "kernel/mechanisms/prefix_sum.py",
        "errors = 2.0 * coder.rounding_error * checked_norm(certificate, size) * longest",
        "errors = 2.0 * coder.rounding_error * checked_norm(certificate, size) * 0.0",
    ),
    Mutant("a row of a user is not counted", "kernel/stream/participation_loops.py", "count += 1", "count += 0"),
    Mutant(
        "wrong neighbour relation",
        "kernel/problem/problem.py",
        'if self.neighbours == "zero-out":',
        'if self.neighbours in ("replace", "zero-out"):',
    ),
    Mutant(
        "the other relation's epsilon is this one's",
        "core/private.py",
        "neighbours=others[self.neighbours]",
        "neighbours=self.neighbours",
    ),
    Mutant(
        "a bad label takes its row along where only labels are protected",
        "kernel/problem/problem.py",
        'return 0.0 if self.loss.labels == "real" else None',
        "return None",
    ),
    Mutant(
        "labels of one row taken for half as far apart",
        "kernel/learners/qftl.py",
        "return w * R * min(2.0 * R_y,",
        "return w * R * min(1.0 * R_y,",
    ),
    Mutant(
        "intercept outside the bound",
        "kernel/problem/problem.py",
        "math.hypot(self.feature_bound, self.intercept)",
        "self.feature_bound",
    ),
    Mutant(
        "lattice too coarse",
        "kernel/mechanisms/gaussian.py",
        "return Level(moved, sd, step)",
        "return Level(moved, sd, 2.0 * step)",
    ),
    Mutant(
        "seed fixed",
        "kernel/noise/sampling.py",
        "_counter_mode(os.urandom(32))",
        "_counter_mode(bytes(32))",
    ),
    Mutant(
        "budget not charged",
        "kernel/accounting/ledger_rules.py",
        "_UnfrozenLine(line.reserved, spent, following,",
        "_UnfrozenLine(line.reserved, line.spent, following,",
    ),
    Mutant(
        "a closed stream is forgotten in its own month",
        "kernel/accounting/ledger_rules.py",
        "(period <= self.last or not (self.closed or self.finished))",
        "not (self.closed or self.finished)",
    ),
    Mutant(
        "rows of a stage read in another",
        "methods/staged.py",
        "here, part_of(rows, done, end),",
        "here, part_of(rows, max(done - 1, 0), max(done - 1, 0) + end - done),",
    ),
    Mutant(
        "ranges read off the data",
        "kernel/stream/loop.py",
        "learner.decide(calibrated.examples_of(k, t + end), noisy, sd)",
        "learner.decide(calibrated.examples_of(k, t + end), statistic, sd)",
    ),
    Mutant(
        "the sampler's shares of stages not added",
        "methods/staged.py",
        "extra = total(costs)",
        "extra = max(costs, key=lambda cost: cost.extra_delta)",
    ),
    Mutant(
        "a label of an excluded row counted",
        "kernel/learners/bin_counts.py",
        "y[X[:, -1] > 0.0]",
        "y",
    ),
    Mutant(
        "a split of a user's rows charged as the largest part",
        "methods/staged.py",
        "return replace(extra, mu_squared=self._largest_split(costs, parts))",
        "return replace(extra, mu_squared=max(cost.mu_squared for cost in costs))",
    ),
    Mutant(
        "a bad row takes no round",
        "readers/rows.py",
        "whole = Batch(X, y, first, part.lines, part.size, start, users, bad, part.kept(keep))",
        "whole = Batch(X[~bad], y[~bad], first, part.lines[~bad], part.size, start)",
    ),
    Mutant(
        "someone in two streams promised what the last of them says",
        "renewal.py",
        "return {name: total(each[name] for each in by_stream).epsilon(self.delta) for name in shared}",
        "return {name: by_stream[-1][name].epsilon(self.delta) for name in shared}",
    ),
    Mutant(
        "the successor of a search promised what the winner's share says",
        "estimators/sklearn_base.py",
        "return opened.stream.renewal_at(opened.guarantee)",
        "return opened.stream.renewal",
    ),
    Mutant(
        "replaced vectors move a sum by half as much",
        "kernel/learners/vector_sum.py",
        "moved = 2.0 * R if",
        "moved = R if",
    ),
    Mutant(
        "the private value of a policy in no ledger",
        "bandits/off_policy.py",
        "private.fit((terms - middle)[:, None], ledger=ledger)",
        "private.fit((terms - middle)[:, None])",
    ),
    Mutant(
        "the exact error beside a private value",
        "bandits/off_policy.py",
        "spread = (inside - low) * (high - inside) / n",
        "spread = float(terms.var()) / n",
    ),
    Mutant(
        "the successor of a stream in no ledger",
        "runs/renewal.py",
        "return begin(folder, store, plan, contract, closes=together, about=about, **settings)",
        "return begin(folder, store, plan, contract, closes=together, about=about, **{**settings, 'ledger': None})",
    ),
    Mutant(
        "a bad label voids the features of its row",
        "readers/parsed.py",
        'X[empty if labelled and contract.neighbours == "label" else bad] = np.nan',
        "X[bad] = np.nan",
    ),
    Mutant(
        "a feature that cannot be read takes the id of its row away",
        "readers/parsed.py",
        "        ids[unreadable_rows(self.values[contract.user], len(ids))] = None\n",
        "        ids[contract.encoder.encode(self.values, len(ids))[1]] = None\n",
    ),
    Mutant(
        "rows are mapped as they lie in memory unless one is bad",
        "kernel/problem/features.py",
        '    X = np.array(X, dtype=np.float64, order="C")\n',
        "    X = np.asarray(X, dtype=np.float64)\n    X = X if np.isfinite(X).all() else X.copy()\n",
    ),
    Mutant(
        "blocks of rows are cut by bytes",
        "readers/lines.py",
        "yield Part(self._use(to - at), pauses or to in full)",
        "yield Part(self._use(to - at), True)",
    ),
    Mutant(
        "a row that cannot be read raises an error in the place of a bad row",
        "estimators/dict_rows.py",
        """            if self._zero:
                return self.bad_row
            raise

    def _row(""",
        """            raise

    def _row(""",
    ),
)


@dataclass(frozen=True)
class Outcome:
    """How a run of the tests ended: pytest's exit code, which package it saw, seconds of a core, what it printed."""

    code: int
    package: Path
    seconds: float
    printed: str

    @property
    def caught_by(self) -> str | None:
        """The test that failed; None if none did, and if there was no testing, or an error around a test."""
        failed = re.search(r"^FAILED (\S+::.+?)(?: - .*)?$", self.printed, re.MULTILINE)
        return failed[1] if self.code == 1 and failed else None


def copied(to: Path, mutant: Mutant | None = None) -> Path:
    """A copy of the package with a fault in it, and with the compiled code of folders that have none.

    Code is not used if any source of its folder has changed (`taciturn.kernel.jit`).
    """
    package = Path(shutil.copytree(PACKAGE, to / "taciturn", ignore=shutil.ignore_patterns("*.pyc", "*.tmp.*")))
    if mutant is not None:
        file = package / mutant.file
        file.write_text(mutant.planted(file.read_text(encoding="utf-8")), encoding="utf-8")
    return package


def outcome_of(package: Path, limit: float = 3600.0) -> Outcome:
    """Run the selected tests on a copy, up to the first that fails; one that hangs ends after `limit` seconds."""
    own = {"PYTHONPATH": str(package.parent)}
    outside = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    options = ["-m", "privacy and not slow", "-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    command = [sys.executable, "-c", PYTEST, *options, *(f"tests/{selected}" for selected in SELECTED)]
    before = os.times()
    run = subprocess.run(
        command,
        cwd=ROOT,
        env=outside | own,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=limit,
        check=False,
    )
    after = os.times()
    seconds = after.children_user + after.children_system - before.children_user - before.children_system
    first, _, printed = run.stdout.partition("\n")
    return Outcome(run.returncode, Path(first).parent, seconds, printed + run.stderr)
