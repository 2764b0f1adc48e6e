// Log levels of the worker that answers, or of all workers of a fleet.

import { ask } from "./api.js";
import { refresh } from "./connector.js";
import { h, say } from "./dom.js";

const LEVELS = ["DEBUG", "INFO", "WARN", "ERROR", "FATAL"];
const FIXED = "rowtide.audit";

export function levelsView(shared) {
  const { value, problem } = refresh(shared, "levels", "/admin/loggers", 5000);
  const { fleet } = shared.view;
  const set = async (name, level) => {
    try {
      await ask("PUT", `/admin/loggers/${encodeURIComponent(name)}${fleet ? "?scope=cluster" : ""}`, { level });
      say(`${name} logs ${level} now${fleet ? " on all workers" : ""}.`);
    } catch (failure) {
      say(failure.message, true);
    }
    shared.details.levels.at = -Infinity;
    shared.redraw();
  };
  return h(
    "section",
    { key: "levels" },
    h(
      "div",
      { class: "heading" },
      h("h1", {}, "Log levels"),
      h(
        "p",
        { class: "summary" },
        fleet
          ? "A change applies to all workers of the fleet, until they restart."
          : "A change lasts until the worker restarts.",
      ),
    ),
    problem && h("p", { class: "note bad" }, problem),
    value &&
      h(
        "table",
        { class: "rows" },
        h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Logger"), h("th", { scope: "col" }, "Level"))),
        h(
          "tbody",
          {},
          Object.entries(value).map(([name, { level }]) =>
            h(
              "tr",
              { key: `${name} ${level}` },
              h("th", { scope: "row" }, name),
              h(
                "td",
                { "data-label": "Level" },
                shared.can("operate") && name !== FIXED
                  ? h(
                      "select",
                      { "aria-label": `Level of ${name}`, onchange: (event) => set(name, event.target.value) },
                      [...new Set([level, ...LEVELS])].map((one) =>
                        h("option", { value: one, selected: one === level }, one),
                      ),
                    )
                  : level,
              ),
            ),
          ),
        ),
      ),
    shared.can("operate") && shared.form("level", () => levelForm(set)),
  );
}

function levelForm(set) {
  const name = h("input", {
    id: "logger",
    required: true,
    placeholder: "rowtide.connector.source",
    autocomplete: "off",
  });
  const level = h(
    "select",
    { id: "level" },
    LEVELS.map((one) => h("option", { value: one }, one)),
  );
  return h(
    "form",
    {
      class: "card inline",
      onsubmit: (event) => {
        event.preventDefault();
        set(name.value.trim(), level.value);
      },
    },
    h("div", {}, h("label", { for: "logger" }, "Another logger"), name),
    h("div", {}, h("label", { for: "level" }, "Level"), level),
    h("button", {}, "Set"),
  );
}
