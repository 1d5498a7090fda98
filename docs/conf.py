"""The site: ``make site`` builds it into docs/_build/html, with warnings as errors."""

import re
import sys
import tomllib
from pathlib import Path

from numpy.typing import ArrayLike
from sphinx.util.typing import stringify_annotation

import deniable

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import api_pages  # noqa: E402
import architecture_picture  # noqa: E402

(HERE / "api.rst").write_text(api_pages.page())
EXAMPLES = api_pages.examples()
PAGES = {f"{module}.{name}" for _, module, names in api_pages.sections() for name in names}
for path in (HERE / "api").glob("*.rst"):  # of an earlier build
    if path.stem not in PAGES:
        path.unlink()
MERMAID = re.compile(r"```mermaid\n(.*?)```", re.DOTALL)
for page in ("ARCHITECTURE", "CHANGELOG", "CONTRIBUTING", "SECURITY"):  # they live next to the README
    text = (HERE.parent / f"{page}.md").read_text().replace("](docs/", "](")
    if chart := MERMAID.search(text):
        (HERE / "images" / "architecture.svg").write_text(architecture_picture.drawn(chart[1]))
        text = MERMAID.sub("![Packages in layers; an arrow where one imports another](images/architecture.svg)", text)
    (HERE / f"{page.lower()}.md").write_text(re.sub(r"\]\(([A-Z]+)\.md\)", lambda m: f"]({m[1].lower()}.md)", text))

project = "deniable"
author = "The deniable authors"
copyright = author
version = release = deniable.__version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
]
exclude_patterns = ["_build"]
templates_path = ["_templates"]
source_suffix = {".rst": "restructuredtext", ".md": "myst-nb"}  # autosummary writes the first kind

# pages are Markdown; only those with code cells are executed
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
nb_execution_mode = "cache"
nb_execution_raise_on_error = True
nb_execution_timeout = 900  # a cell of training on a busy machine
nb_merge_streams = True
suppress_warnings = ["myst.header"]

autosummary_generate = True
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_type_aliases = {name: name for name in ("ArrayLike", "FloatArray", "IntArray", "BoolArray", "Labels")}
python_display_short_literal_types = True  # 'upper' | 'lower'
python_maximum_signature_line_length = 90  # longer ones: a line a parameter
autodoc_member_order = "bysource"
ABOVE = "BaseEstimator,ClassifierMixin,RegressorMixin,TransformerMixin,Exception,Warning,tuple,dict,object"
autodoc_default_options = {"members": True, "inherited-members": ABOVE, "show-inheritance": False}
python_use_unqualified_type_names = True
toc_object_entries_show_parents = "hide"  # next to the page: methods without the name of their class
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True
default_role = "any"

copybutton_prompt_text = r">>> |\$ "
copybutton_prompt_is_regexp = True

html_theme = "pydata_sphinx_theme"
html_title = "deniable"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_context = {"default_mode": "auto"}  # light or dark as the reader's system
PROJECT = tomllib.loads((HERE.parent / "pyproject.toml").read_text())["project"]
html_theme_options = {
    "icon_links": [{"name": "Source and issues", "url": PROJECT["urls"]["Repository"], "icon": "fa-brands fa-github"}],
    "header_links_before_dropdown": 6,
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "tango",
    "pygments_dark_style": "monokai",
}


def escape_bars(app, what, name, obj, options, lines):
    """|x| is an absolute value here, not a substitution; code between double backticks stays as it is."""
    for k, line in enumerate(lines):
        parts = line.split("``")
        parts[::2] = [part.replace("|", "\\|") for part in parts[::2]]
        lines[k] = "``".join(parts)


def fitted_attributes(app, what, name, obj, options, lines):
    """Keep the underscore of fitted attributes, which reStructuredText takes for a link, and give each a line."""
    split = []
    for line in lines:
        found = re.fullmatch(r":ivar ([^:]*):(.*)", line)
        names = found[1].replace("_,", r"\_,").removesuffix("_").split(", ") if found else []
        last = r"\_" if found and found[1].endswith("_") else ""
        split += [f":ivar {one}{last if one is names[-1] else ''}:{found[2]}" for one in names] or [line]
    lines[:] = split


def whole_sentences(app, what, name, obj, options, lines):
    """Keep NumPy's style from taking what stands before a colon in the first line of a property for its type."""
    if what == "property" and lines:
        lines[0] = lines[0].replace(": ", " – ")


def with_example(app, what, name, obj, options, lines):
    """End a page of the reference with the example to which its docstring refers."""
    example = EXAMPLES.get(name.rpartition(".")[2]) if what in ("class", "function", "exception") else None
    if example and not any(">>>" in line for line in lines):
        lines += ["", *example.splitlines(), ""]


SHORTER = (  # what autodoc makes of a type or default, as a regular expression, and what the reader sees
    (r"TypeAliasForwardRef\('(\w+)'\)", r"\1"),
    (re.escape(stringify_annotation(ArrayLike, "smart")), "ArrayLike"),
    (r"~?numpy\.ndarray\[~?(?:builtins\.)?tuple\[~?typing\.Any, \.\.\.\], ~?numpy\.dtype\[([^]]+)\]\]", r"NDArray[\1]"),
    ("<factory>", "..."),  # a default that is made anew for each object
)


def readable(app, what, name, obj, options, signature, returned):
    """Write types by the names that they have in the source."""
    both = [signature, returned]
    for pattern, plain in SHORTER:
        both = [text and re.sub(pattern, plain, text) for text in both]
    return tuple(both)


def skip_foreign(app, what, name, obj, skip, options):
    """Leave out what scikit-learn's base classes bring: it is documented there."""
    home = str(getattr(getattr(obj, "fget", obj), "__module__", "deniable"))
    return True if home.startswith(("sklearn.", "abc", "typing", "enum")) else None


def straight_back(app, pagename, templatename, context, doctree):
    """Mend links from source to reference: viewcode mixes up the modules of a name that several of them export."""
    if pagename.startswith("_modules/deniable"):
        found = r'href="([^"#]*/api/([\w.]+\.(\w+))\.html)#[\w.]*?\.\3((?:\.\w+)?)"'
        context["body"] = re.sub(found, r'href="\1#\2\4"', context["body"])


def tables_of_benchmarks(app, docname, source):
    """Offer Markdown files outside of the site as downloads: they are no pages of it."""
    source[0] = re.sub(r"\]\((\.\./benchmarks/[^)]*\.md)\)", r"](path:\1)", source[0])


def setup(app):
    """Register the hooks."""
    app.connect("source-read", tables_of_benchmarks)
    app.connect("autodoc-process-docstring", escape_bars)
    app.connect("autodoc-process-docstring", whole_sentences, priority=400)  # before NumPy's style
    app.connect("autodoc-process-docstring", fitted_attributes, priority=900)
    app.connect("autodoc-process-docstring", with_example, priority=900)  # after the sections of NumPy's style
    app.connect("autodoc-process-signature", readable)
    app.connect("autodoc-skip-member", skip_foreign)
    app.connect("html-page-context", straight_back)
