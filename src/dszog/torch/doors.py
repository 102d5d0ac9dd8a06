"""`dszog.torch.minimize`, and the optimiser for loops of one's own."""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import fields
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import torch

from dszog._log import LOGGER
from dszog.contract import ProblemSize, Reply, cost
from dszog.contract.arrays import all_finite
from dszog.contract.hints import about_argument
from dszog.contract.validation import (
    check_callable,
    check_count,
    check_seed,
    shown,
)
from dszog.errors import DszogError, EvaluationError, InputError, InputTypeError
from dszog.methods.base import Info
from dszog.methods.dszog import DSZOGState
from dszog.methods.named import (
    HEAD,
    UNKNOWN_LENGTH,
    WANDER,
    NamedDSZOG,
    PointName,
    settings_for,
)
from dszog.minimize import minimize as minimize_names
from dszog.problem import Losses, Problem
from dszog.problem.constraints import Constraints
from dszog.run.result import Result
from dszog.torch.first_order import GradientSteps, check_optimizer
from dszog.torch.functions import (
    OneByOne,
    TorchConstraints,
    TorchLosses,
    all_of,
    both_of,
    check_options,
    n_checked,
    one_for_each,
)
from dszog.torch.moves import MoveLog
from dszog.torch.passes import SOME, Both, Passes, device_failure, in_parts
from dszog.torch.space import ModuleSpace, chosen_parameters
from dszog.torch.start import begin, facts_of, seed_of, take_start

OTHERS = ("on_failure", "on_interrupt", "on_save_failure", "weights")
AS_IT_WAS = "The weights are as they were."
SETTINGS = {field.name for field in fields(NamedDSZOG)} - {"n_variables", "directions"}
STEADY = 1.5  # times what breaks one in a hundred constraints: steps may go so far


