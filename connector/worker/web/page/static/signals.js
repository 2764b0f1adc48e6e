// Signals to a connector, and what it has answered.

import { ask, pathOf } from "./api.js";
import { refresh } from "./connector.js";
import { h, say } from "./dom.js";
import { moment } from "./format.js";

const COLLECTIONS = ["data-collections", "Tables, separated by commas", "shop.orders, shop.customers"];
const TYPE = ["type", "Kind of snapshot", ["incremental", "blocking"]];

/** The signals with a form: their fields by name, label, and choices or an example. */
const KINDS = {
  "execute-snapshot": ["Read tables again", [COLLECTIONS, TYPE]],
  "pause-snapshot": ["Pause snapshots", [TYPE]],
  "resume-snapshot": ["Resume snapshots", [TYPE]],
  "stop-snapshot": ["Stop snapshots", [COLLECTIONS, TYPE]],
  log: ["Write to the log", [["message", "Message", "the position is {}"]]],
  other: [
    "Another signal",
    [
      ["signal", "Type of the signal", "set-binlog-position"],
      ["json", "Data as JSON", "{}"],
    ],
  ],
};

export function signalForm(name, onSent) {
  const kind = h(
    "select",
    { id: "signal-kind" },
    Object.entries(KINDS).map(([value, [text]]) => h("option", { value }, text)),
  );
  const fields = h("div", { class: "fields" });
  const problem = h("p", { class: "bad", role: "alert" });
  const show = () => fields.replaceChildren(...KINDS[kind.value][1].map(field));
  kind.onchange = show;
  show();
  return h(
    "form",
    {
      class: "card",
      onsubmit: async (event) => {
        event.preventDefault();
        problem.textContent = "";
        try {
          const answer = await ask("POST", pathOf(name, "signals"), content(kind.value, new FormData(event.target)));
          say(`The signal ${answer.id} is sent. It is kept in memory until its effect is stored.`);
          onSent();
        } catch (failure) {
          problem.textContent = failure.message;
        }
      },
    },
    h("h2", {}, "Send a signal"),
    h("label", { for: "signal-kind" }, "Signal"),
    kind,
    fields,
    problem,
    h("button", { class: "strong" }, "Send"),
  );
}

function field([name, label, example]) {
  const id = `signal-${name}`;
  const input = Array.isArray(example)
    ? h(
        "select",
        { id, name },
        example.map((value) => h("option", { value }, value)),
      )
    : h(name === "json" ? "textarea" : "input", {
        id,
        name,
        placeholder: example,
        required: name !== "json",
        rows: name === "json" ? 4 : null,
      });
  return h("div", {}, h("label", { for: id }, label), input);
}

function content(kind, form) {
  if (kind === "other") {
    try {
      return { type: form.get("signal").trim(), data: JSON.parse(form.get("json") || "{}") };
    } catch (failure) {
      throw new Error(`The data is not JSON: ${failure.message}`);
    }
  }
  const data = Object.fromEntries(form);
  if (data["data-collections"])
    data["data-collections"] = data["data-collections"]
      .split(",")
      .map((table) => table.trim())
      .filter(Boolean);
  return { type: kind, data };
}

export function signalsView(shared, name) {
  const { value, problem } = refresh(shared, "notifications", pathOf(name, "notifications"), 1500);
  if (problem) return h("p", { class: "note bad" }, problem);
  return h(
    "div",
    {},
    h("h2", {}, "Notifications"),
    value?.length
      ? h(
          "table",
          { class: "rows" },
          h(
            "thead",
            {},
            h(
              "tr",
              {},
              ["Time", "About", "Type", "Details"].map((text) => h("th", { scope: "col" }, text)),
            ),
          ),
          h(
            "tbody",
            {},
            value
              .toReversed()
              .map((one, at) =>
                h(
                  "tr",
                  { key: `${one.id} ${value.length - at}` },
                  h("td", { "data-label": "Time" }, one.timestamp ? moment(one.timestamp / 1000) : "–"),
                  h("td", { "data-label": "About" }, one.aggregate_type ?? "–"),
                  h("td", { "data-label": "Type" }, one.type ?? "–"),
                  h(
                    "td",
                    { "data-label": "Details" },
                    h("code", { class: "wrap" }, JSON.stringify(one.additional_data ?? {})),
                  ),
                ),
              ),
          ),
        )
      : h("p", { class: "note" }, "There are none since the start."),
  );
}
