// The configuration of a connector: every property with its help, checked while it is typed.

import { ask, pathOf } from "./api.js";
import { confirmed, h, say } from "./dom.js";
import { count } from "./format.js";

const CLASSES = ["io.debezium.connector.mysql.MySqlConnector", "io.debezium.connector.mariadb.MariaDbConnector"];
const FIRST = [
  "database.hostname",
  "database.port",
  "database.user",
  "database.password",
  "database.server.id",
  "topic.prefix",
  "database.include.list",
  "schema.history.internal.kafka.topic",
];
const CLASS = "connector.class";
const CHECK_MS = 700;
const OWN = "Other properties";

const withCode = (text) => text.split("`").map((part, at) => (at % 2 ? h("code", {}, part) : part));

/** The form for a connector that does not exist yet. */
export function newConnector(shared) {
  const values = new Map([[CLASS, CLASSES[0]], ...FIRST.map((name) => [name, ""])]);
  return h("div", {}, h("div", { class: "heading" }, h("h1", {}, "New connector")), editor(shared, null, values));
}

/** The form for the configuration of a connector, loaded when it is shown. */
export function configurationForm(shared, name) {
  const box = h("div", {}, h("p", { class: "note" }, "Loading…"));
  ask("GET", pathOf(name, "config")).then(
    (found) => box.replaceChildren(editor(shared, name, new Map(Object.entries(found)))),
    (failure) => box.replaceChildren(h("p", { class: "note bad" }, failure.message)),
  );
  return box;
}

