"""Guards of the library, each with what is left when it is taken away.

Every entry has to turn one of its named tests red: `python tools/mutants.py` tries them
on a copy of the tree. A new guard belongs here, and its test with it.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutant:
    """One guard taken away."""

    file: str  # below src/dszog
    old: str  # occurs exactly once in it
    new: str
    tests: tuple[str, ...]  # below tests, FILE::NAME

    @property
    def name(self) -> str:
        """What was taken away, in short."""
        return f"{self.file}: {' '.join(self.old.split())[:60]}"


def _group(file: str, tests: str, *entries: tuple[str, ...]) -> list[Mutant]:
    """Return mutants of one file: old text, new text, and tests of one test file."""
    return [
        Mutant(file, old, new, tuple(_node(tests, name) for name in names))
        for old, new, *names in entries
    ]


def _node(tests: str, name: str) -> str:
    """Return FILE::NAME below tests; a name may bring its own file, after ``../``."""
    return name.removeprefix("../") if name.startswith("../") else f"{tests}::{name}"


def never(condition: str) -> tuple[str, str]:
    """Return a condition as it stands in the source, and one that never holds."""
    return f"if {condition}:", "if False:"


MUTANTS: list[Mutant] = [
    # ------------------------------------------------------ what the black box returns
    *_group(
        "workers/base.py",
        "contracts/test_evaluators.py",
        (
            "if all_finite(table):",
            "if True:",
            "test_a_value_that_is_not_finite_is_named_with_its_index",
        ),
        (
            *never("np.ma.isMaskedArray(returned)"),
            "test_a_masked_value_is_missing_and_not_a_number",
        ),
        (
            *never("array.shape != shape"),
            "test_another_shape_is_refused_with_both_shapes",
        ),
        (
            'freeze(np.array(table, order="C"))',
            "table",
            "test_functions_that_return_one_buffer_again_and_again_do_not_mix_replies",
        ),
        (
            'if array.dtype.kind not in "fiub":',
            "if False:",
            "test_what_is_not_a_real_number_is_refused_with_the_shape_that_is_wanted",
        ),
    ),
    *_group(
        "workers/base.py",
        "run/test_failures.py",
        (
            "except (Exception, SystemExit) as error:",
            "except Exception as error:",
            "test_a_system_exit_of_user_code_does_not_end_the_program",
        ),
        (
            "np.where(np.isfinite(table), table, np.nan)",
            "table",
            "test_no_kind_of_failure_makes_a_well_that_looks_feasible",
            "test_success_is_never_reported_at_a_point_that_is_not_known",
        ),
    ),
    *_group(
        "run/failures.py",
        "run/test_failures.py",
        (
            "unknown: BoolArray = np.isnan(values)",
            "unknown: BoolArray = np.zeros(values.shape, dtype=bool)",
            "test_an_index_unknown_at_the_base_point_is_left_out_alone",
        ),
        (
            "2 * largest - least",
            "largest + 1e6",
            "test_a_penalised_value_lies_above_the_others_by_their_spread",
        ),
        (
            *never("query.paired"),
            "test_an_antithetic_pair_is_dropped_whole",
        ),
        (
            'if self.policy == "raise":\n',
            "if False:\n",
            "test_the_error_names_function_index_iteration_and_point",
        ),
        (
            "MAX_IN_A_ROW = 20",
            "MAX_IN_A_ROW = 10**9",
            "test_twenty_points_in_a_row_are_enough_and_nineteen_are_not",
        ),
        (
            "MAX_RATE = 0.1 ",
            "MAX_RATE = 1.0 ",
            "test_more_than_one_in_ten_of_the_last_200_points_are_enough",
        ),
        (
            *never("len(kept) and 2 * np.count_nonzero(kept) < len(kept) + 1"),
            "test_a_rejected_base_point_goes_half_way_back",
        ),
        (
            "self.n_failed += int(failed.sum())",
            "self.n_failed += int(failed.any())",
            "test_failures_are_counted_as_the_black_box_counts_them",
        ),
    ),
    # ----------------------------------------------------------------- ask and tell
    *_group(
        "contract/reply.py",
        "contracts/test_methods.py",
        (
            *never("not all_finite(array)"),
            "test_tell_refuses_values_that_are_not_finite",
        ),
        (
            *never("query.iteration != iteration"),
            "test_tell_refuses_answers_to_the_questions_of_another_iteration",
        ),
        (
            *never("len(queries) != len(replies)"),
            "test_tell_refuses_another_number_of_replies_than_queries",
        ),
        (
            *never("len(queries) != n_expected"),
            "test_tell_refuses_a_part_of_its_queries_with_the_replies_to_them",
        ),
        (
            *never("array.shape != shape"),
            "test_tell_refuses_replies_of_another_shape",
        ),
    ),
    # ------------------------------------------------------------ budgets and the loop
    *_group(
        "run/meter.py",
        "run/test_loop.py",
        (
            *never("not self.affords(charged.total)"),
            "test_the_meter_refuses_what_would_exceed_the_budget_and_calls_nothing",
        ),
    ),
    *_group(
        "run/loop.py",
        "run/test_loop.py",
        (
            "meter.n_charged + charged.total > end.queries",
            "meter.n_queries > end.queries",
            "test_queries_are_used_to_within_one_iteration_and_never_exceeded",
        ),
        (
            "if how or not all_finite(moved.x):",
            "if how:",
            "test_an_iterate_that_is_not_finite_is_not_taken",
        ),
        (
            "meter.elapsed + meter.time_of(charged) >= end.time",
            "meter.elapsed >= end.time",
            "test_no_iteration_begins_that_the_time_would_not_suffice_for",
        ),
    ),
    *_group(
        "run/meter.py",
        "save/test_resume.py",
        (
            "self.n_charged + self.n_lost + n_queries <=",
            "self.n_charged + n_queries <=",
            "test_queries_are_never_exceeded_across_deaths",
        ),
        (
            "self._log.asked(queries, charged, self.elapsed)",
            "pass",
            "test_queries_are_never_exceeded_across_deaths",
        ),
        (
            "if self._log is not None and not self.failures.would_raise(replies):",
            "if self._log is not None:",
            "test_a_function_that_failed_is_asked_again_once_it_is_mended",
        ),
    ),
    *_group(
        "run/loop.py",
        "run/test_failures.py",
        (
            "MAX_REJECTED = 5 ",
            "MAX_REJECTED = 10**9 ",
            "test_five_steps_taken_back_in_a_row_are_the_last",
        ),
    ),
    *_group(
        "run/final_check.py",
        "test_minimize.py",
        (
            "for x in (last, position.average, start):",
            "for x in (last, position.average):",
            "test_an_optimal_start_is_returned_as_it_is",
        ),
        (
            "GRACE = 1.0",
            "GRACE = 1e9",
            "../run/test_budgets.py::"
            "test_after_ctrl_c_the_check_takes_no_longer_than_its_grace",
        ),
    ),
    # --------------------------------------------------------------- honest results
    *_group(
        "run/verdict.py",
        "evidence/test_certificate.py",
        (
            "status.is_planned\n        and",
            "True and",
            "test_the_unknown_the_violated_and_the_broken_off_are_no_success",
        ),
        (
            "and certificate.is_known\n        and",
            "and",
            "test_the_unknown_the_violated_and_the_broken_off_are_no_success",
        ),
        (
            "and np.isfinite(certificate.x).all()\n",
            "\n",
            "test_the_unknown_the_violated_and_the_broken_off_are_no_success",
        ),
        (
            "certificate.feasibility.maxcv <= constraint_tol\n",
            "certificate.feasibility.maxcv <= 2 * constraint_tol\n",
            "test_the_unknown_the_violated_and_the_broken_off_are_no_success",
            "../test_minimize.py::test_a_violation_above_the_tolerance_is_no_success",
        ),
    ),
    *_group(
        "run/verdict.py",
        "evidence/test_certificate.py",
        (
            *never("not way.responds"),
            "test_a_larger_penalty_is_advised_only_where_it_may_help",
        ),
        (
            *never("penalty >= way.highest"),
            "test_a_larger_penalty_is_advised_only_where_it_may_help",
        ),
        (
            "left * way.distance > GAIN_LEFT * way.gain",
            "left > GAIN_LEFT",
            "test_a_point_that_leaves_room_for_gain_is_not_shown_to_be_optimal",
        ),
    ),
    *_group(
        "methods/dszog.py",
        "tune/test_tune.py",
        (
            "factor = min(factor, highest / method.penalty)",
            "pass",
            "test_penalties_do_not_grow_from_trial_to_trial_without_end",
        ),
    ),
    *_group(
        "methods/policy.py",
        "run/test_loop.py",
        (
            "RUNAWAY = 1e4",
            "RUNAWAY = 1e300",
            "test_values_ten_thousand_times_the_scale_of_the_start_have_run_away",
        ),
        (
            *never("n >= MAX_RESTARTS and (report.fell or step_size < LEAST_STEP)"),
            "../test_minimize.py::"
            "test_an_objective_that_falls_without_end_is_not_tried_with_ever_smaller_steps",
        ),
    ),
    *_group(
        "run/remarks.py",
        "problem/test_scipy_forms.py",
        (
            *never("found.n_opposing"),
            "test_a_right_problem_brings_no_word_about_scipys_sign",
        ),
    ),
    *_group(
        "run/repeats.py",
        "test_repeats.py",
        (
            "return np.full(len(indices), self._each_loss)",
            "return np.full(len(indices), False)",
            "test_answers_that_differ_are_told_once",
        ),
        (
            "single: BoolArray = self._each[part]",
            "single: BoolArray = part >= 0",
            "test_a_table_that_rounds_differently_in_another_shape_is_not_blamed",
        ),
    ),
    *_group(
        "workers/processes.py",
        "workers/test_processes.py",
        (
            "self._check_starts()\n",
            "\n",
            "test_a_worker_that_is_never_ready_is_an_error",
        ),
    ),
    *_group(
        "evidence/certificate.py",
        "evidence/test_certificate.py",
        (
            "violated_share_bound(drawn.n_bad_calls, drawn.n_calls, confidence)",
            "drawn.n_bad_calls / drawn.n_calls",
            "test_a_sampled_check_counts_its_draw_and_bounds_the_share",
        ),
        (
            "bool(np.isfinite(self.objective)) and self.feasibility.is_known",
            "self.feasibility.is_known",
            "test_the_unknown_the_violated_and_the_broken_off_are_no_success",
        ),
        (
            'return self.kind != "unchecked" and not self.n_unknown',
            'return self.kind != "unchecked"',
            "test_a_value_that_is_not_known_counts_as_violated_and_is_no_success",
        ),
        (
            "    worst.keep_worst(others.indices, others.values)\n",
            "",
            "test_suspects_show_in_the_worst_value_and_never_in_the_share",
        ),
        (
            "CONFIDENCE = 0.95",
            "CONFIDENCE = 0.90",
            "test_the_share_bound_is_that_of_clopper_and_pearson",
        ),
        (
            "share_bound=1.0,",
            "share_bound=0.0,",
            "test_of_unchecked_constraints_nothing_is_known_and_the_share_may_be_one",
        ),
    ),
    *_group(
        "evidence/checker.py",
        "evidence/test_certificate.py",
        (
            *never("not certificate.is_known"),
            "test_a_point_about_which_something_is_unknown_is_never_the_best",
        ),
    ),
    # ------------------------------------------------------------------- the weights
    *_group(
        "kernels/projection.py",
        "maths/distribution/test_projection.py",
        (
            "np.maximum(values / 2 - largest / 2, -1.0) * 2",
            "values + 0.0",
            "test_20_000_vectors_of_scale_1e_minus_3_to_1e18_are_projected_without_a_failure",
        ),
        (
            "or not np.isfinite(values).all()",
            "",
            "test_what_is_not_a_vector_of_finite_numbers_is_refused",
        ),
        (
            "for _ in range(2):",
            "for _ in range(0):",
            "test_one_value_above_many_equal_ones_gets_its_exact_weight",
        ),
        (
            "if n_background == 0 or above >= 1.0:",
            "if n_background == 0 or above >= 2.0:",
            "test_a_background_is_projected_like_the_long_vector_it_stands_for",
        ),
    ),
    *_group(
        "kernels/plain.py",
        "maths/distribution/test_sparse.py",
        (
            "MERGE_WEIGHT = 1e-18",
            "MERGE_WEIGHT = 1e-3",
            "test_sparse_equals_dense_over_1_000_iterations",
        ),
        (
            "MERGE_GRADIENT = 1e-18",
            "MERGE_GRADIENT = 0.1",
            "test_sparse_equals_dense_over_1_000_iterations",
        ),
        (
            "total = weights.sum() + n_background * rest",
            "total = 1.0",
            "test_an_error_in_the_sum_is_gone_after_one_update",
        ),
        (
            "    keep |= memory != 0.0\n",
            "",
            "test_a_constraint_with_a_remembered_penalty_is_not_forgotten",
        ),
        (
            'np.searchsorted(below, ranks, side="right")',
            'np.searchsorted(below, ranks, side="left")',
            "test_each_rank_of_the_background_is_a_different_untouched_constraint",
        ),
    ),
    # -------------------------------------------------------------------- checkpoints
    *_group(
        "save/container.py",
        "save/test_container.py",
        (
            *never("hashlib.sha256(body).digest() != content[-_HASH:]"),
            "test_no_single_bit_flips_unnoticed",
        ),
        (
            *never("sum(sizes) != n_bytes"),
            "test_a_hostile_header_with_a_right_checksum_is_refused",
        ),
        (
            *never("type(extent) is not int or not 0 <= extent < 2**48"),
            "test_a_hostile_header_with_a_right_checksum_is_refused",
        ),
        (*never("version > FORMAT"), "test_a_newer_format_says_what_to_install"),
        (
            "            parse_float=_refuse,\n",
            "",
            "test_a_hostile_header_with_a_right_checksum_is_refused",
            "test_only_integers_and_single_names_are_read",
        ),
        (
            *never("len(made) < len(pairs)"),
            "test_a_hostile_header_with_a_right_checksum_is_refused",
            "test_only_integers_and_single_names_are_read",
        ),
        (
            *never("length > MAX_HEADER or start > len(content)"),
            "test_a_header_that_claims_more_than_there_is_is_refused",
        ),
    ),
    *_group(
        "save/files.py",
        "save/test_store.py",
        (
            "write_all(handle, piece)\n            os.fsync(handle)",
            "write_all(handle, piece)",
            "test_the_order_of_a_save_is_write_sync_rename_sync",
            "test_what_was_not_synced_may_be_lost_and_nothing_is_missing",
        ),
        (
            "os.rename(beside, path)\n        sync_folder(path.parent)",
            "os.rename(beside, path)",
            "test_the_order_of_a_save_is_write_sync_rename_sync",
            "test_what_was_not_synced_may_be_lost_and_nothing_is_missing",
        ),
        (
            "beside = path.with_name(path.name + TEMPORARY)",
            "beside = path",
            "test_a_death_at_any_call_of_three_saves_leaves_a_whole_checkpoint",
            "test_the_order_of_a_save_is_write_sync_rename_sync",
        ),
        (
            "os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW",
            "os.O_CREAT",
            "test_links_in_the_way_are_not_followed",
        ),
        (
            *never("mode & stat.S_IWOTH"),
            "test_a_folder_that_anybody_may_write_to_is_refused",
        ),
        (
            "elif own and found.st_uid not in (os.geteuid(), 0):",
            "elif False:",
            "test_a_file_of_another_user_is_not_read",
        ),
        (
            "flags |= os.O_NOFOLLOW",
            "pass",
            "../security/test_files.py::test_a_checkpoint_behind_a_link_is_not_read",
        ),
        (
            "PRIVATE = 0o600",
            "PRIVATE = 0o644",
            "../security/test_files.py::test_what_is_saved_is_for_its_owner_alone",
        ),
    ),
    *_group(
        "save/journal.py",
        "save/test_journal.py",
        (
            "if _crc_on_disk(handle, start, length, end) != crc:",
            "if False:",
            "test_every_flipped_bit_ends_the_journal_where_it_is",
        ),
        (
            "return offset & 0xFFFFFFFF",
            "return 0",
            "test_a_swapped_pair_of_records_is_noticed",
        ),
        (
            "os.ftruncate(handle, found.end)",
            "pass",
            "test_a_torn_tail_is_cut_and_three_restarts_lose_no_more",
        ),
        (
            "if head == expected:",
            "if head[:8] == expected[:8]:",
            "test_a_journal_of_another_run_or_generation_is_refused",
        ),
        (
            "while n_written < len(record):",
            "while False:",
            "test_what_the_system_takes_in_parts_is_written_whole",
        ),
    ),
    *_group(
        "save/sizing.py",
        "save/test_sizing.py",
        (
            "        self._write(noted)\n",
            "",
            "test_the_calls_are_noted_before_the_first_is_made",
        ),
        (
            "SizeNote(n_calls=n_before + len(functions), about=here)",
            "SizeNote(n_calls=len(functions), about=here)",
            "test_a_budget_that_deaths_used_up_is_refused_without_another_call",
        ),
        (
            "if note.about == here:",
            "if True:",
            "test_before_a_run_has_begun_another_start_is_asked_for_its_sizes",
        ),
        (
            *never("self._store.has_run"),
            "test_another_start_is_refused_without_a_call_once_a_run_has_begun",
        ),
        (
            "return saved_calls(self._store)",
            "return 0",
            "test_a_folder_without_a_note_is_resumed_and_charged_for_each_call",
        ),
        (
            "if self._max_queries is None or n_before + n_calls < self._max_queries:",
            "if True:",
            "test_a_budget_that_deaths_used_up_is_refused_without_another_call",
        ),
    ),
    *_group(
        "run/solver.py",
        "save/test_sizing.py",
        (
            "self.meter.lost_before += job.saver.n_noted - problem.n_calls_made",
            "pass",
            "test_calls_of_a_process_that_died_while_sizes_were_learned_are_lost",
        ),
    ),
    *_group(
        "save/checkpoints.py",
        "save/test_sizing.py",
        (
            "run.counts.lost_before += max(self.n_noted - n_there, 0)",
            "pass",
            "test_a_folder_without_a_note_is_resumed_and_charged_for_each_call",
        ),
    ),
    *_group(
        "save/store.py",
        "save/test_store.py",
        ("KEPT = 2 ", "KEPT = 1 ", "test_two_generations_are_kept_with_their_journals"),
        (
            "            self.chain[-1].sync()\n        write_whole(",
            "            pass\n        write_whole(",
            "test_the_journal_before_is_synced_with_each_save",
        ),
        (
            *never('facts["generation"] != number'),
            "test_a_damaged_newest_is_named_and_the_one_before_is_used",
        ),
        (
            "if not resume and self.has_run:",
            "if False:",
            "test_a_folder_with_checkpoints_is_not_written_to_without_resume",
        ),
        (
            "number not in self._bad and self._is_whole(number)",
            "True",
            "test_a_damaged_newest_is_named_and_the_one_before_is_used",
            "test_a_damaged_checkpoint_outlives_the_saves_that_follow",
        ),
    ),
    *_group(
        "save/lock.py",
        "save/test_store.py",
        (
            "fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)",
            "pass",
            "test_two_stores_of_one_process_exclude_each_other",
        ),
        (
            "os.register_at_fork(after_in_child=_release_in_child)",
            "pass",
            "test_a_child_that_outlives_a_killed_run_does_not_keep_its_lock",
            "test_a_child_that_goes_on_as_the_run_writes_nothing",
        ),
        (
            *never("self._handle is None"),
            "test_a_child_that_goes_on_as_the_run_writes_nothing",
        ),
        (
            *never("found.st_nlink > 1 or not stat.S_ISREG(found.st_mode)"),
            "../security/test_files.py::test_a_lock_with_another_name_is_not_written_to",
        ),
        (
            *never("not is_same"),
            "../security/test_files.py::"
            "test_a_folder_that_is_swapped_in_mid_run_is_not_written_to",
        ),
    ),
    *_group(
        "save/files.py",
        "security/test_files.py",
        (
            *never("mode & stat.S_IWGRP"),
            "test_a_folder_that_a_group_may_write_to_is_used_with_a_warning",
        ),
        (
            "above.mkdir(mode=0o755, exist_ok=True)",
            "above.mkdir(exist_ok=True)",
            "test_folders_that_are_made_are_for_this_user_to_write_to_whatever_the_umask",
        ),
    ),
    *_group(
        "save/journal.py",
        "security/test_files.py",
        (
            *never("os.fstat(handle).st_nlink > 1"),
            "test_a_journal_with_another_name_is_not_written_to",
        ),
    ),
    *_group(
        "save/container.py",
        "security/test_files.py",
        (
            *never("2 * size > _memory()"),
            "test_a_file_larger_than_the_memory_is_refused_before_it_is_read",
        ),
        (
            *never("size > SMALL"),
            "test_a_large_file_is_read_only_if_its_header_accounts_for_it",
        ),
        (
            "except MemoryError as error:",
            "except ZeroDivisionError as error:",
            "test_too_little_memory_is_an_error_of_ours",
        ),
    ),
    *_group(
        "learn/model_file.py",
        "learn/test_model_file.py",
        (
            "OverflowError, RecursionError, MemoryError",
            "RecursionError, MemoryError",
            "test_a_forged_document_is_refused",
        ),
    ),
    *_group(
        "cli/predict.py",
        "cli/test_fit.py",
        (
            *("as_cell(label), repr(score)", "label, repr(score)"),
            "test_no_class_is_written_as_a_formula",
        ),
    ),
    *_group(
        "workers/processes.py",
        "workers/test_processes.py",
        (
            "except wire.GarbledError:",
            "except ZeroDivisionError:",
            "test_a_worker_that_writes_to_all_file_descriptors_is_replaced",
        ),
        (
            "self._lose_ended(-(self._told() or 0))",
            "self._told()",
            "test_a_worker_that_dies_is_replaced_while_a_child_of_it_lives_on",
        ),
    ),
    *_group(
        "workers/_fork_server.py",
        "workers/test_processes.py",
        (
            "os.register_at_fork(after_in_child=channel.close)",
            "pass",
            "test_a_child_that_returns_from_the_function_answers_nothing",
        ),
        (
            *never("zlib.crc32(body) != crc"),
            "test_a_message_is_taken_whole_and_only_as_it_was_sent",
        ),
        (
            " or length > MAX_BODY",
            "",
            "test_a_worker_that_writes_to_all_file_descriptors_is_replaced",
        ),
    ),
    *_group(
        "save/recorder.py",
        "save/test_resume.py",
        (
            "fits = there.question == asked and",
            "fits = True and",
            "test_a_journal_of_other_questions_is_not_replayed",
        ),
        (
            "        if open_question is not None:\n            self.n_lost += ",
            "        if open_question is not None:\n            self.n_lost += 0 * ",
            "test_queries_are_never_exceeded_across_deaths",
        ),
        (
            "if not self._may_differ:",
            "if False:",
            "test_a_journal_of_other_questions_is_not_replayed",
            "test_other_numbers_in_the_same_place_are_an_error",
        ),
        (
            "self.stops_after_replay = self._may_differ",
            "self.stops_after_replay = False",
            "test_it_goes_on_where_it_began_too_however_often_it_moves",
        ),
        (
            " or len(store.chain) > 1",
            "",
            "test_a_journal_behind_a_damaged_checkpoint_may_be_of_another_place",
        ),
    ),
    *_group(
        "contract/interrupts.py",
        "save/test_resume.py",
        (
            "signal.signal(number, self._wait)",
            "pass",
            "test_ctrl_c_at_each_call_returns_a_result_and_the_run_can_go_on",
        ),
        (
            "if self._waiting is not None:",
            "if False:",
            "test_a_second_ctrl_c_in_a_save_leaves_at_once_and_the_run_can_go_on",
        ),
    ),
    *_group(
        "save/encoding.py",
        "save/test_encoding.py",
        (
            *never("not _fits(made[field], hint)"),
            "test_a_field_of_a_wrong_type_is_refused",
        ),
        (
            *never("not _hangs_together(found, self._size)"),
            "test_a_state_that_does_not_fit_the_problem_is_refused",
        ),
    ),
    *_group(
        "save/checkpoints.py",
        "save/test_resume.py",
        (
            "    if other:\n",
            "    if False:\n",
            "test_another_run_is_refused_by_what_it_differs_in",
        ),
        (
            "    if changed:\n",
            "    if False:\n",
            "test_other_versions_and_machines_are_told_of",
        ),
    ),
    # ------------------------------------------------------------------------ readers
    *_group(
        "readers/libsvm.py",
        "readers/test_libsvm.py",
        (
            "\n            and all(map(int.__lt__, indices, indices[1:]))",
            "",
            "test_a_bad_line_is_refused_by_place",
        ),
        (*never("not _all_finite(values)"), "test_a_bad_line_is_refused_by_place"),
        (
            " or not np.isfinite(self._labels[-1])",
            "",
            "test_a_bad_line_is_refused_by_place",
        ),
        (
            "indices[0] >= self._first\n            and ",
            "",
            "test_a_bad_line_is_refused_by_place",
        ),
        (
            "MAX_FEATURES = 2**24",
            "MAX_FEATURES = 2**31",
            "test_many_columns_must_be_told",
        ),
    ),
    *_group(
        "readers/lines.py",
        "readers/test_lines.py",
        (r"[\x00\r]", r"[\x00]", "test_damaged_text_is_refused_by_place"),
        (
            r'if text and not text.endswith("\n"):',
            "if False:",
            "test_damaged_text_is_refused_by_place",
        ),
        (
            *never("len(line) > MAX_LINE"),
            "test_a_line_that_is_too_long_is_refused",
        ),
        (
            "return repr(text if",
            "return str(text if",
            "../security/test_terminal.py::test_errors_of_readers_are_plain_text",
        ),
    ),
    *_group(
        "readers/content.py",
        "readers/test_content.py",
        (*never("size > limit"), "TestPacked::test_a_bomb_is_not_unpacked"),
        (*never("not stream.eof"), "TestPacked::test_every_cut_is_an_error"),
        (
            *never("len(members) == _MAX_MEMBERS"),
            "TestPacked::test_many_streams_are_refused",
        ),
        (
            ", memlimit=_MAX_LZMA_MEMORY",
            "",
            "test_a_stream_that_wants_much_memory_is_refused",
        ),
        (
            *never("not stat.S_ISREG(found.st_mode)"),
            "test_a_folder_is_refused",
        ),
    ),
    *_group(
        "readers/csv.py",
        "readers/test_csv.py",
        (
            *never("len(fields) != len(checked)"),
            "test_a_bad_file_is_refused_by_place",
        ),
        (
            "float(text) if is_number(text) else np.nan",
            "float(text) if text.strip('+-.') else np.nan",
            "test_what_is_no_finite_number_is_refused",
        ),
        (
            "if missing is None or column[row] != missing:",
            "if missing is None:",
            "test_a_missing_marker_does_not_hide_other_faults",
        ),
    ),
    # ------------------------------------------------------------------------- doors
    *_group(
        "contract/validation.py",
        "contract/test_validation.py",
        (
            "int(value) if value.is_integer() else None",
            "int(value)",
            "test_a_number_that_is_not_whole_is_no_count",
        ),
    ),
    *_group(
        "save/state_file.py",
        "save/test_state_file.py",
        (
            *never("not np.isfinite(number).all()"),
            "test_numbers_that_no_run_leaves_behind_are_refused_at_once",
        ),
        (
            *never("not abs(total - 1.0) <= WEIGHT_ERROR"),
            "test_numbers_that_no_run_leaves_behind_are_refused_at_once",
        ),
    ),
    *_group(
        "contract/validation.py",
        "security/test_terminal.py",
        (
            "c if c.isprintable() or c in keep else repr(c)[1:-1]",
            "c",
            "test_errors_of_readers_are_plain_text",
        ),
    ),
    # ------------------------------------------------------ what other solvers answer
    *_group(
        "maths/subproblems/nearest.py",
        "maths/subproblems/test_polyhedron.py",
        (
            "if found is not None and is_least(matrix, target, found):",
            "if found is not None:",
            "test_a_wrong_answer_of_nnls_is_replaced_and_counted",
        ),
        (
            *never("not is_least(matrix, target, instead)"),
            "test_least_squares_that_nothing_solves_are_an_error_that_says_so",
        ),
        (
            "return bool(off <= allowed and claim <= allowed)",
            "return bool(off <= allowed)",
            "test_a_wrong_answer_of_nnls_is_replaced_and_counted",
        ),
        (
            "pull * REACH <= contradiction",
            "True",
            "test_a_set_is_empty_only_if_its_rows_contradict_each_other",
        ),
    ),
    *_group(
        "maths/subproblems/polyhedron.py",
        "maths/subproblems/test_polyhedron.py",
        (
            "if answer.status == 0 and is_lowest(cost, system, sides, answer):",
            "if answer.status == 0:",
            "test_a_wrong_answer_of_highs_is_replaced_and_counted",
        ),
        (
            "if is_settled and self._is_held(down, found):",
            "if is_settled:",
            "test_the_lowest_point_may_lie_beyond_a_corner_that_is_nearest_for_long",
        ),
        (
            "if answer.status == 2 and is_empty(self._all_families, self._signs):",
            "if answer.status == 2:",
            "test_a_wrong_answer_of_highs_is_replaced_and_counted",
        ),
    ),
    *_group(
        "cli/talk.py",
        "cli/test_solve.py",
        (
            "before = signal.signal(signal.SIGTERM, interrupt)",
            "before = signal.getsignal(signal.SIGTERM)",
            "test_a_signal_while_the_file_is_run_has_its_code_and_nothing_is_saved",
        ),
        (
            "interrupts.hold()",
            "pass",
            "test_a_signal_while_a_result_is_told_and_written_loses_nothing_of_it",
        ),
    ),
    *_group(
        "cli/solve.py",
        "cli/test_solve.py",
        (
            "return DONE if result.success else NO_SUCCESS",
            "return DONE",
            "test_the_verdict_comes_first_and_the_exit_code_says_the_same",
        ),
    ),
    *_group(
        "cli/loading.py",
        "cli/test_solve.py",
        (
            "sys.modules.pop(name, None)",
            "pass",
            "test_a_file_cannot_hide_an_installed_module",
        ),
    ),
    *_group(
        "problem/calls.py",
        "test_written_arguments.py",
        (
            "SESSION.get(), handed_out(x)",
            "SESSION.get(), x",
            "test_a_function_that_writes_into_its_arguments_changes_no_bit_of_a_run",
        ),
    ),
    *_group(
        "workers/base.py",
        "test_written_arguments.py",
        (
            "function(handed_out(where), handed_out(indices))",
            "function(where, handed_out(indices))",
            "test_a_function_that_writes_into_its_arguments_changes_no_bit_of_a_run",
        ),
    ),
    *_group(
        "problem/constraints/concat.py",
        "test_written_arguments.py",
        (
            "part.values_at(handed_out(points), own)",
            "part.values_at(points, own)",
            "test_a_function_that_writes_into_its_arguments_changes_no_certificate",
        ),
    ),
    *_group(
        "problem/constraints/scipy_forms.py",
        "test_written_arguments.py",
        (
            "function(handed_out(x0))",
            "function(x0)",
            "test_a_function_that_writes_into_its_arguments_changes_no_bit_of_a_run",
        ),
    ),
    *_group(
        "run/loop.py",
        "test_written_arguments.py",
        (
            "x=handed_out(state.x)",
            "x=state.x",
            "test_a_callback_that_writes_into_x_spoils_neither_the_run_nor_the_next_"
            "callback",
        ),
    ),
    *_group(
        "run/final_check.py",
        "evidence/test_certificate.py",
        (
            "best = checker.confirm(best, chosen, suspects)",
            "pass",
            "test_the_bound_holds_for_the_best_of_three_points_on_one_draw",
        ),
        (
            "suspects_of(weights, position.worst_seen)",
            "suspects_of(weights, weights)",
            "test_what_the_run_last_saw_violated_is_looked_at_before_it_says_success",
        ),
    ),
    *_group(
        "evidence/checker.py",
        "evidence/test_certificate.py",
        (
            "confidence=1.0 - (1.0 - CONFIDENCE) / n_points",
            "confidence=CONFIDENCE",
            "test_without_a_fresh_look_each_of_three_points_has_a_third_of_the_error",
        ),
    ),
    *_group(
        "evidence/certificate.py",
        "evidence/test_certificate.py",
        (
            "bad = indices[~(values <= 0.0)]",
            "bad = indices[values > 0.0]",
            "test_a_call_with_a_value_that_is_not_known_counts_as_violated",
            "test_unknown_draws_raise_the_bound_and_unknown_suspects_do_not",
        ),
        (
            "first.worst_indices[is_kept], first.worst_values[is_kept]",
            "first.worst_indices[:0], first.worst_values[:0]",
            "test_a_fresh_look_bounds_by_its_own_draw_and_forgets_no_violation",
        ),
    ),
    *_group(
        "save/encoding.py",
        "save/test_encoding.py",
        (
            "and bool(((indices >= 0) & (indices < size.n_constraints)).all())\n",
            "",
            "test_a_run_that_makes_no_sense_is_refused",
        ),
    ),
]
