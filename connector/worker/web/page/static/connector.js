// One connector: what it does, and the tabs for everything else about it.

import { ask, pathOf } from "./api.js";
import { chart } from "./chart.js";
import { configurationForm } from "./configuration.js";
import { badge, linkOf, warnings } from "./connectors.js";
import { confirmed, h, say } from "./dom.js";
import { bytes, moment, number, position, rate, seconds, short } from "./format.js";
import { offsetsForm } from "./offsets.js";
import { signalForm, signalsView } from "./signals.js";
import { structureForm } from "./structure.js";

const TABS = {
  "": "Overview",
  tables: "Tables",
  configuration: "Configuration",
  position: "Position",
  signals: "Signals",
  structure: "Structure",
};
const HISTORY_MS = 15000;

export function connectorView(shared) {
  const {
    view,
    route: [, name, tab = ""],
  } = shared;
  const one = view.connectors[name];
  if (one === undefined)
    return h("p", { class: "note" }, `There is no connector ${name}. `, h("a", { href: "#/" }, "All connectors"));
  return h(
    "section",
    { key: `connector ${name}` },
    h("div", { class: "heading" }, h("h1", {}, name), badge(one), actions(shared, name, one)),
    warnings(one).map(([kind, text]) => h("p", { class: `note trace ${kind}` }, text)),
    h(
      "nav",
      { class: "tabs", "aria-label": "About this connector" },
      Object.entries(TABS).map(([path, text]) =>
        h("a", { href: linkOf(name, path), "aria-current": path === tab ? "page" : null }, text),
      ),
    ),
    h("div", { key: `tab ${tab}` }, (CONTENT[tab] ?? overview)(shared, name, one)),
  );
}

const CONTENT = {
  "": overview,
  tables: tablesView,
  configuration: (shared, name) => shared.form("configuration", () => configurationForm(shared, name)),
  position: (shared, name, one) =>
    shared.form(`position ${one.state} ${shared.can("edit")}`, () => offsetsForm(shared, name, one)),
  signals: (shared, name) => [
    shared.can("operate") &&
      shared.form("signal", () =>
        signalForm(name, () => refresh(shared, "notifications", pathOf(name, "notifications"), 0)),
      ),
    signalsView(shared, name),
  ],
  structure: (shared, name) => shared.form("structure", () => structureForm(name)),
};

function actions(shared, name, one) {
  if (!shared.can("operate")) return null;
  const button = (text, act, style = null) => h("button", { type: "button", class: style, onclick: act }, text);
  const held = one.state === "PAUSED" || one.state === "STOPPED";
  const order = (method, path, done, question) => async () => {
    if (question && !(await confirmed(question[0], question[1], question[2]))) return;
    try {
      await ask(method, path);
      say(done);
      shared.renew();
    } catch (failure) {
      say(failure.message, true);
    }
  };
  return h(
    "div",
    { class: "actions" },
    held
      ? button("Resume", order("PUT", pathOf(name, "resume"), `${name} is resumed.`), "strong")
      : button("Pause", order("PUT", pathOf(name, "pause"), `${name} is paused.`)),
    !held && button("Restart", order("POST", `${pathOf(name, "restart")}`, `${name} restarts.`)),
    one.state !== "STOPPED" &&
      button(
        "Stop",
        order("PUT", pathOf(name, "stop"), `${name} is stopped.`, [
          `Stop ${name}?`,
          "It reads nothing until it is resumed. While it is stopped, its position can be changed.",
          "Stop",
        ]),
      ),
    shared.view.editable &&
      shared.can("edit") &&
      button(
        "Delete",
        async () => {
          await order("DELETE", pathOf(name), `${name} is deleted.`, [
            `Delete ${name}?`,
            "Its configuration is forgotten. Its position and its topics stay.",
            "Delete",
          ])();
          shared.redraw();
        },
        "danger",
      ),
  );
}

/** Ask for something again if it is older than some milliseconds, and draw the view when it comes. */
export function refresh(shared, what, path, everyMs) {
  const known = shared.details[what] ?? { at: -Infinity, value: null, problem: null, asked: false };
  const { details } = shared;
  details[what] = known;
  if (known.asked || performance.now() - known.at < everyMs) return known;
  known.asked = true;
  ask("GET", path)
    .then(
      (value) => Object.assign(known, { value, problem: null }),
      (failure) => Object.assign(known, { problem: failure.message }),
    )
    .then(() => {
      Object.assign(known, { asked: false, at: performance.now() });
      if (details === shared.details) shared.redraw();
    });
  return known;
}

const pagePath = (name, what) => `/page/connectors/${encodeURIComponent(name)}/${what}`;

function overview(shared, name, one) {
  const { value } = refresh(shared, "history", pagePath(name, "history"), HISTORY_MS);
  const fact = (label, text, title = null) => h("div", {}, h("dt", {}, label), h("dd", { title }, text));
  const { binlog_runway: runway, queue } = one;
  return [
    h(
      "dl",
      { class: "facts" },
      fact("Lag", seconds(one.lag?.seconds)),
      fact("Not read", bytes(one.lag?.bytes)),
      fact("Records", rate(one.records_per_second)),
      fact("In flight", queue ? `${short(queue.records_in_flight)} records` : "–"),
      fact("Stored position", position(one.position?.stored), one.position?.stored?.gtids ?? null),
      fact("Read position", position(one.position?.read)),
      fact(
        "Server keeps it for",
        runway ? (runway.hours === null ? "ever" : seconds(runway.hours * 3600)) : "not known",
        runway?.reason,
      ),
      fact("Running for", seconds(one.uptime_seconds)),
      fact("Restarts", number(one.restarts)),
      fact(
        "Last proof",
        one.proof ? proofText(one.proof) : "none",
        one.proof?.proved ? `all tables are proved since ${moment(one.proof.proved)}` : null,
      ),
      shared.view.fleet && fact("Worker", one.worker ?? "none"),
      shared.view.fleet && one.label && fact("Label", one.label),
      shared.view.fleet && one.moved_ms && fact("Moved", moment(one.moved_ms / 1000)),
    ),
    pictures(value?.points ?? [], one.sink ?? "Kafka"),
  ];
}

