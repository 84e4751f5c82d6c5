"""A `dataclass` whose classes are made in a fifth of the time.

A short run makes 160 of them, which took a third of its processor time: Python before 3.13 compiles
six methods for each, one by one. Here only `__init__` is compiled, since it runs often, and only
for a class that is used. The other methods are the same for all classes and ask for the fields.
Type checkers see Python's own decorator.

What is rare is left to Python's own: classes with fields that are no argument, and other arguments
of the decorator.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

__all__ = ["dataclass"]

if TYPE_CHECKING or sys.version_info >= (3, 13):
    from dataclasses import dataclass
else:
    import dataclasses
    from operator import attrgetter

    class _Factory:
        """Stands in a signature for a default that is made anew each time."""

        def __repr__(self):
            return "<factory>"

    _FACTORY = _Factory()

    def dataclass(
        cls=None, /, *, frozen=False, slots=False, kw_only=False, unsafe_hash=False, **rare
    ):
        """Make a dataclass; see `dataclasses.dataclass` for what the arguments mean."""
        given = {"frozen": frozen, "slots": slots, "kw_only": kw_only, "unsafe_hash": unsafe_hash}

        def make(cls):
            if rare or _is_rare(cls):
                return dataclasses.dataclass(cls, **given, **rare)
            return _make(cls, **given)

        return make if cls is None else make(cls)

    def _is_rare(cls):
        inherited = getattr(cls, "__dataclass_fields__", {})
        return any(
            isinstance(one, dataclasses.Field) and not one.init
            for one in (*vars(cls).values(), *inherited.values())
        )

    def _make(cls, *, frozen, slots, kw_only, unsafe_hash):
        own = frozenset(vars(cls))
        # Python's own collects the fields and makes the slots; the methods come from here. A class
        # that inherits from a frozen one has to be called frozen there, too.
        inherits = hasattr(cls, "__dataclass_fields__")
        cls = dataclasses.dataclass(
            init=False,
            repr=False,
            eq=False,
            frozen=frozen and inherits,
            slots=slots,
            kw_only=kw_only,
        )(cls)
        params = cls.__dataclass_params__
        params.init = params.repr = params.eq = True
        params.frozen, params.unsafe_hash = frozen, unsafe_hash
        fields = dataclasses.fields(cls)
        methods = {
            "__init__": _LaterInit(cls, fields, frozen),
            "__repr__": _make_repr([one.name for one in fields if one.repr]),
            "__eq__": _make_eq([one.name for one in fields if one.compare]),
            "__hash__": None,
        }
        if frozen or unsafe_hash:
            hashed = [one.name for one in fields if _is_hashed(one)]
            methods["__hash__"] = _make_hash(hashed)
        if frozen and not inherits:
            methods |= _refuse_changes(cls, frozenset(one.name for one in fields))
        if frozen and slots:
            methods |= {"__getstate__": _get_state, "__setstate__": _set_state}
        for name, method in methods.items():
            if name not in own:
                setattr(cls, name, method)
        return cls

    def _is_hashed(field):
        return field.compare if field.hash is None else field.hash

    class _LaterInit:
        """Stands for the `__init__` of a class, which is compiled when somebody asks for it."""

        def __init__(self, cls, fields, frozen):
            self._made_of = cls, fields, frozen

        def __get__(self, instance, owner=None):
            cls = self._made_of[0]
            cls.__init__ = init = _make_init(*self._made_of)
            return init if instance is None else init.__get__(instance)

    def _make_init(cls, fields, frozen):
        """Compile the method that sets the fields, as Python's own spells it."""
        known = {"_set": object.__setattr__, "_factory": _FACTORY}
        listed = {False: [], True: []}
        lines = []
        for one in fields:
            name, value = one.name, one.name
            parameter = name
            if one.default is not dataclasses.MISSING:
                known[f"_default_{name}"] = one.default
                parameter = f"{name}=_default_{name}"
            elif one.default_factory is not dataclasses.MISSING:
                known[f"_make_{name}"] = one.default_factory
                parameter = f"{name}=_factory"
                value = f"_make_{name}() if {name} is _factory else {name}"
            listed[one.kw_only].append(parameter)
            lines.append(f"_set(self, {name!r}, {value})" if frozen else f"self.{name} = {value}")
        if hasattr(cls, "__post_init__"):
            lines.append("self.__post_init__()")
        parameters = ["self", *listed[False], *(["*", *listed[True]] if listed[True] else [])]
        body = "\n  ".join(lines or ["pass"])
        text = (
            f"def __create_fn__({', '.join(known)}):\n"
            f" def __init__({', '.join(parameters)}):\n  {body}\n return __init__"
        )
        made = {}
        exec(text, sys.modules[cls.__module__].__dict__, made)
        init = made["__create_fn__"](**known)
        init.__qualname__ = f"{cls.__qualname__}.__init__"
        init.__annotations__ = {**{one.name: one.type for one in fields}, "return": None}
        return init

    def _make_repr(names):
        @dataclasses._recursive_repr  # as Python's own, and `reprlib` takes time to load
        def show(self):
            shown = ", ".join([f"{name}={getattr(self, name)!r}" for name in names])
            return f"{self.__class__.__qualname__}({shown})"

        return show

    def _make_eq(names):
        values = attrgetter(*names) if names else lambda _: ()

        def equals(self, other):
            if other.__class__ is self.__class__:
                return values(self) == values(other)
            return NotImplemented

        return equals

    def _make_hash(names):
        def hash_fields(self):
            return hash(tuple([getattr(self, name) for name in names]))

        return hash_fields

    def _refuse_changes(cls, names):
        def set_other(self, name, value):
            if type(self) is cls or name in names:
                raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
            super(cls, self).__setattr__(name, value)

        def delete_other(self, name):
            if type(self) is cls or name in names:
                raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
            super(cls, self).__delattr__(name)

        return {"__setattr__": set_other, "__delattr__": delete_other}

    def _get_state(self):
        return [getattr(self, one.name) for one in dataclasses.fields(self)]

    def _set_state(self, state):
        for one, value in zip(dataclasses.fields(self), state, strict=True):
            object.__setattr__(self, one.name, value)
