// All connectors.

import { h } from "./dom.js";
import { bytes, count, doing, number, rate, seconds } from "./format.js";

export const linkOf = (name, tab = "") => `#/connector/${encodeURIComponent(name)}${tab && `/${tab}`}`;

export function badge(connector) {
  const [kind, text] = doing(connector);
  return h("span", { class: `badge ${kind}` }, text);
}

/** What an operator must know about a connector now. */
export function warnings(connector) {
  const found = [];
  if (connector.error) found.push(["bad", connector.error]);
  else if (connector.activity === "blocked" && connector.waits) found.push(["bad", connector.waits]);
  else if (connector.activity === "blocked")
    found.push(["warn", `Reading waits for ${connector.sink}, which is slower than the server.`]);
  if (connector.rejected_configuration)
    found.push(["warn", `The changed configuration is not used: ${connector.rejected_configuration}`]);
  if (connector.binlog_runway?.warning) found.push(["warn", connector.binlog_runway.warning]);
  if (connector.second_writer)
    found.push(["warn", "Another program stores positions for this connector: stop one of the two."]);
  found.push(...doubts(connector.proof));
  for (const problem of connector.snapshot_problems ?? []) found.push(["warn", problem]);
  return found;
}

/** What `rowtide verify` has found that is not equal. */
function doubts(proof) {
  if (!proof) return [];
  const named = (outcome) => proof.tables.filter((one) => one.outcome === outcome);
  const found = [];
  if (proof.error) found.push(["warn", `The last round of rowtide verify failed: ${proof.error}`]);
  if (proof.different)
    found.push([
      "bad",
      `rowtide verify found differences in ${count(proof.different, "table")}: ${named("different")
        .map((one) => `${one.table} (${number(one.differences)})`)
        .join(", ")}`,
    ]);
  for (const one of named("undecided"))
    found.push(["warn", `rowtide verify could not compare ${one.table}: ${one.reason}`]);
  return found;
}

export function connectorsView({ view, can }) {
  const names = Object.keys(view.connectors).sort();
  const states = names.map((name) => doing(view.connectors[name])[0]);
  const bad = states.filter((kind) => kind === "bad").length;
  return h(
    "section",
    { key: "connectors" },
    h(
      "div",
      { class: "heading" },
      h("h1", {}, "Connectors"),
      h(
        "p",
        { class: "summary" },
        `${names.length} in all`,
        bad > 0 && [", ", h("strong", { class: "bad" }, `${bad} with problems`)],
      ),
      view.editable && can("edit") && h("a", { class: "button strong", href: "#/new" }, "New connector"),
    ),
    names.length
      ? list(view, names)
      : h("p", { class: "note" }, view.editable ? "There are no connectors yet." : "No connector runs here."),
  );
}

function list(view, names) {
  const columns = ["Connector", "State", ...(view.fleet ? ["Worker"] : []), "Lag", "Not read", "Records", "Data"];
  return h(
    "table",
    { class: "rows" },
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        columns.map((name, at) => h("th", { scope: "col", class: at > columns.length - 5 ? "number" : null }, name)),
      ),
    ),
    names.map((name) => row(view, name, columns.length)),
  );
}

function row(view, name, width) {
  const one = view.connectors[name];
  const snapshot = one.snapshot && one.snapshot.tables_finished < one.snapshot.tables;
  const cell = (label, value) => h("td", { class: "number", "data-label": label }, value);
  return h(
    "tbody",
    { key: name },
    h(
      "tr",
      {},
      h("th", { scope: "row" }, h("a", { href: linkOf(name) }, name), h("small", {}, one.flavor ?? "")),
      h(
        "td",
        { "data-label": "State" },
        badge(one),
        snapshot && h("small", {}, `snapshot: ${one.snapshot.tables_finished} of ${one.snapshot.tables} tables`),
      ),
      view.fleet && h("td", { class: "whole", "data-label": "Worker" }, one.worker ?? "–"),
      cell("Lag", seconds(one.lag?.seconds)),
      cell("Not read", bytes(one.lag?.bytes)),
      cell("Records", rate(one.records_per_second)),
      cell(
        "Data",
        one.bytes_per_second === undefined || one.bytes_per_second === null ? "–" : `${bytes(one.bytes_per_second)}/s`,
      ),
    ),
    warnings(one).map(([kind, text]) =>
      h("tr", { class: "why" }, h("td", { colspan: width }, h("p", { class: `trace ${kind}` }, text))),
    ),
  );
}
