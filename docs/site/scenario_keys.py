#!/usr/bin/env python3
"""Writes the page of all keys of scenario files from their JSON Schema:

    portwave schema | python3 docs/site/scenario_keys.py > docs/reference/scenario-keys.md

Types of parts have a page of their own (portwave list --markdown), and are left to it. That a value may be computed is
said once and not of every key. A key without a description is an error.
"""

import json
import re
import sys

HEAD = """# Keys of scenario files

<!-- generated: portwave schema | python3 docs/site/scenario_keys.py -->

Every key that a scenario file may have. This page is made from the program's own
[schema](scenario.schema.json) and is there to look something up; what the keys do is explained on
[scenario files](scenario.md). The parameters of parts are with the [types of parts](parts.md).

A key without a default may be left out unless it is required. Keys that are not listed are refused.
Values in `subsystems`, `couplings` and `signals.blocks` may also be [computed](#computed-values).
"""

COMPUTED = ("#/definitions/computed", "#/definitions/composed_text")
LINKS = {  # of definitions: what a value is called, and where it is explained
    "coupling": ("coupling", "couplings"), "signal": ("signal", "inputs"), "impedance": ("impedances", "impedances"),
    "matrix": ("matrix", "matrices"), "port": ("port", "ports-states-and-inputs-of-matrices"),
    "named": ("name", "ports-states-and-inputs-of-matrices"), "signal_name": ("signal", "what-a-block-takes"),
}


def plain(schema):
    """Without the alternatives that are computed values: what is left stands for itself."""
    if isinstance(schema, list):
        return [plain(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    schema = {key: plain(value) for key, value in schema.items()}
    if "anyOf" in schema:
        left = [each for each in schema.pop("anyOf") if each.get("$ref") not in COMPUTED]
        if len(left) > 1:
            return schema | {"anyOf": left}
        schema = left[0] | schema
    if len(schema.get("allOf", [])) == 1 and "$ref" in schema["allOf"][0]:
        schema |= schema.pop("allOf")[0]
    return schema


def digits(number):
    """1000000 -> 1 000 000, and 9e15 where there are many more."""
    if abs(number) >= 1e12:
        return re.sub(r"e\+?", "e", f"{number:.2g}")
    return f"{number:,}".replace(",", " ") if isinstance(number, int) else f"{number:.15g}"


def bounded(schema, word):
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is not None and high is not None:
        return f"{word}, {digits(low)} to {digits(high)}"
    signs = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}
    found = [f"{sign} {digits(schema[key])}" for key, sign in signs.items() if key in schema]
    return " ".join([word, " and ".join(found)]).strip()


def code(value):
    if isinstance(value, float) and abs(value) >= 1e12:
        return f"`{digits(value)}`"
    return f"`{json.dumps(value, ensure_ascii=False)}`"


def plural(value):
    return re.sub(r"^(text|number|object|integer)\b", r"\1s", value)


def list_of(schema):
    if "items" not in schema:
        return "array"
    items, few, many = schema.get("items", {}), schema.get("minItems", 0), schema.get("maxItems")
    if isinstance(items, list):
        return "[" + ", ".join(value_of(each) for each in items) + "]"
    inner = value_of(items)
    if few == many == 2 and inner.startswith(("number", "integer")):
        return f"[{inner.split(',')[0]}, {inner.split(',')[0]}]"
    if few == many:
        return f"array of {few} {inner if few == 1 else plural(inner)}"
    return f"array of {f'{few} or more ' if few > 1 else ''}{plural(inner)}"


def object_of(schema):
    if isinstance(schema.get("additionalProperties"), dict):
        inner = value_of(schema["additionalProperties"])
        return f"object of {inner}, by name" if ", or" in inner else f"object of {plural(inner)} by name"
    if "properties" not in schema:
        return "object"

    def told(key, value):
        unless = f"; {value['default']} unless given" if "default" in value else ""
        return f"`{key}` ({value_of(value)}{unless if key not in schema.get('required', []) else ''})"

    return "object of " + " and ".join(told(key, value) for key, value in schema["properties"].items())


def value_of(schema):
    """What a value may be, in words."""
    if "$ref" in schema:
        text, anchor = LINKS[schema["$ref"].split("/")[-1]]
        return f"[{text}](#{anchor})"
    if "const" in schema:
        return code(schema["const"])
    if "enum" in schema:
        return ", ".join(code(each) for each in schema["enum"])
    if "anyOf" in schema:
        return ", or ".join(value_of(each) for each in schema["anyOf"])
    if schema.get("not") == {"const": 0}:
        return "number, not 0"
    words = {"array": list_of, "object": object_of, "boolean": lambda _: "true or false", "string": lambda _: "text",
             "number": lambda each: bounded(each, "number"), "integer": lambda each: bounded(each, "integer")}
    return words[schema["type"]](schema)


def table(properties, required=(), links=None):
    """A row for each key."""
    rows = ["| key | value | default | meaning |", "|---|---|---|---|"]
    for key, schema in properties.items():
        meaning, value = schema.get("description", ""), value_of(schema)
        if not meaning and "const" not in schema:
            sys.exit(f"scenario_keys: the schema does not describe {key}")
        unit = re.search(r" \[([^\[\]]+)\](?=$|[;,])", meaning)
        if unit and re.match(r"number|integer", value):
            number, *words = value.split(", or ")
            value = ", or ".join([f"{number} [{unit.group(1)}]", *words])
            meaning = meaning[:unit.start()] + meaning[unit.end():]
        absent = re.search(r"(?:^|; )absent: ([^;]*)", meaning)
        default = "**required**" if key in required else code(schema["default"]) if "default" in schema else ""
        if absent and not default:
            default, meaning = absent.group(1), meaning.replace(absent.group(0), "")
        name = f"[`{key}`](#{links[key]})" if links and key in links else f"`{key}`"
        rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in [name, value, default, meaning]) + " |")
    return "\n".join(rows) + "\n\n"


