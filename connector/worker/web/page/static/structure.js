// The structure of a table at a position, and how it differs from that at another one.

import { ask } from "./api.js";
import { h } from "./dom.js";
import { moment } from "./format.js";

const HELP = "A position (binlog.000042:1234), a GTID set, a time (2026-01-31T12:00:00Z), or end.";

export function structureForm(name) {
  const input = (id, label, attributes) => [
    h("label", { for: id }, label),
    h("input", { id, spellcheck: "false", autocomplete: "off", ...attributes }),
  ];
  const tables = h("datalist", { id: "tables" });
  const result = h("div", { "aria-live": "polite" });
  const form = h(
    "form",
    { class: "card inline" },
    h("div", {}, input("table", "Table", { list: "tables", placeholder: "shop.orders", required: true })),
    h("div", {}, input("at", "At", { value: "end", "aria-describedby": "at-help", required: true })),
    h("div", {}, input("before", "Compare with", { placeholder: "nothing", "aria-describedby": "at-help" })),
    h("button", { class: "strong" }, "Show"),
    h("small", { id: "at-help" }, HELP),
    tables,
  );
  const value = (id) => form.querySelector(`#${id}`).value.trim();
  const show = async (table, at, before) => {
    result.replaceChildren(h("p", { class: "note" }, "Reading the schema history…"));
    try {
      const query = new URLSearchParams({ at, ...(table && { table }), ...(before && { before }) });
      const found = await ask("GET", `/page/connectors/${encodeURIComponent(name)}/structure?${query}`);
      tables.replaceChildren(...found.tables.map((one) => h("option", { value: one })));
      if (table) result.replaceChildren(...described(table, at, before, found, compare));
      else result.replaceChildren(h("p", { class: "note" }, `${found.tables.length} tables are known.`));
    } catch (failure) {
      result.replaceChildren(h("p", { class: "note bad", role: "alert" }, failure.message));
    }
  };
  const compare = (at, before) => {
    form.querySelector("#at").value = at;
    form.querySelector("#before").value = before ?? "";
    show(value("table"), at, before);
  };
  form.onsubmit = (event) => {
    event.preventDefault();
    show(value("table"), value("at"), value("before"));
  };
  show("", "end", "");
  return h("div", {}, form, result);
}

function described(table, at, before, found, compare) {
  return [
    before &&
      h(
        "section",
        {},
        h("h2", {}, "Differences"),
        found.diff.length
          ? h(
              "pre",
              { tabindex: 0 },
              found.diff.map((line, index) =>
                h("span", { class: (index > 1 && { "+": "added", "-": "removed" }[line[0]]) || null }, line, "\n"),
              ),
            )
          : h("p", { class: "note" }, `The table is the same at ${before} and at ${at}.`),
      ),
    h(
      "section",
      {},
      h("h2", {}, `${table} at ${at}`),
      found.ddl === null
        ? h("p", { class: "note" }, "There is no such table at this position.")
        : [
            columns(found.columns.columns, found.columns.primary_key),
            h("details", {}, h("summary", {}, "As a statement"), h("pre", { tabindex: 0 }, found.ddl)),
          ],
    ),
    h(
      "section",
      {},
      h("h2", {}, "Changes"),
      h(
        "ol",
        { class: "changes" },
        found.changes
          .map((change, index) => {
            // A snapshot has several changes at one position.
            const earlier = found.changes.slice(0, index).findLast((one) => one.position !== change.position);
            return h(
              "li",
              {},
              h(
                "p",
                {},
                h("strong", {}, change.position || "snapshot"),
                change.ts_sec ? ` · ${moment(change.ts_sec)} ` : " ",
                change.position &&
                  h(
                    "button",
                    { type: "button", class: "quiet", onclick: () => compare(change.position, earlier?.position) },
                    earlier ? "Compare with the one before" : "Show",
                  ),
              ),
              h("pre", { tabindex: 0 }, change.ddl),
            );
          })
          .reverse(),
      ),
    ),
  ].filter(Boolean);
}

function columns(list, key) {
  return h(
    "table",
    { class: "rows" },
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        ["Column", "Type", "Null", "Default", "Character set", "Comment"].map((text) =>
          h("th", { scope: "col" }, text),
        ),
      ),
    ),
    h(
      "tbody",
      {},
      list.map((one) =>
        h(
          "tr",
          {},
          h("th", { scope: "row" }, one.name, key.includes(one.name) && h("small", {}, "key")),
          h("td", { "data-label": "Type" }, one.column_type),
          h("td", { "data-label": "Null" }, one.is_nullable.toLowerCase()),
          h("td", { "data-label": "Default" }, [one.column_default, one.extra].filter(Boolean).join(" ") || "–"),
          h("td", { "data-label": "Character set" }, one.collation ?? "–"),
          h("td", { "data-label": "Comment" }, one.comment || "–"),
        ),
      ),
    ),
  );
}
