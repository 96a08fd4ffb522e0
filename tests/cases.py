"""Many quick cases as one test: what pytest does around a test takes longer than such a case."""

import functools
import inspect

import pytest


def each(names, values, ids=None, by=None):
    """As `pytest.mark.parametrize`, within one test; an error says which case it is of. For cases without marks.

    With `by`, which gives a case the name of a group, each group is a test.
    """
    names = names.replace(" ", "").split(",") if isinstance(names, str) else list(names)
    groups = {}
    for value in values:
        groups.setdefault(None if by is None else by(value), []).append(value)

    def decorate(test):
        @functools.wraps(test)
        def all_of_them(*fixtures, group=None, **others):
            for value in groups[group]:
                case = dict(zip(names, value if len(names) > 1 else (value,), strict=True))
                try:
                    test(*fixtures, **others, **case)
                except pytest.skip.Exception:
                    continue
                except BaseException as error:
                    error.add_note(f"This is the case {case}.")
                    raise

        for name in [name for name in vars(all_of_them) if "hypothesis" in name]:
            delattr(all_of_them, name)  # the test inside is one, and this one calls it
        signature = inspect.signature(test)
        others = [given for name, given in signature.parameters.items() if name not in names]
        if by is not None:
            others.append(inspect.Parameter("group", inspect.Parameter.KEYWORD_ONLY))
        all_of_them.__signature__ = signature.replace(parameters=others)
        return all_of_them if by is None else pytest.mark.parametrize("group", list(groups))(all_of_them)

    return decorate
