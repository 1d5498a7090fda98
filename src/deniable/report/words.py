"""Headings and fixed sentences of a page, in English, German and French; a plain catalogue."""

from __future__ import annotations

from typing import Literal

from deniable._check import choice

Language = Literal["en", "de", "fr"]

_ENGLISH = {
    "report": "membership report",
    "skip": "Skip to the numbers",
    "read_first": "Read this first",
    "meets": "Meets the policy",
    "does not meet": "Does not meet the policy",
    "cannot be told": "Cannot be told",
    "policy": "Policy",
    "rules": "What was asked, what was found",
    "asked": "Asked",
    "limit": "Limit",
    "found": "Found",
    "outcome": "Outcome",
    "met": "met",
    "missed": "missed",
    "not asked": "not part of this report",
    "decides": "decides",
    "closest": "closest to its limit",
    "change": "What would change it",
    "relation": "How the numbers relate",
    "parts": "Parts of this report",
    "finding": "The finding in full",
    "all_risks": "Every risk in one table",
    "roc": "What an attacker finds at how many false accusations (ROC)",
    "roc_caption": "How many members an attacker can find (up) at how many false accusations (right). The dotted "
    "diagonal is guessing; no attack lies above the provable bound. Bars are intervals of a measured attack, the dot "
    "is what it showed at least. A bar without an end stops at the bound: the proof excludes what it holds "
    "beyond it.",
    "as_table": "The same numbers as a table",
    "number": "Number",
    "value": "Value",
    "kind": "What it is",
    "meaning": "Meaning",
    "game": "The game in which these numbers hold",
    "limits": "What this does not cover",
    "warnings": "Warnings",
    "reproduce": "How to reproduce it",
    "save": "Save the numbers as JSON",
    "made_by": "Made by deniable",
    "complete": "This page is complete in itself: it loads nothing and sends nothing.",
}

_GERMAN = {
    "report": "Bericht zur Mitgliedschaft",
    "skip": "Zu den Zahlen springen",
    "read_first": "Bitte zuerst lesen",
    "meets": "Erfüllt die Vorgabe",
    "does not meet": "Erfüllt die Vorgabe nicht",
    "cannot be told": "Nicht zu entscheiden",
    "policy": "Vorgabe",
    "rules": "Was verlangt war, was gefunden wurde",
    "asked": "Verlangt",
    "limit": "Grenze",
    "found": "Gefunden",
    "outcome": "Ergebnis",
    "met": "erfüllt",
    "missed": "verfehlt",
    "not asked": "nicht Teil dieses Berichts",
    "decides": "entscheidet",
    "closest": "der Grenze am nächsten",
    "change": "Was es ändern würde",
    "relation": "Wie die Zahlen zusammenhängen",
    "parts": "Teile dieses Berichts",
    "finding": "Der Befund im Wortlaut",
    "all_risks": "Alle Risiken in einer Tabelle",
    "roc": "Was ein Angreifer bei wie vielen falschen Beschuldigungen findet (ROC)",
    "roc_caption": "Wie viele Mitglieder ein Angreifer finden kann (nach oben) bei wie vielen falschen Beschuldigungen "
    "(nach rechts). Die gepunktete Diagonale ist Raten; kein Angriff liegt über der bewiesenen Schranke. Balken sind "
    "Intervalle eines gemessenen Angriffs, der Punkt ist, was er mindestens zeigte. Ein Balken ohne Abschluss endet an "
    "der Schranke: was das Intervall darüber enthält, schließt der Beweis aus.",
    "as_table": "Dieselben Zahlen als Tabelle",
    "number": "Zahl",
    "value": "Wert",
    "kind": "Was sie ist",
    "meaning": "Bedeutung",
    "game": "Das Spiel, in dem diese Zahlen gelten",
    "limits": "Was nicht erfasst ist",
    "warnings": "Warnungen",
    "reproduce": "Wie man es wiederholt",
    "save": "Zahlen als JSON sichern",
    "made_by": "Erstellt mit deniable",
    "complete": "Diese Seite ist in sich vollständig: sie lädt nichts und sendet nichts.",
}

_FRENCH = {
    "report": "rapport d'appartenance",
    "skip": "Aller aux chiffres",
    "read_first": "À lire d'abord",
    "meets": "Respecte la politique",
    "does not meet": "Ne respecte pas la politique",
    "cannot be told": "Impossible à dire",
    "policy": "Politique",
    "rules": "Ce qui était demandé, ce qui a été trouvé",
    "asked": "Demandé",
    "limit": "Limite",
    "found": "Trouvé",
    "outcome": "Résultat",
    "met": "respecté",
    "missed": "dépassé",
    "not asked": "hors de ce rapport",
    "decides": "décide",
    "closest": "le plus près de sa limite",
    "change": "Ce qui y changerait quelque chose",
    "relation": "Comment les chiffres se tiennent",
    "parts": "Parties de ce rapport",
    "finding": "Le constat en entier",
    "all_risks": "Tous les risques en un tableau",
    "roc": "Ce qu'un attaquant trouve pour combien de fausses accusations (ROC)",
    "roc_caption": "Combien de membres un attaquant peut trouver (en hauteur) pour combien de fausses accusations "
    "(à droite). La diagonale pointillée est le hasard ; aucune attaque ne dépasse la borne prouvée. Les barres "
    "sont les intervalles d'une attaque mesurée, le point est ce qu'elle a montré au moins. Une barre sans extrémité "
    "s'arrête à la borne : ce que l'intervalle contient au-delà est exclu par la preuve.",
    "as_table": "Les mêmes chiffres en tableau",
    "number": "Chiffre",
    "value": "Valeur",
    "kind": "Ce que c'est",
    "meaning": "Signification",
    "game": "Le jeu dans lequel ces chiffres valent",
    "limits": "Ce qui n'est pas couvert",
    "warnings": "Avertissements",
    "reproduce": "Comment le refaire",
    "save": "Enregistrer les chiffres en JSON",
    "made_by": "Fait avec deniable",
    "complete": "Cette page est complète : elle ne charge rien et n'envoie rien.",
}

LANGUAGES: dict[str, dict[str, str]] = {"en": _ENGLISH, "de": _GERMAN, "fr": _FRENCH}


def words(language: str) -> dict[str, str]:
    """Return the catalogue of a language: "en", "de" or "fr"."""
    return LANGUAGES[choice("language", language, LANGUAGES)]
