"""The shell's reader of CoNLL-U files: a structure's featurizer makes arcs of their words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from structsolve import registry
from structsolve.io.reader import Reader
from structsolve.io.select import parse_rows
from structsolve.plugins.dependency.conllu import DEPREL, read_conllu
from structsolve.utils.params import check_choice, parameters


@parameters
class ConlluReader(Reader):
    """Reads sentences with their trees; predictions are such files, too.

    Parameters
    ----------
    structure : str, optional
        The name of a structure whose ``file_format`` is ``"conllu"``: its ``make_featurizer()``
        returns a transformer from sentences to X.
    featurizer : dict, optional
        The state of the transformer; :meth:`fit` stores it.
    rows : str or int, optional
        ``N`` or ``A:B``, of the sentences.
    relations : {"full", "main", "none"}, optional
        Read the relations of arcs for labelled trees, or those without their subtypes (``nsubj`` of
        ``nsubj:pass``).  By default "full" if the structure is labelled, else "none".
    n_bits : int, optional
        Of the featurizer, for training, if it has such a setting, as
        :class:`~structsolve.plugins.dependency.ArcFeaturizer` has.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from structsolve.plugins.dependency import ConlluSentence, write_conllu
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "toy.conllu"
    >>> write_conllu(path, [ConlluSentence.of(["He", "ran"], ["PRON", "VERB"])], [[2, 0]])
    >>> reader = ConlluReader("dependency")
    >>> X, y = reader.fit(str(path))
    >>> reader.size_text(X), y[0].tolist()
    ('1 sentences, 2 words, 4 arcs', [2, 0])
    """

    endings = (".conllu",)
    structure_name = "dependency"
    named_features = True
    annotates = "always"
    function = staticmethod(read_conllu)

    structure: str | None = None
    featurizer: dict[str, Any] | None = None
    rows: str | int | None = None
    relations: str | None = None
    n_bits: int | None = None

    def fit(self, path: str) -> tuple[Any, Any]:
        """Read training data; store the state of the featurizer.

        See :meth:`Reader.fit`.

        Raises
        ------
        ValueError
            For malformed lines, and for a structure of other data.
        """
        return self._read(path, True)

    def read(self, path: str) -> tuple[Any, Any]:
        """Read data for a fitted model; see :meth:`Reader.read`.

        Raises
        ------
        ValueError
            For malformed lines.
        """
        return self._read(path, False)

    def _read(self, path: str, fit: bool) -> tuple[Any, Any]:
        known = registry.default()
        structure = known.make("structures", self.structure or self.structure_name)
        if getattr(structure, "file_format", None) != "conllu":
            names = [
                name
                for name in known.names("structures")
                if getattr(known.factory_of("structures", name), "file_format", None) == "conllu"
            ]
            raise ValueError(
                f"{path}: conllu data are sentences with trees; found structure "
                f"{self.structure!r}, expected one for them, such as "
                f"{' or '.join(map(repr, names))}; format 'conll' reads their columns alone"
            )
        sentences, heads = self._read_sentences(path)
        given = dict(self.featurizer or {})
        if fit and self.n_bits is not None:
            given["n_bits"] = self.n_bits
        featurizer = structure.make_featurizer(**given)
        if fit:
            self.featurizer = featurizer.fit(sentences).get_state()
        labelled = getattr(structure, "labelled", False)
        relations = self.relations or ("full" if labelled else "none")
        return featurizer.transform(sentences), self._labels(path, heads, relations, fit)

    def _labels(self, path: str, heads: Any, relations: str, fit: bool) -> Any:
        """Return heads, or heads and relations if these are read."""
        check_choice("relations", relations, ("full", "main", "none"))
        if heads is None or relations == "none":
            return heads
        if not fit and all({*s.column(DEPREL)} == {"_"} for s in self.sentences):
            return None
        trees = []
        for i, sentence in enumerate(self.sentences):
            try:
                trees.append(sentence.arcs(relations == "main"))
            except ValueError as error:
                raise ValueError(f"{path}, sentence {i + 1}: {error}") from None
        return trees

    def raw(self, path: str, columns: Any = None) -> tuple[Any, Any]:
        """Read sentences, for the steps of a pipeline.

        Parameters
        ----------
        path : str
        columns : ignored

        Returns
        -------
        X, y
            ``y`` is None if the sentences have no heads.

        Raises
        ------
        ValueError
            For malformed lines.
        """
        _, heads = self._read_sentences(path)
        return self.sentences, self._labels(path, heads, self.relations or "none", False)

    def _read_sentences(self, path: str) -> tuple[Any, Any]:
        rows = parse_rows(self.rows)
        sentences, heads = read_conllu(path)
        self.sentences = sentences[rows]
        return self.sentences, None if heads is None else heads[rows]

    def size_text(self, X: Any) -> str:
        """Return the numbers of sentences, words and arcs; see :meth:`Reader.size_text`."""
        words = sum(map(len, self.sentences))
        return f"{len(self.sentences)} sentences, {words} words, {X.features.shape[0]} arcs"

    def annotated(self, labels: Sequence[Any]) -> Iterator[str]:
        """Yield the sentences with other heads; see :meth:`Reader.annotated`."""
        for sentence, heads in zip(self.sentences, labels, strict=True):
            yield sentence.with_heads(heads).text