def sentence(text):
    return (text[0].upper() + text[1:] if re.match(r"(a|[a-z]{2,})[ ,]", text) else text) + ".\n\n"


def by_kind(schema, level, common_title="", elsewhere=None, definition=""):
    """Keys that all kinds have, then a table for kinds that have the same keys. Kinds of `elsewhere` are described there."""
    kinds = {each["if"]["properties"]["kind"]["const"]: each["then"] for each in schema["allOf"]}
    first = next(iter(kinds.values()))["properties"]
    common = [key for key in first if key != "kind" and
              all(each["properties"].get(key) == first[key] for each in kinds.values())]
    out = ""
    if common:
        required = [key for key in common if all(key in each["required"] for each in kinds.values())]
        out += f"{common_title}\n\n" + table({key: first[key] for key in common}, required)
    laws = dict(piece.split(": ", 1) for piece in definition.split("; ") if ": " in piece and piece.split(": ")[0] in kinds)
    groups = {}
    for kind, each in kinds.items():
        own = {key: value for key, value in each["properties"].items() if key not in common + ["kind"]}
        alike = json.dumps([own, each.get("description")])
        groups.setdefault(alike, (own, each, []))[2].append(kind)
    for own, each, names in groups.values():
        if elsewhere and all(own == elsewhere.get(kind) for kind in names):
            continue
        out += f"{level} {', '.join(names)}\n\n"
        if "description" in each:
            out += sentence(each["description"])
        told = [f"`{kind}`: {laws[kind]}" if len(names) > 1 else laws[kind] for kind in names if kind in laws]
        out += sentence("; ".join(told)) if told else ""
        out += table(own, each.get("required", [])) if own else ""
        if "oneOf" in each:
            out += one_of(each)
    return out


def one_of(schema):
    return "Either " + ", or ".join(" and ".join(f"`{key}`" for key in each["required"]) for each in schema["oneOf"]) + ".\n\n"


def keys_of_methods(method):
    """Which keys go with which kind of method."""
    kinds = method["properties"]["kind"]["enum"]
    refused, needed = {kind: set() for kind in kinds}, {kind: set() for kind in kinds}
    for each in method["allOf"]:
        if "then" in each and "if" in each["then"]:  # of what has a kind
            each = each["then"]
        if "kind" not in each["if"].get("properties", {}):
            continue  # of what has none, which is one of these kinds
        condition = each["if"]["properties"]["kind"]
        is_one = "const" in condition
        for kind in [condition["const"]] if is_one else [kind for kind in kinds if kind not in condition["enum"]]:
            what = each["then" if is_one else "else"]
            refused[kind] |= {key for key, value in what.get("properties", {}).items() if value is False}
            needed[kind] |= set(what.get("required", []))
    rows = ["| kind | its keys |", "|---|---|"]
    for kind in kinds:
        own = [f"`{key}`" + (" (required)" if key in needed[kind] else "") for key in method["properties"]
               if key != "kind" and key not in refused[kind]]
        rows.append(f"| `{kind}` | {', '.join(own)} |")
    return "\n".join(rows) + "\n\n"


def told(schema, words, **kind):
    """The same key with a few words in place of all that it holds."""
    return {key: value for key, value in schema.items() if key in ("type", "default")} | kind | {"description": words}


