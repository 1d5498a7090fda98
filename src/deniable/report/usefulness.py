"""How useful a private model is beside an unprotected one and beside guessing, on records held out from both."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from deniable._shown import shown
from deniable.report.model import Number, Section

_NOT_PROTECTED = (
    "The figures for usefulness were computed from the records without noise: the guarantee does not cover them. Keep "
    "them with the data; the model does not hold them."
)


@dataclass(frozen=True)
class Score:
    """One model on the held-out records. Classification: accuracy and AUC; regression: R² and mean absolute error."""

    first: float
    second: float | None


@dataclass(frozen=True)
class ScoreLost:
    """What the protection costs: of AUC, accuracy or R², with where the truth lies at 95 % confidence."""

    of: str
    estimate: float
    low: float
    high: float


@dataclass(frozen=True)
class Usefulness:
    """A private model, an unprotected one (None without training records) and guessing, on the same records."""

    classification: bool
    n: int
    private: Score
    plain: Score | None
    guess: Score
    noise: float
    help: tuple[str, ...] = ()
    loss: ScoreLost | None = None

    @property
    def useless(self) -> bool:
        """Whether the private model is no better than guessing, as far as these records can tell."""
        no_ranking = self.private.second is None or self.private.second < 0.5 + self.noise
        if not self.classification:
            return not self.private.first > self.noise
        chance = 2 * (self.guess.first * (1 - self.guess.first) / self.n) ** 0.5
        return self.private.first <= self.guess.first + chance and no_ranking

    @property
    def alert(self) -> str:
        """The loud first line where the model is of no use, or nothing."""
        if not self.useless:
            return ""
        what = "always naming the most frequent class" if self.classification else "always predicting the mean"
        helps = f" What would help: {'; '.join(self.help)}." if self.help else ""
        where = f"{self.n:,} held-out records (not protected)"
        return f"This model is no better than {what} on {where}: do not use it.{helps}"

    @property
    def sentence(self) -> str:
        """The comparison in one sentence."""
        if not self.classification:
            beside = f" (unprotected: {_plain(self.plain.first)})" if self.plain else ""
            reached = f"On {self.n:,} held-out records, without noise, R² is {_plain(self.private.first)}{beside}"
            return f"{reached}; predicting the mean reaches 0."
        beside = f"unprotected: {_rate(self.plain.first)}, " if self.plain else ""
        ranking = (
            ""
            if self.private.second is None
            else f", AUC {_plain(self.private.second)}"
            + (f" ({_plain(self.plain.second)})" if self.plain and self.plain.second is not None else "")
        )
        return (
            f"On {self.n:,} held-out records, without noise, it is right in {_rate(self.private.first)} of cases "
            f"({beside}always the most frequent class: {_rate(self.guess.first)}){ranking}."
        )

    @property
    def warning(self) -> str:
        """What has to be known before these figures are passed on."""
        return _NOT_PROTECTED

    def section(self) -> Section:
        """Return the comparison as a part of a report."""
        names = ("Accuracy", "AUC") if self.classification else ("R²", "Mean absolute error")
        keys = ("accuracy", "auc") if self.classification else ("r2", "mae")
        units: tuple[Any, Any] = ("rate", "number") if self.classification else ("number", "number")
        guess = "always the most frequent class" if self.classification else "always the mean"
        rows = [
            ("private", "this model", self.private),
            ("plain", "without protection", self.plain),
            ("guess", guess, self.guess),
        ]
        numbers = []
        if self.loss is not None:
            meaning = "The unprotected model's minus this one's: 95\u00a0% interval of a paired bootstrap."
            of, estimate = self.loss.of, round(self.loss.estimate, 3)
            low, high = math.floor(1000 * self.loss.low) / 1000, math.ceil(1000 * self.loss.high) / 1000
            label = f"{of} lost by the protection (not protected)"
            numbers.append(Number("use.loss", label, estimate, meaning, "measured interval", "number", low, high))
        for place in (0, 1):
            for key, words, score in rows:
                value = None if score is None else (score.first, score.second)[place]
                if value is None:
                    continue
                meaning = {
                    "private": f"Measured on {self.n:,} records that the model was not fitted to.",
                    "plain": "Gradient boosted trees fitted to the same records without any protection.",
                    "guess": "What needs no data about anybody but the frequencies.",
                }[key]
                numbers.append(
                    Number(
                        f"use.{keys[place]}.{key}",
                        f"{names[place]} (not protected), {words}",
                        value,
                        meaning,
                        "estimate",
                        units[place],
                    )
                )
        return Section(
            "use", "What the model is good for", "Measured on held-out records, without noise: not covered by the "
            "guarantee.", tuple(numbers),
            notes=(_NOT_PROTECTED,), protected=False,
        )  # fmt: skip


def _rate(value: float) -> str:
    return shown(value, "rate", "nearest", 3)


def _plain(value: float | None) -> str:
    return "–" if value is None else f"{value:.3g}"
