"""Guards of the library, each with what is left when it is taken away.

Every entry has to turn its test red: `python tools/mutants.py` tries them on a copy of
the tree. Listed are those that keep a promise; a new one of that kind belongs here.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutant:
    """One guard taken away."""

    file: str  # below src/dszog
    old: str
    new: str
    node: str  # the test, as pytest names it

    @property
    def name(self) -> str:
        """What was taken away, in short."""
        return f"{self.file}: {' '.join(self.old.split())[:60]}"


# By "a file below src/dszog: that of its tests below tests": what stands exactly once
# in the file, what is put in its place, and the test that has to fail then.
LISTED: dict[str, list[tuple[str, str, str]]] = {
    # ------------------------------------------------------- what the black box returns
    "workers/base.py: contracts/test_evaluators.py": [
        ("if all_finite(table):", "if True:",
         "test_a_value_that_is_not_finite_is_named_with_its_index"),
        ("table.copy() if places is None", "table if places is None",
         "test_functions_that_return_one_buffer_again_mix_no_replies"),
    ],
    "workers/base.py: run/test_failures.py": [
        ("except (Exception, SystemExit) as error:", "except Exception as error:",
         "test_the_error_names_function_index_iteration_and_point_and_keeps_its_cause"),
        ("np.where(np.isfinite(table), table, np.nan)", "table",
         "test_no_failure_makes_a_feasible_well"),
    ],
    "workers/base.py: test_written_arguments.py": [
        ("function(handed_out(where), handed_out(indices))",
         "function(where, handed_out(indices))",
         "test_a_function_that_writes_into_its_arguments_changes_no_bit_of_a_run"),
    ],
    "run/failures.py: run/test_failures.py": [
        ("unknown: BoolArray = np.isnan(values)",
         "unknown: BoolArray = np.zeros(values.shape, dtype=bool)",
         "test_an_index_unknown_at_the_base_point_is_left_out_alone"),
        ("MAX_RATE = 0.1 ", "MAX_RATE = 1.0 ",
         "test_more_than_one_in_ten_of_200_is_enough"),
    ],
    # --------------------------------------------------------------------- ask and tell
    "contract/query.py: contracts/test_methods.py": [
        ("if not all_finite(array):", "if False:",
         "test_tell_refuses_replies_that_do_not_fit"),
    ],
    # -------------------------------------------------------------------------- budgets
    "run/meter.py: run/test_loop.py": [
        ("if not self.affords(charged.total):", "if False:",
         "test_the_meter_refuses_what_would_exceed_the_budget_and_calls_nothing"),
    ],
    "run/loop.py: run/test_loop.py": [
        ("meter.n_charged + charged.total > end.queries",
         "meter.n_queries > end.queries",
         "test_queries_are_used_to_one_iteration_never_exceeded"),
    ],
    "run/meter.py: save/test_resume.py": [
        ("self.n_charged + self.n_lost + n_queries <=", "self.n_charged + n_queries <=",
         "test_what_was_made_again_is_charged_to_the_budget_of_all_processes"),
        ("self._log.asked(queries, charged, self.elapsed)", "pass",
         "test_what_was_made_again_is_charged_to_the_budget_of_all_processes"),
    ],
    # ------------------------------------------------------------------- honest results
    "run/verdict.py: evidence/test_certificate.py": [
        ("and certificate.is_known\n        and", "and",
         "test_the_unknown_the_violated_and_the_broken_off_are_no_success"),
        ("certificate.feasibility.maxcv <= constraint_tol\n",
         "certificate.feasibility.maxcv <= 2 * constraint_tol\n",
         "test_the_unknown_the_violated_and_the_broken_off_are_no_success"),
    ],
    "evidence/look.py: evidence/test_certificate.py": [
        ("violated_share_bound(drawn.n_bad_calls, drawn.n_calls, confidence)",
         "drawn.n_bad_calls / drawn.n_calls",
         "test_a_sampled_check_counts_its_draw_and_bounds_the_share"),
        ("bad = indices[~(values <= 0.0)]", "bad = indices[values > 0.0]",
         "test_a_call_with_a_value_that_is_not_known_counts_as_violated"),
    ],
    "evidence/certificate.py: evidence/test_certificate.py": [
        ('return self.kind != "unchecked" and not self.n_unknown',
         'return self.kind != "unchecked"',
         "test_an_unknown_value_is_violated_and_no_success"),
    ],
    "run/checker.py: evidence/test_certificate.py": [
        ("if not certificate.is_known:", "if False:",
         "test_a_point_with_unknowns_is_never_the_best"),
    ],
    "run/checker.py: problem/test_simulator.py": [
        ("if fail[0] != fail[1]:", "if False:",
         "test_a_point_at_which_all_cases_fail_is_no_result_where_others_give_values"),
    ],
    "run/final_check.py: evidence/test_certificate.py": [
        ("best = checker.confirm(best, chosen, suspects)", "pass",
         "test_the_bound_holds_for_the_best_of_three_points_on_one_draw"),
        ("suspects_of(weights, position.worst_seen)", "suspects_of(weights, weights)",
         "test_what_the_run_last_saw_violated_is_looked_at_before_it_says_success"),
    ],
    # -------------------------------------------------------------------------- numbers
    "kernels/projection.py: maths/distribution/test_projection.py": [
        ("np.maximum(values / 2 - largest / 2, -1.0) * 2",
         "values + 0.0",
         "test_20_000_vectors_of_scale_1e_minus_3_to_1e18_are_projected_without_"
         "a_failure"),
        ("or not np.isfinite(values).all()", "",
         "test_what_is_not_a_vector_of_finite_numbers_is_refused"),
    ],
    "kernels/plain.py: maths/distribution/test_sparse.py": [
        ('np.searchsorted(below, ranks, side="right")',
         'np.searchsorted(below, ranks, side="left")',
         "test_each_rank_of_the_background_is_a_different_untouched_constraint"),
    ],
    "maths/subproblems/nearest.py: maths/subproblems/test_polyhedron.py": [
        ("if found is not None and is_least(matrix, target, found):",
         "if found is not None:",
         "test_a_wrong_answer_of_nnls_is_replaced_and_counted"),
    ],
    "maths/subproblems/polyhedron.py: maths/subproblems/test_polyhedron.py": [
        ("if answer.status == 0 and is_lowest(cost, system, sides, answer):",
         "if answer.status == 0:",
         "test_a_wrong_answer_of_highs_is_replaced_and_counted"),
    ],
    # -------------------------------------------------------------- saving and resuming
    "save/container.py: save/test_container.py": [
        ("if hashlib.sha256(body).digest() != content[-_HASH:]:", "if False:",
         "test_no_single_bit_flips_unnoticed"),
    ],
    "save/files.py: save/test_store.py": [
        ("write_all(handle, piece)\n            os.fsync(handle)",
         "write_all(handle, piece)",
         "test_the_order_of_a_save_is_write_sync_rename_sync"),
        ("os.rename(beside, path)\n        sync_folder(path.parent)",
         "os.rename(beside, path)",
         "test_the_order_of_a_save_is_write_sync_rename_sync"),
        ("fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)", "pass",
         "test_two_stores_of_one_process_exclude_each_other"),
    ],
    "save/files.py: security/test_files.py": [
        ("os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW", "os.O_CREAT",
         "test_a_planted_link_is_never_written_through"),
    ],
    "save/journal.py: save/test_journal.py": [
        ("if self._crc_of(start, length) != crc:", "if False:",
         "test_every_flipped_bit_ends_the_journal_where_it_is"),
        ("if self.n_cut:", "if False:",
         "test_a_torn_tail_is_cut_and_no_more_lost"),
    ],
    "save/store.py: save/test_store.py": [
        ("KEPT = 2 ", "KEPT = 1 ", "test_two_generations_are_kept_with_their_journals"),
    ],
    "save/checkpoints.py: save/test_resume.py": [
        ("fits = there.question == asked and", "fits = True and",
         "test_other_numbers_in_the_same_place_are_an_error"),
        ("    if other:\n", "    if False:\n",
         "test_another_run_is_refused_by_what_it_differs_in"),
    ],
    "save/encoding.py: save/test_encoding.py": [
        ("if not _hangs_together(found, self._size):", "if False:",
         "test_a_state_that_does_not_fit_the_problem_is_refused"),
    ],
    "contract/interrupts.py: save/test_resume.py": [
        ("signal.signal(number, self._wait)", "pass",
         "test_ctrl_c_at_each_call_returns_a_result_and_the_run_can_go_on"),
    ],
    # -------------------------------------------------------------------------- workers
    "workers/processes.py: workers/test_processes.py": [
        ("except wire.GarbledError:", "except ZeroDivisionError:",
         "test_a_worker_that_writes_to_all_is_replaced"),
        ("self._lose_ended(-(self._told() or 0))", "self._told()",
         "test_a_dead_worker_with_children_is_replaced"),
    ],
    "workers/_fork_server.py: workers/test_processes.py": [
        ("os.register_at_fork(after_in_child=channel.close)", "pass",
         "test_a_child_that_returns_from_the_function_answers_nothing"),
        (" or length > MAX_BODY", "", "test_a_worker_that_writes_to_all_is_replaced"),
    ],
    "workers/_supervisor.py: workers/test_supervisor.py": [
        ("if number in self._open:\n                self._open.discard(number)",
         "if True:\n                self._open.discard(number)",
         "test_nothing_is_lost_or_used_twice_by_any_pool"),
    ],
    "workers/_supervisor.py: workers/test_processes.py": [
        ("elif not self._owner.charge(price):", "elif False:",
         "test_what_is_repeated_is_in_the_budget"),
    ],
    # ---------------------------------------------------------------- readers and doors
    "readers/libsvm.py: readers/test_libsvm.py": [
        ("\n        and all(map(int.__lt__, indices, indices[1:]))", "",
         "test_a_bad_line_is_refused_by_place"),
        ("\n            or not _all_finite(entries)", "",
         "test_a_bad_line_is_refused_by_place"),
    ],
    "readers/content.py: readers/test_content.py": [
        ("if size > limit:", "if False:", "TestPacked::test_a_bomb_is_not_unpacked"),
    ],
    "cli/solve.py: cli/test_solve.py": [
        ("return DONE if result.success else NO_SUCCESS", "return DONE",
         "test_the_verdict_comes_first_and_the_exit_code_says_the_same"),
    ],
    # ------------------------------------------------------- slopes that are remembered
    "methods/slope_models.py: methods/test_slopes.py": [
        ("limit = state.level + 2.0 * unsure", "limit = math.inf",
         "test_a_step_into_more_violations_than_can_be_kept_is_taken_back"),
    ],
    "save/checkpoints.py: methods/test_slopes.py": [
        ('if there.get("method type") in GONE:', "if False:",
         "test_a_folder_of_a_form_that_is_gone_is_refused_with_what_to_do"),
    ],
    "methods/sampled_sqp/plans.py: methods/sampled_sqp/test_blocks.py": [
        ("if size.by_case and not room:", "if False:",
         "test_a_budget_that_ends_before_likely_cases_are_seen_shows_no_optimum"),
        ("if learns_first(state):  # what is found", "if False:  # what is found",
         "test_before_models_are_learned_for_the_end_few_cases_are_looked_at"),
    ],
    "methods/sampled_sqp/case_values.py: methods/sampled_sqp/test_screening.py": [
        ("shifts = share * (of_point @ (weights * left))", "shifts = 0.0 * shifts",
         "test_what_values_from_one_point_miss_in_common_is_taken_off"),
    ],
}  # fmt: skip
MUTANTS = [
    Mutant(file, old, new, f"{tests}::{test}")
    for where, found in LISTED.items()
    for file, tests in [where.split(": ")]
    for old, new, test in found
]