/** What `rowtide verify` has found, and when. */
function proofText(proof) {
  const counts = ["equal", "undecided", "different"]
    .filter((outcome) => proof[outcome])
    .map((outcome) => `${number(proof[outcome])} ${outcome}`);
  return `${counts.join(", ") || "no tables"}, ${moment(proof.begun)}`;
}

function pictures(points, sink) {
  if (points.length < 2)
    return h(
      "p",
      { class: "note" },
      "The charts of the last hour appear half a minute after the connector starts here.",
    );
  const end = points.at(-1)[0];
  const column = (index) => points.map((point) => [point[0], point[index]]);
  const percent = (value) => `${Math.round(value * 100)} %`;
  return h(
    "div",
    { class: "charts" },
    chart("Throughput", end, [{ name: "records", style: "one", values: column(1) }], rate),
    chart("Lag", end, [{ name: "lag", style: "three", values: column(3) }], seconds),
    chart(
      "Where the time goes",
      end,
      [
        { name: sink, style: "three", values: column(6) },
        { name: "decoding", style: "one", values: column(5) },
        { name: "server", style: "two", values: column(4) },
      ],
      percent,
      { stacked: true, top: 1 },
    ),
  );
}

function tablesView(shared, name) {
  const { value, problem } = refresh(shared, "tables", pagePath(name, "tables"), 1000);
  if (problem) return h("p", { class: "note bad" }, problem);
  if (value === null) return h("p", { class: "note" }, "Loading…");
  const rows = Object.entries(value.tables);
  const topics = Object.entries(value.topics);
  const snapshots = Object.entries(value.snapshots);
  const signal = (type, kind) => async () => {
    try {
      await ask("POST", pathOf(name, "signals"), { type, data: { type: kind } });
      say(type === "pause-snapshot" ? "The snapshot pauses." : "The snapshot is resumed.");
    } catch (failure) {
      say(failure.message, true);
    }
  };
  const control =
    shared.can("operate") &&
    shared.view.connectors[name].state === "RUNNING" &&
    snapshots.map(([kind, state]) =>
      state === "paused"
        ? h(
            "button",
            { type: "button", class: "strong", key: kind, onclick: signal("resume-snapshot", kind) },
            `Resume the ${kind} snapshot`,
          )
        : h(
            "button",
            { type: "button", key: kind, onclick: signal("pause-snapshot", kind) },
            `Pause the ${kind} snapshot`,
          ),
    );
  return [
    h(
      "div",
      { class: "heading" },
      h("h2", {}, "Snapshot"),
      snapshots.map(([kind, state]) =>
        h("span", { class: `badge ${state === "paused" ? "warn" : "busy"}` }, `${kind}: ${state}`),
      ),
      h("div", { class: "actions" }, control),
    ),
    rows.length
      ? h(
          "table",
          { class: "rows" },
          h(
            "thead",
            {},
            h(
              "tr",
              {},
              ["Table", "State", "Progress", "Rows", "Rows/s"].map((text, at) =>
                h("th", { scope: "col", class: at > 2 ? "number" : null }, text),
              ),
            ),
          ),
          h(
            "tbody",
            {},
            rows.map(([table, one]) =>
              h(
                "tr",
                { key: table },
                h("th", { scope: "row" }, table, one.problem && h("p", { class: "trace warn" }, one.problem)),
                h("td", { "data-label": "State" }, one.state.toLowerCase()),
                h("td", { "data-label": "Progress" }, progress(table, one)),
                h(
                  "td",
                  { class: "number", "data-label": "Rows" },
                  one.estimated_rows && one.state !== "FINISHED"
                    ? `${number(one.rows)} of about ${short(one.estimated_rows)}`
                    : number(one.rows),
                ),
                h(
                  "td",
                  { class: "number", "data-label": "Rows/s" },
                  one.rows_per_second ? short(one.rows_per_second) : "–",
                ),
              ),
            ),
          ),
        )
      : h("p", { class: "note" }, "No table has been read since the start."),
    h("h2", {}, "Topics"),
    topics.length
      ? h(
          "table",
          { class: "rows" },
          h(
            "thead",
            {},
            h(
              "tr",
              {},
              ["Topic", "Records since the start", "Data"].map((text, at) =>
                h("th", { scope: "col", class: at ? "number" : null }, text),
              ),
            ),
          ),
          h(
            "tbody",
            {},
            topics.map(([topic, one]) =>
              h(
                "tr",
                { key: topic },
                h("th", { scope: "row" }, topic),
                h("td", { class: "number", "data-label": "Records" }, number(one.records)),
                h("td", { class: "number", "data-label": "Data" }, bytes(one.bytes)),
              ),
            ),
          ),
        )
      : h("p", { class: "note" }, "No record has been sent since the start."),
  ];
}

function progress(table, one) {
  const part =
    one.state === "FINISHED"
      ? 1
      : one.state === "WAITING"
        ? 0
        : one.estimated_rows
          ? Math.min(one.rows / one.estimated_rows, 0.99)
          : null;
  return h("progress", {
    max: 1,
    value: part === null ? undefined : part,
    "aria-label": `Rows of ${table} that are read`,
  });
}
