"""The commands, and what each of them takes."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from cyclopts import App, Parameter, Token
from rich.console import Console

import dszog
from dszog.cli.complaints import complain, flags_of
from dszog.cli.demo import run_demo
from dszog.cli.settings import whole
from dszog.cli.talk import INTERRUPTED
from dszog.errors import DszogError


def _count(kind: Any, tokens: Sequence[Token]) -> int:
    """Read a number of things, which may be written 1e6."""
    (token,) = tokens
    try:
        return whole(token.value)
    except ValueError:
        raise ValueError(
            f'unable to convert "{token.value}" into a whole number.'
        ) from None


COUNT = Parameter(converter=_count)
Count: TypeAlias = Annotated[int, COUNT]
OptionalCount: TypeAlias = Annotated[int | None, COUNT]
Flag: TypeAlias = Annotated[bool, Parameter(negative="", show_default=False)]
Many: TypeAlias = Annotated[
    tuple[str, ...], Parameter(negative="", consume_multiple=False)
]
OUTPUT = Parameter(name=("--output", "-o"))
OutputFolder: TypeAlias = Annotated[Path, OUTPUT]
OutputFile: TypeAlias = Annotated[Path | None, OUTPUT]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Budget:
    """How far a run may go, and when it is a success."""

    max_queries: OptionalCount = None
    """Values of losses and constraints that may be evaluated in all."""
    max_iterations: OptionalCount = None
    """Iterations; 2000 if there is no budget at all."""
    max_time: float | None = None
    """Seconds."""
    constraint_tol: float | None = None
    """How large a violation may remain for a success; 0.01 if not given."""


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Reading:
    """How a file of rows is read."""

    format: Literal["auto", "csv", "libsvm"] = "auto"
    """auto goes by the name: .csv and .tsv are CSV, all others LIBSVM."""
    delimiter: str | None = None
    """What parts the fields of a CSV file; a comma, or a tab in .tsv, if not given."""


UNLIMITED, BY_NAME = Budget(), Reading()

app = App(
    name="dszog",
    help=(
        "Minimise what can only be evaluated, under more constraints than one can "
        "look at."
    ),
    version=dszog.__version__,
    suppress_keyboard_interrupt=False,  # which would end without a word
)


@app.command
def demo(
    *,
    output: OutputFolder = Path("dszog-demo"),
    seed: int = 0,
    max_queries: Count = 3_000_000,
) -> None:
    """Solve a problem with 62,000 constraints from start to end.

    Trains a classifier on generated data so that no positive row scores more than 0.3
    below any negative one, by evaluations alone. Takes well under a minute and needs
    no data. Writes a picture and the figures into the output folder.

    For example:

    dszog demo

    dszog demo --seed 1 --max-queries 1000000 -o demo-1

    Exit codes: 0 success; 3 the run ended without one; 130 Ctrl-C; 2 wrong usage; 1
    other errors.

    Parameters
    ----------
    output
        Folder for the picture and the figures.
    seed
        Of the data and of the run.
    max_queries
        Values of losses and constraints that may be evaluated in all.
    """
    try:
        code = run_demo(Console(), output, seed, max_queries)
    except DszogError as error:
        code = complain("demo", error, flags_of(["max_queries", "seed"]))
    sys.exit(code)


@app.command
def solve(
    problem: str,
    /,
    *,
    method: str = "dszog",
    settings: Annotated[Many, Parameter(name="--set")] = (),
    budget: Budget = UNLIMITED,
    tune: Flag = False,
    seed: int | None = None,
    evaluator: str | None = None,
    on_failure: str | None = None,
    checkpoint: Path | None = None,
    resume: Flag = False,
    output: OutputFile = None,
) -> None:
    """Solve a problem of your own, and say what the answer rests on.

    FILE.py:NAME names a dszog.Problem in a Python file, or a function without arguments
    that returns one. The file is run; no folder is searched for modules because of it.
    Ctrl-C and SIGTERM end the run with the best point so far, and with --checkpoint the
    same command goes on with it under --resume.

    For example:

    dszog solve model.py:problem --max-queries 100000

    dszog solve model.py:problem --set penalty=10 --set directions=sphere

    dszog solve model.py:problem --max-queries 100000 --tune

    dszog solve model.py:problem --checkpoint run-1 --resume -o result.json

    Exit codes: 0 success; 3 the run ended without one (stopped early, or the
    constraints are not met); 130 Ctrl-C; 143 SIGTERM; 2 wrong usage; 1 other errors.

    Parameters
    ----------
    problem
        FILE.py:NAME.
    method
        One of dszog, sampled_sqp, zoscgd, fzfw, fzcgs, fcgs, accszofw,
        accszofw_storm, zopsgd, acczomda.
    settings
        name=value, a setting of the method; may be given several times.
    tune
        Choose step size and penalty by short runs, in 0.3 of the budget.
    seed
        Same seed, same run. Drawn and reported if not given.
    evaluator
        What calls your functions: serial if not given.
    on_failure
        raise, resample or penalise: what to do about values that are not numbers.
    checkpoint
        Folder to save the run to.
    resume
        Go on with the run in --checkpoint; begin one if there is none.
    output
        File for the result, as JSON.
    """
    from dszog.cli.solve import Request, solve_command

    arguments = {
        **vars(budget),
        "tune": tune or None,
        "seed": seed,
        "evaluator": evaluator,
        "on_failure": on_failure,
    }
    request = Request(
        target=problem,
        method=method,
        settings=settings,
        arguments=arguments,
        checkpoint=checkpoint,
        resume=resume,
        output=output,
    )
    sys.exit(solve_command(Console(), request))


@app.command
def fit(
    data: Path,
    /,
    *,
    task: Literal["pairwise", "fair"],
    target: str | None = None,
    sensitive: Many = (),
    use_sensitive: Flag = False,
    drop: Many = (),
    categorical: Many = (),
    test: Path | None = None,
    holdout: float | None = None,
    output: OutputFolder = Path("dszog-fit"),
    overwrite: Flag = False,
    kernel: Literal["linear", "rbf"] | None = None,
    loss: str | None = None,
    alpha: float | None = None,
    penalty: str | None = None,
    margin: float | None = None,
    constraint: str | None = None,
    tolerance: float | None = None,
    bins: OptionalCount = None,
    min_group: OptionalCount = None,
    step_size: float | None = None,
    budget: Budget = UNLIMITED,
    seed: int = 0,
    reading: Reading = BY_NAME,
) -> None:
    """Train a classifier under constraints on a LIBSVM or CSV file.

    Writes model.dszog, report.json and report.md into the output folder. Of a CSV file,
    columns of numbers are features, and columns of words are one feature for each word.
    Files may be packed (gzip, bzip2, xz). Ctrl-C and SIGTERM end the training, and the
    best model so far is written.

    For example:

    dszog fit a9a --task pairwise --test a9a.t

    dszog fit people.csv --task pairwise --target hired --holdout 0.25 --kernel rbf

    dszog fit people.csv --task fair --target hired --sensitive sex --sensitive race

    Exit codes: 0 done, and constraints kept (pairs only with --penalty auto or
    --constraint-tol); 3 the run ended without that; 130 Ctrl-C; 143 SIGTERM; 2 wrong
    usage or data; 1 other errors.

    Parameters
    ----------
    data
        The rows to train on.
    task
        pairwise: every positive row scores above every negative one. fair: groups of
        people are treated alike.
    target
        The column to predict, of a CSV file; it must have two different values.
    sensitive
        A column whose groups are treated alike, for --task fair; may be given several
        times. In a LIBSVM file, the number of a feature.
    use_sensitive
        Let the model see the sensitive columns as well.
    drop
        A column to leave out; may be given several times.
    categorical
        A column to take as words although it has numbers; may be given several times.
    test
        A file of rows to test the model on.
    holdout
        Or the share of the rows to hold out for that.
    output
        Folder for the model and the report.
    overwrite
        Replace a model that is there.
    kernel
        linear or rbf.
    loss
        logistic (if not given), hinge, squared, sigmoid, ramp, zero_one or welsch.
    alpha
        Weight of the squared length of the weights; 0.0001 if not given.
    penalty
        Weight of the worst violation against the loss, or auto: grow until the
        constraints are kept. If not given, 0.03 for pairs and auto for groups.
    margin
        By how much a positive row has to outscore a negative one; 0 if not given.
    constraint
        equalized_odds (if not given), equal_opportunity, demographic_parity,
        covariance, zafar or literal.
    tolerance
        How far a group's rate may be from everybody's; 0.02 if not given.
    bins
        Bins that make groups of a sensitive column of numbers.
    min_group
        A rate of fewer rows is not constrained; 20 if not given.
    step_size
        Of the method.
    seed
        Same seed, same model.
    """
    from dszog.cli.data import Source, Wanted
    from dszog.cli.fit import FitRequest, fit_command

    settings = {
        "kernel": kernel,
        "loss": loss,
        "alpha": alpha,
        "margin": margin,
        "constraint": constraint,
        "tolerance": tolerance,
        "n_bins": bins,
        "min_group_size": min_group,
        "step_size": step_size,
        **vars(budget),
    }
    request = FitRequest(
        source=Source(path=data, **vars(reading)),
        task=task,
        wanted=Wanted(
            target=target,
            sensitive=sensitive,
            use_sensitive=use_sensitive,
            drop=drop,
            categorical=categorical,
        ),
        test=test,
        holdout=holdout,
        settings=settings,
        penalty=penalty,
        seed=seed,
        output=output,
        overwrite=overwrite,
    )
    sys.exit(fit_command(Console(), request))


@app.command
def predict(
    model: Path,
    data: Path,
    /,
    *,
    output: OutputFile = None,
    reading: Reading = BY_NAME,
) -> None:
    """Predict the class of each row of a file with a model of `dszog fit`.

    Writes CSV, a line for each row: its class and its score, which is above 0 for the
    positive class. Nothing in a model file is executed, and a damaged one is refused.

    For example:

    dszog predict dszog-fit/model.dszog people.csv

    dszog predict dszog-fit/model.dszog a9a.t -o predictions.csv

    Exit codes: 0 done; 130 Ctrl-C; 2 wrong usage or data; 1 other errors.

    Parameters
    ----------
    model
        A file that `dszog fit` or the save method of a classifier wrote.
    data
        The rows, with the columns that the model was fitted on; others are not used.
    output
        File for the predictions; standard output if not given.
    """
    from dszog.cli.data import Source
    from dszog.cli.predict import PredictRequest, predict_command

    request = PredictRequest(
        model=model,
        source=Source(path=data, **vars(reading)),
        output=output,
    )
    sys.exit(predict_command(Console(stderr=True), request))


@app.command
def completion(shell: Literal["bash", "zsh", "fish"], /) -> None:
    """Print what makes a shell complete `dszog` commands and options at a tab.

    For example:

    dszog completion bash >> ~/.bashrc

    dszog completion zsh > ~/.zfunc/_dszog

    dszog completion fish > ~/.config/fish/completions/dszog.fish

    Parameters
    ----------
    shell
        bash, zsh or fish.
    """
    print(app.generate_completion(prog_name="dszog", shell=shell))


@app.command
def paper(
    *tables: str,
    output: OutputFolder = Path("dszog-paper"),
    full: Flag = False,
    limit: Literal["time", "queries"] = "time",
    seconds: float | None = None,
    repetitions: OptionalCount = None,
    jobs: Count = 2,
    dask: str | None = None,
    data: Path | None = None,
    download: Flag = False,
) -> None:
    """Reproduce the tables and figures of the paper, with what it leaves out.

    Without --full a quick version of everything: fewer repetitions and grid points,
    under 10 minutes on 2 cores. With --full the whole protocol, some hours. Every run
    is kept as it finishes: interrupt, and call again with the same --output to go on.

    For example:

        dszog paper                          all tables and figures, quickly

        dszog paper 2 fig1 --data FOLDER     Table 2 and Figure 1, on real data there

        dszog paper --full --limit queries   the same numbers on every machine

    Parameters
    ----------
    tables
        Numbers of tables (1 to 12), fig1 to fig3, or F for fairness on real data; all
        if none is given.
    output
        Folder for records, report.html, report.md and results.json.
    full
        The whole protocol: 10 repetitions, all grids, 10 s a run.
    limit
        What ends the runs of other methods than DSZOG; "queries" makes all results
        reproducible bit for bit.
    seconds
        Time of such a run, other than the protocol has.
    repetitions
        Reported repetitions, other than the protocol has.
    jobs
        Processes to run on.
    dask
        Address of a Dask scheduler to run on instead.
    data
        Folder with the real data sets; else DSZOG_DATA names one. What is not found is
        replaced by generated stand-ins, named as such.
    download
        Fetch data sets that are not at hand from their public sources.
    """
    from dszog.cli.paper import paper_command

    console = Console()
    try:
        code = paper_command(
            console,
            tables=tables,
            output=output,
            full=full,
            limit=limit,
            seconds=seconds,
            repetitions=repetitions,
            jobs=jobs,
            dask=dask,
            data=data,
            download=download,
            command=" ".join(["dszog", *sys.argv[1:]]),
        )
    except DszogError as error:
        code = complain("paper", error, flags_of(["data", "jobs"]))
    except KeyboardInterrupt:
        console.print(
            "Interrupted. What was finished is kept: call again with the same --output "
            "to go on.",
            markup=False,
        )
        code = INTERRUPTED
    sys.exit(code)


@app.command
def bench(
    *what: str,
    output: OutputFolder = Path("dszog-bench"),
    quick: Flag = False,
    full: Flag = False,
    data: Path | None = None,
) -> None:
    """Measure the library: what an iteration costs, and what it reaches.

    Without a name and --full: what the library costs, in a few minutes. With --full all
    measures with more repetitions, which take hours; runs of other libraries are kept
    as they finish: interrupt, and call again with the same --output to go on.

    For example:

        dszog bench list                     the measures, a line each

        dszog bench a9a --data FOLDER        193.8 million pairs from a cold start

        dszog bench iteration constraints    two measures

        dszog bench peers                    other libraries on one problem, quickly

    Parameters
    ----------
    what
        Names of measures; `dszog bench list` shows them.
    output
        Folder for JSON and Markdown.
    quick
        The quick version, as without --full.
    full
        More repetitions, and without a name all measures.
    data
        Folder with a9a and Adult; else DSZOG_DATA names one. Generated stand-ins, named
        as such, take their place where neither is given.
    """
    from dszog.cli.bench import bench_command

    console = Console()
    try:
        code = bench_command(
            console, what=what, output=output, quick=quick, full=full, data=data
        )
    except DszogError as error:
        code = complain("bench", error, flags_of(["data"]))
    except KeyboardInterrupt:
        console.print(
            "Interrupted. Runs of peers that were finished are kept: call again with "
            "the same --output to go on.",
            markup=False,
        )
        code = INTERRUPTED
    sys.exit(code)