def page(schema):
    whole, defined = plain(schema), plain(schema["definitions"])
    top = whole["properties"]
    objects = {"type": "array", "items": {"type": "object"}}
    file = top | {
        "time": told(top["time"], "step size and length"), "method": told(top["method"], "how the parts are coupled"),
        "signals": told(top["signals"], "sensors, controllers and references"),
        "events": told(objects, "quantities whose passage through a level is an event", **objects),
        "outputs": told(top["outputs"], "what is recorded"),
        "assemblies": told(top["assemblies"], "groups of parts that are used many times"),
        "subsystems": told(objects, "the parts", **objects),
        "couplings": told(objects, "how their ports are joined", **objects)}
    sections = {key: key for key in file if key in
                ("time", "assemblies", "subsystems", "couplings", "method", "signals", "events", "outputs")}
    step = top["time"]["properties"]["step"]["allOf"][0]["then"]
    time = top["time"]["properties"] | {"step": told({"type": "object"}, "how steps choose their size, in place of step_s")}
    part = defined["subsystem"]["properties"]
    part = part | {"type": told({"type": "string"}, "one of the [types of parts](parts.md)"),
                   "parameters": told(part["parameters"], "parameters of its type")}
    method = top["method"]["properties"]
    method = method | {"tank": told(method["tank"], "energy tank of each island, for the guard")}
    tank = top["method"]["properties"]["tank"]
    blocks = top["signals"]["properties"]["blocks"]["items"]
    signals = top["signals"]["properties"] | {"blocks": told(objects, "what is computed at each sample", **objects)}
    inputs, by_kinds = {}, next(each for each in defined["signal"]["anyOf"] if "allOf" in each)
    for each in by_kinds["allOf"]:
        own = each["then"]["properties"]
        if "$ref" in own.get("signal", {}):
            own["signal"]["description"] = defined["signal_name"]["description"]
        inputs[each["if"]["properties"]["kind"]["const"]] = {key: value for key, value in own.items() if key != "kind"}
    assembly = top["assemblies"]["additionalProperties"]
    inside = assembly["properties"] | {
        "description": told({"type": "string"}, "a text for people"),
        "subsystems": told(objects, "parts, and other assemblies in use", **objects),
        "couplings": told(objects, "couplings of these parts", **objects)}
    computed = {key: value for each in defined["computed"]["anyOf"] for key, value in each["properties"].items()}
    impedances = defined["impedance"]["description"]
    return "".join([
        HEAD, "\n## The file\n\n", table(file, whole["required"], sections),
        "## time\n\n", table(time, links={"step": "timestep"}), one_of(top["time"]),
        "### time.step\n\n", table(step["properties"], step["required"]),
        "## subsystems\n\nA part:\n\n", table(part, ["name", "type"], {"inputs": "inputs"}),
        "Or the use of an [assembly](#assemblies):\n\n", table(defined["use"]["properties"], defined["use"]["required"]),
        "### inputs\n\nThe signal of an external input: a number; the text of an expression in t [s], such as\n"
        "`\"5*sin(2*pi*t)\"`; or an object by its `kind`:\n\n", by_kind(by_kinds, "####"),
        "### Matrices\n\n", sentence(defined["matrix"]["description"]),
        "### Ports, states and inputs of matrices\n\nA port:\n\n",
        table(defined["port"]["properties"], defined["port"]["required"]),
        "A state or an input is a name, or an object of `name` and `unit`.\n\n",
        "## couplings\n\n",
        by_kind(defined["coupling"], "###", "Every coupling has `kind`, the keys of its kind, and",
                definition=defined["coupling"]["description"]),
        "## method\n\n", table(method, links={"impedance": "impedances", "tank": "methodtank"}),
        "Each kind has its own keys, and those of others are refused:\n\n", keys_of_methods(top["method"]),
        "### method.tank\n\n", table(tank["properties"]),
        "### Impedances\n\n", sentence(impedances.split(". fne")[0]),
        by_kind(defined["impedance"], "####", definition="fne" + impedances.split(". fne")[1]),
        "## signals\n\n", table(signals, links={"blocks": "blocks"}),
        "### Blocks\n\nThe kinds of [inputs](#inputs) that are functions of time are blocks too.\n\n",
        by_kind(blocks, "####", "Every block has `kind`, the keys of its kind, and", inputs),
        "### What a block takes\n\n", sentence(defined["signal_name"]["description"]),
        "## events\n\n", table(top["events"]["items"]["properties"], top["events"]["items"]["required"]),
        "## outputs\n\n", table(top["outputs"]["properties"]),
        "## assemblies\n\nAn assembly, by its name, has\n\n", table(inside, assembly["required"]),
        "## Computed values\n\nIn place of a value stands an object of one of\n\n", table(computed),
        "such as `{\"expression\": \"2*m\"}`. Names are also ", defined["composed_text"]["description"].split(",")[0],
        " in them, such as `cell_{i+1}`. See [assemblies and arrays](scenario.md#assemblies-and-arrays).\n"])


print(page(json.load(sys.stdin)), end="")