def minimize(
    model: Any,
    losses: TorchLosses,
    constraints: TorchConstraints,
    *,
    params: Any = "all",
    options: dict[str, Any] | None = None,
    max_iterations: int | float | None = None,
    max_queries: int | float | None = None,
    max_time: float | None = None,
    constraint_tol: float = 1e-2,
    seed: int | None = None,
    callback: Any = None,
    progress: bool = False,
    checkpoint: str | PathLike[str] | None = None,
    resume: bool = False,
    record: bool = True,
    tag: str = "",
    **others: Any,
) -> Result:
    """Minimise the mean of losses of a network under constraints, by forward passes.

    Parameters
    ----------
    model : torch.nn.Module
        Changed in place; as it was if an exception leaves. It is put into evaluation
        mode for the run: dropout is off, and batch norm uses what it has learned.
    losses : Losses
    constraints : Constraints
    params : "all", or parts of names, layers or parameters
        Which of the weights that require gradients may change.
    options : dict, optional
        Fields of :class:`dszog.methods.named.NamedDSZOG`, such as ``step_size`` (the
        root mean square of a step of a weight) and ``penalty``.
    max_iterations, max_queries, max_time : optional
        Budgets, as for :func:`dszog.minimize`: a query is one example at one point,
        those that are looked at before the run included.
    constraint_tol, seed, callback, progress, tag : optional
        As for :func:`dszog.minimize`.
    checkpoint, resume : optional
        A folder to save the run to. A run that goes on takes its weights from there.
    record : bool
        On a GPU, record the passes of an iteration once and replay them. Set it to
        False if your functions do something else in each call.
    **others
        `on_failure`, `on_interrupt`, `on_save_failure`, `weights`: as there.

    Returns
    -------
    Result
        As of :func:`dszog.minimize`, for the weights that the network has then. Its
        ``x`` is the name of the point; ``digest`` is that of the run. All examples that
        went through the network are ``n_forwards``: ``nfev + ncev``, those before the
        run (``n_looks``), and what is in ``costs.n_retried``, such as constraints that
        were drawn twice, and ``n_lost``.

    Examples
    --------
    >>> import torch
    >>> import dszog.torch as dt
    >>> net = torch.nn.Linear(2, 1)
    >>> x, y = torch.randn(50, 2), torch.ones(50)
    >>> result = dt.minimize(
    ...     net,
    ...     dt.Losses(lambda i: (net(x[i]).squeeze(1) - y[i]) ** 2, 50),
    ...     dt.Constraints(lambda j: net(x[j]).squeeze(1) - 2.0, 50),
    ...     max_iterations=20,
    ...     seed=0,
    ... )
    >>> result.nit
    20
    """
    for name, one, kind in (
        ("losses", losses, TorchLosses),
        ("constraints", constraints, TorchConstraints),
    ):
        if not isinstance(one, kind):
            raise InputTypeError(
                f"dszog.torch.minimize: `{name}` must be dszog.torch."
                f"{kind._what}, got {shown(one)}. Make them: dt.{kind._what}(f, n)."
            )
    check_names("dszog.torch.minimize", others, minimize, OTHERS)
    check_callbacks("dszog.torch.minimize", callback)
    asked = options or {}
    check_options(asked, SETTINGS)
    if max_queries is not None:
        max_queries = check_count("dszog.torch.minimize", "max_queries", max_queries)
    named = chosen_parameters(model, params)
    folder = None if checkpoint is None else Path(checkpoint).absolute()
    with unharmed(model, named.values()), ExitStack() as opened:
        LOGGER.info(about_mode(model) or "The network is in evaluation mode.")
        opened.enter_context(evaluating(model))
        known = take_start(folder, resume, named)
        seed = seed_of(seed, known)
        space = ModuleSpace(model, list(named.values()), seed)
        opened.callback(space.close)
        facts = facts_of(model, named, losses, constraints, seed=seed)
        size = _size(HEAD, len(losses), len(constraints))
        passes = Passes(space, both_of(losses, constraints), record=record)
        n_looks = n_checked(len(losses)) + n_checked(len(constraints))
        given, wander = max_queries, WANDER
        n_left = _left(given, n_looks)
        if "step_size" not in asked and "step_size" in known:
            # One that goes on, to other budgets perhaps, has the step that it had.
            asked = {**asked, "step_size": known["step_size"]}
        length = min(n_left or math.inf, SOME * (max_iterations or math.inf))
        if "step_size" not in asked and length >= 100 * SOME:
            with torch.no_grad():
                share, n_more = passes.steadiness(len(constraints))
            wander, n_looks = min(WANDER, STEADY * share), n_looks + n_more
        n_looks = known.get("n_looks", n_looks)
        max_queries = _left(given, n_looks)
        method = _method(space, asked, size, max_iterations, max_queries, wander)
        space.radius = method.radius
        if folder is not None:
            facts |= {"step_size": method.step_size, "n_looks": n_looks}
            begin(folder, model, space.tensors(), known, facts)
            space.log = MoveLog(folder / "weights")
            opened.callback(space.log.close)
        result = minimize_names(
            _problem(space, losses, constraints, method.n_directions, tag),
            method=method,
            evaluator=OneByOne(passes),
            max_iterations=max_iterations,
            max_queries=max_queries,
            max_time=max_time,
            constraint_tol=constraint_tol,
            seed=seed,
            callback=[space.follow, *all_of(callback)],
            progress=progress,
            checkpoint=None if folder is None else folder / "run",
            resume=resume,
            **others,
        )
        space.restore()
        space.go_to(PointName.of(result.x))
    result["model"], result["weights_digest"] = model, space.digest()
    again = result.costs.n_retried + result.costs.n_lost
    result["n_looks"] = n_looks
    result["n_forwards"] = result.nfev + result.ncev + again + n_looks
    result["are_losses_flat"] = passes.are_losses_flat
    return result


def _left(max_queries: int | None, n_looks: int) -> int | None:
    """Return what looks before a run leave of a budget."""
    if max_queries is None:
        return None
    if max_queries <= n_looks:
        raise InputError(
            f"dszog.torch.minimize: looks before a run take {n_looks:,} queries, got "
            f"max_queries={max_queries:,}. Raise it."
        )
    return max_queries - n_looks