function editor(shared, name, stored) {
  const editable = shared.view.editable && shared.can("edit");
  const values = new Map(stored);
  values.delete("name");
  const rows = new Map();
  let known = new Map();
  let checking = null;
  let latest = 0;
  let problems = [];
  let drawn = 0;

  const list = h("div", { class: "properties" });
  const summary = h("p", { class: "summary", role: "status" });
  const names = h("datalist", { id: "known" });
  const added = h("input", {
    id: "added",
    list: "known",
    autocomplete: "off",
    spellcheck: "false",
    placeholder: "snapshot.mode",
  });
  const title = h("input", {
    id: "connector-name",
    required: true,
    autocomplete: "off",
    pattern: "[^\\/]+",
    oninput: () => checkSoon(),
  });
  const first = h(
    "select",
    { id: "first" },
    ["RUNNING", "PAUSED", "STOPPED"].map((state) => h("option", { value: state }, state.toLowerCase())),
  );
  const save = h("button", { class: "strong" }, name === null ? "Create" : "Save");

  const given = () => Object.fromEntries([...values].filter(([, text]) => text !== ""));
  const connector = () => name ?? title.value.trim();
  const changed = () =>
    [...new Set([...values.keys(), ...stored.keys()])]
      .filter((one) => one !== "name" && (values.get(one) ?? "") !== (stored.get(one) ?? ""))
      .sort();

  async function load() {
    const kind = values.get(CLASS) || (shared.view.connectors[name]?.flavor === "mariadb" ? CLASSES[1] : CLASSES[0]);
    try {
      const found = await ask("GET", `/connector-plugins/${encodeURIComponent(kind)}/config`);
      known = new Map(found.map((one) => [one.name, one]));
      names.replaceChildren(...found.map((one) => h("option", { value: one.name }, one.group)));
    } catch (failure) {
      say(failure.message, true);
    }
    show();
    if (editable && name !== null) check();
  }

  function show() {
    rows.clear();
    const groups = new Map();
    for (const one of values.keys()) {
      const group = known.get(one)?.group ?? OWN;
      groups.set(group, [...(groups.get(group) ?? []), one]);
    }
    const order = [...new Set([...[...known.values()].map((one) => one.group), OWN])].filter((group) =>
      groups.has(group),
    );
    list.replaceChildren(
      ...order.map((group) => h("fieldset", {}, h("legend", {}, group), groups.get(group).map(row))),
    );
    if (problems.length) mark(problems, count(problems.length, "problem"));
  }

  function row(one) {
    const about = known.get(one);
    const id = `property-${++drawn}`;
    const errors = h("p", { class: "bad", id: `${id}-errors` });
    const help = h(
      "small",
      { id: `${id}-help` },
      withCode(about?.documentation ?? ""),
      about?.default_value ? ` Default: ${about.default_value}` : "",
    );
    const attributes = { id, "aria-describedby": `${id}-help ${id}-errors`, spellcheck: "false", autocomplete: "off" };
    const input = control(one, about, attributes);
    const set = () => {
      values.set(one, input.value);
      if (one === CLASS) load();
      checkSoon();
    };
    input.oninput = set;
    const remove =
      editable &&
      h(
        "button",
        {
          type: "button",
          class: "quiet",
          "aria-label": `Remove ${one}`,
          onclick: () => {
            values.delete(one);
            show();
            checkSoon();
            added.focus();
          },
        },
        "×",
      );
    rows.set(one, { input, errors });
    return h(
      "div",
      { class: "property" },
      h("label", { for: id }, one, about?.required && h("small", {}, "required")),
      h("div", { class: "entry" }, input, remove),
      help,
      errors,
    );
  }

  function control(one, about, attributes) {
    const text = values.get(one) ?? "";
    if (!editable) return h("input", { ...attributes, value: text, readonly: true });
    const choices =
      about?.recommended ?? (about?.type === "BOOLEAN" ? ["true", "false"] : one === CLASS ? CLASSES : null);
    if (choices)
      return h(
        "select",
        attributes,
        [...new Set([text, ...choices])].map((choice) =>
          h("option", { value: choice, selected: choice === text }, choice || "default"),
        ),
      );
    const isNumber = about?.type === "INT" || about?.type === "LONG";
    return h("input", {
      ...attributes,
      value: text,
      inputmode: isNumber ? "numeric" : null,
      type: about?.type === "PASSWORD" ? "password" : "text",
      placeholder: about?.default_value ?? "",
    });
  }

  function checkSoon() {
    clearTimeout(checking);
    if (editable) checking = setTimeout(check, CHECK_MS);
  }

  /** Ask the worker what is wrong. It also connects to the database, if nothing else is wrong. */
  async function check() {
    const own = ++latest;
    const kind = values.get(CLASS) || CLASSES[0];
    summary.textContent = "Checking…";
    try {
      const found = await ask("PUT", `/connector-plugins/${encodeURIComponent(kind)}/config/validate`, {
        ...given(),
        [CLASS]: kind,
        name: connector(),
      });
      if (own !== latest) return;
      for (const { definition, value } of found.configs) {
        const about = known.get(definition.name);
        if (about && value.recommended_values.length && !about.recommended) {
          about.recommended = value.recommended_values;
          replace(definition.name);
        }
      }
      const wrong = found.configs.flatMap(({ value }) => value.errors.map((text) => [value.name, text]));
      mark(
        wrong,
        wrong.length
          ? count(wrong.length, "problem")
          : "The worker finds nothing wrong, and can log in to the database.",
      );
    } catch (failure) {
      if (own === latest) summary.textContent = failure.message;
    }
  }

  /** Draw a property again, with its choices, unless somebody types into it. */
  function replace(one) {
    const old = rows.get(one)?.input;
    if (old && old !== document.activeElement) old.closest(".property").replaceWith(row(one));
  }

  function mark(found, text) {
    problems = found;
    for (const { input, errors } of rows.values()) {
      errors.textContent = "";
      input.removeAttribute("aria-invalid");
    }
    const elsewhere = [];
    for (const [one, problem] of found) {
      const place = rows.get(one);
      if (place === undefined) elsewhere.push(`${one}: ${problem}`);
      else {
        place.errors.textContent = [place.errors.textContent, problem].filter(Boolean).join(" ");
        place.input.setAttribute("aria-invalid", "true");
      }
    }
    summary.textContent = [text, ...elsewhere].join("\n");
    summary.classList.toggle("bad", found.length > 0);
  }

  async function store(event) {
    event.preventDefault();
    clearTimeout(checking);
    latest++;
    const differing = changed();
    if (name !== null && !differing.length) return void (summary.textContent = "Nothing is changed.");
    if (
      name !== null &&
      !(await confirmed(
        `Change ${name}?`,
        `Changed: ${differing.join(", ")}. The connector starts again at its position.`,
        "Change",
      ))
    )
      return;
    try {
      if (name === null) {
        await ask("POST", "/connectors", { name: connector(), config: given(), initial_state: first.value });
        location.hash = `#/connector/${encodeURIComponent(connector())}`;
        return void say(`${connector()} is created.`);
      }
      await ask("PUT", pathOf(name, "config"), given());
      say(`The configuration of ${name} is changed.`);
      stored = new Map(Object.entries(await ask("GET", pathOf(name, "config"))));
      mark([], "The configuration is stored.");
    } catch (failure) {
      const [head, ...lines] = failure.message.split("\n");
      mark(
        lines.map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 2)]),
        head,
      );
      summary.classList.add("bad");
    }
  }

  const add = () => {
    const one = added.value.trim();
    if (!one || one === "name") return;
    if (!values.has(one)) {
      values.set(one, "");
      show();
    }
    added.value = "";
    rows.get(one).input.focus();
  };
  added.onchange = add;
  added.onkeydown = (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    add();
  };
  load();
  return h(
    "form",
    { onsubmit: store, autocomplete: "off" },
    !editable &&
      h(
        "p",
        { class: "note" },
        shared.view.editable
          ? "Users with the role edit can change it."
          : "The configuration is in a file of the worker. Change the file, and restart the connector: a restart reads it again.",
      ),
    name === null &&
      h(
        "div",
        { class: "card inline" },
        h("div", {}, h("label", { for: "connector-name" }, "Name"), title),
        h("div", {}, h("label", { for: "first" }, "First state"), first),
      ),
    list,
    editable &&
      h(
        "div",
        { class: "property add" },
        h("label", { for: "added" }, "Add a property"),
        added,
        names,
        h("small", {}, "Begin to type its name, and choose it with Enter."),
      ),
    editable && h("div", { class: "save" }, summary, save),
  );
}
