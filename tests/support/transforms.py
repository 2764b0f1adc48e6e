"""Chains of transforms from the properties of a connector."""

from collections.abc import Mapping

from rowtide.envelope.transforms import Plugin, TransformChain, transform_chain


def chain_from_properties(properties: Mapping[str, str]) -> TransformChain:
    """Build the transforms of a connector's properties; other properties are ignored."""
    return transform_chain(_plugins(properties, "transforms"), _plugins(properties, "predicates"))


def _plugins(properties: Mapping[str, str], kind: str) -> list[Plugin]:
    plugins = []
    for name in dict.fromkeys(item.strip() for item in properties.get(kind, "").split(",") if item.strip()):
        prefix = f"{kind}.{name}."
        options = {key.removeprefix(prefix): value for key, value in properties.items() if key.startswith(prefix)}
        plugins.append(Plugin(name, options.pop("type", "").strip(), options))
    return plugins