def check_callbacks(owner: str, callback: Any) -> None:
    """Refuse what cannot be called."""
    for one in all_of(callback):
        check_callable(owner, "callback", one, "callback(progress)")


def _method(
    space: ModuleSpace,
    options: Mapping[str, Any],
    size: ProblemSize,
    iterations: Any,
    queries: Any,
    wander: float = WANDER,
) -> NamedDSZOG:
    """Return the method with settings for a network, and for a run of some length."""
    iterations, queries = (None if n is None else int(n) for n in (iterations, queries))
    chosen = settings_for(
        options, space.norm, space.dim, size, iterations, queries, wander
    )
    return NamedDSZOG(n_variables=space.dim, **chosen)


def _size(dim: int, n_losses: int, n_constraints: int) -> ProblemSize:
    unbounded = np.full(dim, np.inf)
    return ProblemSize(
        dim=dim,
        n_losses=n_losses,
        n_constraints=n_constraints,
        lower=-unbounded,
        upper=unbounded,
    )


def _problem(
    space: ModuleSpace,
    losses: TorchLosses,
    constraints: TorchConstraints,
    n_directions: int,
    tag: str,
) -> Problem:
    dim = HEAD + n_directions
    return Problem(
        Losses(lambda points, i: losses.table(space, points, i), len(losses)),
        Constraints(
            lambda points, j: constraints.table(space, points, j), len(constraints)
        ),
        dim,
        x0=np.zeros(dim),
        tag=tag,
        by_name=True,
    )


def check_names(
    owner: str, given: Iterable[str], door: Any, more: Iterable[str]
) -> None:
    """Refuse arguments that a door does not have."""
    known = {*inspect.signature(door).parameters, *more} - {"others"}
    for name in given:
        if name not in known:
            hint = about_argument(name, sorted(known)) or f" See help({owner})."
            raise InputTypeError(f"{owner}: there is no argument {name!r}.{hint}")


def about_mode(model: Any) -> str:
    """Return what evaluation mode changes in a network, or nothing."""
    n_dropout = n_norm = 0
    for one in filter(lambda one: one.training, model.modules()):
        share = getattr(one, "dropout", 0.0)  # of attention and recurrent layers
        has_some = isinstance(share, float) and share > 0.0
        n_dropout += has_some or isinstance(one, torch.nn.modules.dropout._DropoutNd)
        n_norm += isinstance(one, torch.nn.modules.batchnorm._NormBase)
    if not n_dropout + n_norm:
        return ""
    said = ["dropout off"] if n_dropout else []
    said += ["batch norm as it has learned"] if n_norm else []
    return (
        f"The network was in training mode, and is again. For the run it was in "
        f"evaluation mode: {', '.join(said)} ({n_dropout + n_norm} of its layers)."
    )


@contextmanager
def evaluating(model: Any, *, gradients: bool = False) -> Iterator[None]:
    """Have a network in evaluation mode for the length of the block."""
    were = {module: module.training for module in model.modules()}
    model.eval()
    # cuDNN has gradients of these in training mode alone, where dropout is the change.
    recurrent = {o: o.dropout for o in were if isinstance(o, torch.nn.RNNBase)}
    for one in recurrent if gradients else ():
        one.training, one.dropout = True, 0.0
    try:
        with casting_anew():
            yield
    finally:
        for module, was in were.items():
            module.training = was
        for one, dropout in recurrent.items():
            one.dropout = dropout


@contextmanager
def casting_anew() -> Iterator[None]:
    """Have autocast keep no cast weights: in a block of a user they would be old."""
    was = torch.is_autocast_cache_enabled()
    torch.set_autocast_cache_enabled(False)
    try:
        yield
    finally:
        torch.clear_autocast_cache()
        torch.set_autocast_cache_enabled(was)


