// The workers, and what each of them runs.

import { badge, linkOf } from "./connectors.js";
import { h } from "./dom.js";
import { bytes, count, moment, rate } from "./format.js";

export function fleetView({ view }) {
  const byWorker = new Map(view.workers.map((one) => [one.worker, []]));
  for (const [name, one] of Object.entries(view.connectors)) {
    const worker = view.fleet ? (one.worker ?? "") : null;
    byWorker.set(worker, [...(byWorker.get(worker) ?? []), [name, one]]);
  }
  const known = new Map(view.workers.map((one) => [one.worker, one]));
  return h(
    "section",
    { key: "fleet" },
    h(
      "div",
      { class: "heading" },
      h("h1", {}, view.fleet ? `Fleet ${view.fleet}` : "Worker"),
      h(
        "p",
        { class: "summary" },
        view.fleet
          ? `${count(view.workers.length, "worker")}, ${count(Object.keys(view.connectors).length, "connector")}`
          : `rowtide ${view.version}`,
      ),
    ),
    [...byWorker]
      .sort(([a], [b]) => String(a).localeCompare(String(b)))
      .map(([worker, connectors]) => machine(view, worker, known.get(worker), connectors)),
  );
}

function machine(view, worker, about, connectors) {
  const sum = (field) => connectors.reduce((total, [, one]) => total + (one[field] ?? 0), 0);
  const here = worker === view.worker;
  return h(
    "article",
    { class: "card", key: worker },
    h("h2", {}, view.fleet ? worker || "No worker" : "This worker", here && view.fleet && h("small", {}, "this one")),
    about?.problem && h("p", { class: "trace bad" }, about.problem),
    view.fleet &&
      worker &&
      !about &&
      h(
        "p",
        { class: "trace warn" },
        "It has left the fleet, and its connectors have not been reported by another worker yet.",
      ),
    about &&
      h(
        "p",
        { class: "summary" },
        [
          about.version && `rowtide ${about.version}`,
          view.fleet && (about.labels?.length ? `labels: ${about.labels.join(", ")}` : "no labels"),
          count(connectors.length, "connector"),
          `${rate(sum("records_per_second"))} records`,
          `${bytes(sum("bytes_per_second"))}/s`,
        ]
          .filter(Boolean)
          .join(" · "),
      ),
    connectors.length
      ? h(
          "table",
          { class: "rows" },
          h(
            "thead",
            {},
            h(
              "tr",
              {},
              ["Connector", "State", ...(view.fleet ? ["Label", "Load", "Moved"] : [])].map((text) =>
                h("th", { scope: "col" }, text),
              ),
            ),
          ),
          h(
            "tbody",
            {},
            connectors
              .sort(([a], [b]) => a.localeCompare(b))
              .map(([name, one]) =>
                h(
                  "tr",
                  { key: name },
                  h("th", { scope: "row" }, h("a", { href: linkOf(name) }, name)),
                  h("td", { "data-label": "State" }, badge(one)),
                  view.fleet && [
                    h("td", { "data-label": "Label" }, one.label ?? "–"),
                    h(
                      "td",
                      { "data-label": "Load" },
                      one.load === null || one.load === undefined ? "–" : `${bytes(one.load)}/s`,
                    ),
                    h("td", { "data-label": "Moved" }, one.moved_ms ? moment(one.moved_ms / 1000) : "never"),
                  ],
                ),
              ),
          ),
        )
      : h("p", { class: "note" }, "It runs no connector."),
  );
}
