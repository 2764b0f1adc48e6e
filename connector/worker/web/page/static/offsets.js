// The stored position of a connector, which can be changed while the connector is stopped.

import { ask, pathOf } from "./api.js";
import { confirmed, h, say } from "./dom.js";

export function offsetsForm(shared, name, { state }) {
  const editable = state === "STOPPED" && shared.can("edit");
  const problem = h("p", { class: "bad", role: "alert" });
  const text = h("textarea", {
    id: "offset",
    rows: 8,
    spellcheck: "false",
    readonly: !editable,
    "aria-describedby": "offset-help",
  });
  let partition = null;
  const load = async () => {
    try {
      const {
        offsets: [found],
      } = await ask("GET", pathOf(name, "offsets"));
      partition = found?.partition ?? { server: shared.view.connectors[name].topic_prefix };
      text.value = found ? JSON.stringify(found.offset, null, 2) : "";
      text.placeholder = "There is no stored position: the connector begins as configured.";
    } catch (failure) {
      problem.textContent = failure.message;
    }
  };
  const change = (method, body, question, done) => async () => {
    problem.textContent = "";
    try {
      const sent = body?.();
      if (!(await confirmed(...question))) return;
      await ask(method, pathOf(name, "offsets"), sent);
      say(done);
      await load();
    } catch (failure) {
      problem.textContent = failure.message;
    }
  };
  const given = () => {
    try {
      return { offsets: [{ partition, offset: JSON.parse(text.value) }] };
    } catch (failure) {
      throw new Error(`The position is not JSON: ${failure.message}`);
    }
  };
  load();
  const help = editable
    ? "A wrong position makes the connector skip or repeat changes. It must exist on the server."
    : shared.can("edit")
      ? "Stop the connector to change its position."
      : "Users with the role edit can change it while the connector is stopped.";
  return h(
    "div",
    { class: "card" },
    h("h2", {}, h("label", { for: "offset" }, "Stored position")),
    h("small", { id: "offset-help" }, help),
    text,
    problem,
    editable &&
      h(
        "p",
        { class: "actions" },
        h(
          "button",
          {
            type: "button",
            class: "strong",
            onclick: change(
              "PATCH",
              given,
              [`Change the position of ${name}?`, "The connector continues from there when it is resumed.", "Change"],
              "The position is changed.",
            ),
          },
          "Save",
        ),
        h(
          "button",
          {
            type: "button",
            class: "danger",
            onclick: change(
              "DELETE",
              null,
              [
                `Delete the position of ${name}?`,
                "The connector then begins as if it had never run, in most cases with a snapshot.",
                "Delete",
              ],
              "The position is deleted.",
            ),
          },
          "Delete the position",
        ),
      ),
    !editable && h("p", {}, h("button", { type: "button", onclick: load }, "Read again")),
  );
}