@contextmanager
def unharmed(model: Any, weights: Iterable[Any]) -> Iterator[None]:
    """Have weights and buffers as they were to the bit if an exception leaves."""
    changing = [one.detach() for one in (*weights, *model.buffers())]
    were = [one.to("cpu", copy=True) for one in changing]
    try:
        yield
    except BaseException as caught:
        error = device_failure(caught) or caught
        with suppress(RuntimeError), torch.no_grad():  # of a device that is lost
            for one, was in zip(changing, were, strict=True):
                one.copy_(was)
            if isinstance(error, DszogError) and AS_IT_WAS not in str(error):
                error.args = (f"{error} {AS_IT_WAS}",)
        if error is caught:
            raise
        raise error from caught


# ------------------------------------------------------------------ loops of one's own


class NetworkOptimizer:
    """DSZOG for a loop of one's own: the closure says what the network gives.

    Without an optimiser, call ``model.eval()`` before the first step: dropout makes
    noise of differences. Weights may be changed between steps.

    Parameters
    ----------
    params : torch.nn.Module or iterable of parameters
    n_losses, n_constraints : int
    n_iterations : int
        How many steps there will be: over them the step shrinks to 0.
    seed : int
    optimizer : torch.optim.Optimizer, optional
        Where there are gradients: it steps down those of the losses and of constraints
        that are broken, and the closure must give values that can be differentiated.
    record : bool
        On a GPU, record the passes of the first step and replay them: only where the
        closure does the same in each step.
    **options
        Fields of :class:`dszog.methods.named.NamedDSZOG`; with an optimiser
        `penalty`, `loss_batch`, `dual_batch` and `constraint_batch`.

    Examples
    --------
    >>> import torch
    >>> import dszog.torch as dt
    >>> _ = torch.manual_seed(0)
    >>> net = torch.nn.Linear(2, 1)
    >>> x = torch.randn(50, 2)
    >>> opt = dt.DSZOG(net, n_losses=50, n_constraints=50, n_iterations=100)
    >>> info = opt.step(lambda i, j: (net(x[i])[:, 0] ** 2, net(x[j])[:, 0] - 9.0))
    >>> info.n_touched
    0
    """

    def __init__(
        self,
        params: Any,
        *,
        n_losses: int,
        n_constraints: int,
        n_iterations: int = UNKNOWN_LENGTH,
        seed: int = 0,
        optimizer: Any = None,
        record: bool = False,
        **options: Any,
    ) -> None:
        owner, model = "dszog.torch.DSZOG", params
        if not isinstance(params, torch.nn.Module):
            many = isinstance(params, Iterable) and not torch.is_tensor(params)
            given = list(params) if many else [params]
            if not all(isinstance(one, torch.Tensor) for one in given):
                raise InputTypeError(
                    f"{owner}: `params` must be a network or its parameters, got a "
                    f"list of {type(given[0]).__name__}. Pass model.parameters()."
                )
            model = torch.nn.ParameterList(given)
        n_losses = check_count(owner, "n_losses", n_losses)
        n_constraints = check_count(owner, "n_constraints", n_constraints)
        n_iterations = check_count(owner, "n_iterations", n_iterations)
        seed = check_seed(owner, seed)
        self.n_forwards = self._n_filled = 0
        self._closure: Both
        self._first_order, self._n_iterations = None, n_iterations
        if optimizer is not None:
            changing = list(chosen_parameters(model, "all").values())
            check_optimizer(owner, optimizer, changing)
            device, n = changing[0].device, (n_losses, n_constraints)
            self._first_order = GradientSteps(optimizer, device, n, seed, options)
            return
        self.space = ModuleSpace(model, "all", seed)
        check_options(options, SETTINGS)
        size = _size(HEAD, n_losses, n_constraints)
        options = {"horizon": n_iterations, **options}
        self.method = _method(self.space, options, size, n_iterations, None)
        self.space.radius = self.method.radius
        dim = HEAD + self.method.n_directions
        size = _size(dim, n_losses, n_constraints)
        self.state: DSZOGState = self.method.init(np.zeros(dim), size, seed)
        self.passes = Passes(self.space, self._call, record=record)
        self.passes.charge = self._count

    @property
    def weights(self) -> tuple[Any, Any]:
        """The constraints that stand out, and the weight of each."""
        return self.method.weights(self.state)

    def step(self, closure: Both) -> Info:
        """Take one step; before the first, look at the constraints.

        ``closure(losses, constraints)`` is given two tensors of indices, neither of
        them empty, and returns two of values.
        """
        if not self.n_forwards:
            how = "closure(losses, constraints)"
            check_callable("dszog.torch.DSZOG", "closure", closure, how, 2)
        self._closure = closure
        with casting_anew():
            return self._stepped()

    def _stepped(self) -> Info:
        if self._first_order is not None:
            gone = min(self._first_order.n_steps / self._n_iterations, 1.0)
            info = self._first_order.step(self._call, gone)
            self.n_forwards = self._first_order.n_passes + self._n_filled
            return info
        if not self.n_forwards and about_mode(self.space.model):
            raise InputError(
                "dszog.torch.DSZOG: the network is in training mode: dropout and batch "
                "norm make noise of differences. Call model.eval() before."
            )
        self.space.adopt()
        try:
            while self.state.start is not None:
                queries = self.method.ask(self.state)
                reply = Reply(np.empty((1, 0)), self._looked(queries[0].constraints))
                self._tell(queries, [reply])
            queries = self.method.ask(self.state)
            replies = self.passes(*queries)
            self.n_forwards += cost(queries, self.state.size).total
            info = self._tell(queries, replies)
            self.space.go_to(PointName.of(self.state.x))
            return info
        finally:
            self.space.seal()

    def _tell(self, queries: Any, replies: Any) -> Info:
        if not all(all_finite(part) for one in replies for part in one[:2]):
            raise EvaluationError(
                "dszog.torch.DSZOG: the closure gave values that are not finite. The "
                "weights are as they were before this step. Leave such examples out; "
                "in half precision compute losses in float32."
            )
        self.state, info = self.method.tell(self.state, queries, replies)
        return info

    def _looked(self, constraints: Any) -> Any:
        """Return the values of constraints at the iterate, as a row."""
        self._count(len(constraints))
        wanted = torch.from_numpy(np.array(constraints)).to(self.space.device)
        with torch.no_grad():
            found = in_parts(lambda j: self._call(wanted[:0], j)[1], wanted)
        self._count(self._n_filled)
        self._n_filled = 0
        return torch.cat(found).double().cpu().numpy()[np.newaxis]

    def _count(self, n_forwards: int) -> bool:
        self.n_forwards += n_forwards
        return True

    def _call(self, *wanted: Any) -> tuple[Any, Any]:
        # Networks need not know what to do with no examples at all: one fills in.
        asked = [one if len(one) else one.new_zeros(1) for one in wanted]
        self._n_filled += sum(not len(one) for one in wanted)
        try:
            found = self._closure(*asked)
        except RuntimeError as error:
            if "does not require grad" not in str(error):
                raise
            raise InputError(
                "dszog.torch.DSZOG: the closure must return the values alone, it must "
                "not call backward(): the step is made of what it returns. Leave out "
                "backward(), zero_grad() and the step of an optimiser."
            ) from error
        if not isinstance(found, (tuple, list)) or len(found) != 2:
            raise InputTypeError(
                "dszog.torch.DSZOG: the closure must return the values of losses and "
                f"of constraints, two tensors, got {type(found).__name__}. Return both."
            )
        owner = "dszog.torch.DSZOG: the closure's"
        losses = one_for_each(found[0], asked[0], f"{owner} losses")
        limits = one_for_each(found[1], asked[1], f"{owner} constraints")
        return losses[: len(wanted[0])], limits[: len(wanted[1])]
