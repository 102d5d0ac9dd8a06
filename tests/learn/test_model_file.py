"""A saved model predicts the same, and a damaged file is refused."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from operator import methodcaller
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

pytest.importorskip("sklearn")

import dszog
from dszog.learn import FairClassifier, PairwiseClassifier, load
from dszog.save.container import pack, unpack
from dszog.save.encoding import NO_SIZE, pack_value, value_in
from tests.fuzz import mutate
from tests.fuzz.campaign import campaign
from tests.fuzz.targets import Target


def quick(kind: Any, **changes: Any) -> Any:
    return kind(random_state=0, max_iterations=10, **changes)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("is_sparse", [False, True])
def test_a_loaded_model_is_the_same(
    kernel: str, is_sparse: bool, two_classes: Any, tmp_path: Path
) -> None:
    X, y = two_classes
    X = sparse.csr_array(np.where(np.abs(X) < 0.5, 0.0, X)) if is_sparse else X
    model = quick(PairwiseClassifier, kernel=kernel, gamma=0.3, margin=0.25).fit(X, y)
    model.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    np.testing.assert_array_equal(
        loaded.decision_function(X), model.decision_function(X)
    )
    assert type(loaded) is PairwiseClassifier
    left_out = {"random_state": None}
    assert loaded.get_params() == model.get_params() | left_out
    assert loaded.certificate_text_ == str(model.certificate_)
    assert loaded.n_iter_ == model.n_iter_
    loaded.fit(X, y)


def test_a_fair_model_keeps_its_groups_and_names(unfair: Any, tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    X, y, group = unfair
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"group": group, "age": rng.normal(size=1500)})
    frame = pd.DataFrame(X, columns=["a", "b", "\u00e9"])
    model = quick(FairClassifier, constraint_tol=10.0, pos_label="no")
    model.fit(frame, y, sensitive_features=table)

    model.save(tmp_path / "model")
    loaded = load(tmp_path / "model")

    assert loaded.feature_names_in_.tolist() == ["a", "b", "\u00e9"]
    assert loaded.classes_.tolist() == ["no", "yes"]
    assert loaded.constraint_names_ == model.constraint_names_
    assert loaded.pos_label == loaded.pos_label_ == "no"
    probabilities = loaded.predict_proba(frame)
    np.testing.assert_array_equal(probabilities, model.predict_proba(frame))
    assert loaded.fairness_report(frame, y, table) == model.fairness_report(
        frame, y, table
    )


@pytest.mark.parametrize(
    "classes",
    [
        np.array([3, 7]),
        np.array([False, True]),
        np.array([-1.0, 1.0]),
        np.array(["a", "b"]),
        np.array(["a", "b"], dtype=object),
    ],
)
def test_classes_keep_their_type(
    classes: Any, two_classes: Any, tmp_path: Path
) -> None:
    X, y = two_classes
    model = quick(PairwiseClassifier).fit(X, classes[y])
    model.save(tmp_path / "model")
    found = load(tmp_path / "model").predict(X)
    assert found.dtype == model.predict(X).dtype
    np.testing.assert_array_equal(found, model.predict(X))


def test_a_loss_that_is_code_is_not_saved(two_classes: Any, tmp_path: Path) -> None:
    X, y = two_classes
    model = quick(PairwiseClassifier, loss=lambda s, y: np.abs(s - y)).fit(X, y)
    model.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    with pytest.raises(ValueError, match="'loss' parameter"):
        loaded.fit(X, y)


def test_only_known_kinds_are_saved(two_classes: Any, tmp_path: Path) -> None:
    class Other(PairwiseClassifier):
        pass

    with pytest.raises(dszog.InputError, match="one of PairwiseClassifier"):
        quick(Other).fit(*two_classes).save(tmp_path / "model")
    with pytest.raises(dszog.CheckpointError, match="could not be written"):
        quick(PairwiseClassifier).fit(*two_classes).save(tmp_path / "no" / "model")


@pytest.fixture
def saved(two_classes: Any, tmp_path: Path) -> Path:
    path = tmp_path / "model"
    quick(PairwiseClassifier, kernel="rbf", n_centres=3).fit(*two_classes).save(path)
    return path


FORGED: list[tuple[str, Any]] = [
    ("model", "ConstrainedClassifier"),
    ("model", ["os", "system"]),
    ("n_features", -1),
    ("n_features", 5),
    ("n_features", 10**30),
    ("arrays", {"intercept_": np.zeros(1)}),
    ("arrays", None),
    ("gamma", float("nan")),
    ("gamma", None),
    ("feature_names", ["a"]),
    ("feature_names", [1, 2, 3, 4]),
    ("classes", [1]),
    ("classes", [1, "2"]),
    ("positive", 2),
    ("parameters", {"__class__": "x"}),
    ("parameters", []),
    ("n_iter", -1),
    ("certificate", [[]]),
]


def rewrite(path: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    facts, arrays = unpack(path.read_bytes())
    content = value_in(arrays, NO_SIZE)
    change(content)
    path.write_bytes(b"".join(pack_value(facts, content)))


@pytest.mark.parametrize(("name", "value"), FORGED)
def test_a_forged_document_is_refused(saved: Path, name: str, value: Any) -> None:
    rewrite(saved, lambda content: content.update({name: value}))
    with pytest.raises(dszog.CheckpointError, match="no model that can be used"):
        load(saved)


def test_a_missing_part_is_refused(saved: Path) -> None:
    whole = saved.read_bytes()
    names = value_in(unpack(whole)[1], NO_SIZE).keys()
    for name in names - {"sensitive", "constraint_names", "unconstrained"}:
        saved.write_bytes(whole)
        rewrite(saved, methodcaller("pop", name))
        with pytest.raises(dszog.CheckpointError, match="no model that can be used"):
            load(saved)


def test_whatever_a_forged_model_holds_no_other_error_escapes(
    two_classes: Any, unfair: Any, tmp_path: Path
) -> None:
    X, y = two_classes
    scarce = sparse.csr_array(np.where(np.abs(X) < 0.5, 0.0, X))
    models = [
        quick(PairwiseClassifier).fit(X, np.array(["a", "b"])[y]),
        quick(PairwiseClassifier, kernel="rbf", n_centres=3).fit(X, 2.0 * y - 1.0),
        quick(PairwiseClassifier, kernel="rbf", gamma=0.3).fit(scarce, y),
        quick(FairClassifier, constraint_tol=10.0).fit(
            unfair[0], unfair[1], sensitive_features=unfair[2]
        ),
    ]
    seeds = []
    for model in models:
        model.save(tmp_path / "seed")
        seeds.append((tmp_path / "seed").read_bytes())

    def read(folder: Path, content: bytes) -> bool:
        (folder / "model").write_bytes(content)
        try:
            load(folder / "model")
        except dszog.CheckpointError:
            return False
        return True

    def case(rng: np.random.Generator) -> bytes:
        return mutate.checkpoint(rng, mutate.pick(rng, seeds))

    found = campaign(Target("model", case, read, ()), 1000, 0, tmp_path)

    assert found["first escaped"] == []
    assert 0 < found["accepted"] < found["cases"]


def test_what_is_no_model_is_refused(saved: Path, tmp_path: Path) -> None:
    saved.write_bytes(b"".join(pack({"kind": "run"}, [])))
    with pytest.raises(dszog.CheckpointError, match="something else"):
        load(saved)
    saved.write_bytes(b"".join(pack({"kind": "model"}, [])))
    with pytest.raises(
        dszog.CheckpointError, match=r"another version .* fit the model"
    ):
        load(saved)
    saved.write_bytes(b"\x80\x04K\x01." + hashlib.sha256(b"").digest() * 3)
    with pytest.raises(dszog.CheckpointError, match="no checkpoint of dszog"):
        load(saved)
    with pytest.raises(dszog.CheckpointError, match="cannot be read"):
        load(tmp_path / "nothing")
