// The page: the log-in, the way between views, and the events that keep them up to date.

import { ask, events, isLoggedIn, logIn, logOut, Refused } from "./api.js";
import { draw, h, keep } from "./dom.js";
import { connectorView } from "./connector.js";
import { connectorsView } from "./connectors.js";
import { newConnector } from "./configuration.js";
import { fleetView } from "./fleet.js";
import { levelsView } from "./levels.js";

const RETRY_MS = 2000;
const ROLES = ["read", "operate", "edit"];

/** What all views know. `view` is what the worker has sent last; `details` is what the current one has asked for. */
const state = {
  view: null,
  route: [],
  details: {},
  problem: null,
  can: (role) => ROLES.indexOf(state.view?.user.role) >= ROLES.indexOf(role),
  forms: new Map(),
  /** A form that keeps what is typed into it, made when it is first shown on the current view. */
  form(name, make) {
    if (!this.forms.has(name)) this.forms.set(name, keep(make()));
    return this.forms.get(name);
  },
  redraw,
  /** Ask for news now, after something was changed. */
  renew: () => stop?.abort(),
};

let stop = null;

const VIEWS = {
  "": connectorsView,
  connectors: connectorsView,
  connector: connectorView,
  new: (shared) => shared.form("new", () => newConnector(shared)),
  fleet: fleetView,
  levels: levelsView,
};

function redraw() {
  const main = document.getElementById("main");
  const [kind = ""] = state.route;
  draw(document.getElementById("top"), header(kind));
  if (state.problem?.status === 401) draw(main, state.form("login", loginForm));
  else if (state.view === null)
    draw(main, state.problem ? notice(state.problem) : h("p", { class: "note" }, "Connecting…"));
  else draw(main, state.problem && notice(state.problem), (VIEWS[kind] ?? unknown)(state));
}

const notice = (problem) => h("p", { class: "note bad", role: "alert", key: "problem" }, problem.message);
const unknown = () => h("p", { class: "note" }, "There is no such page. ", h("a", { href: "#/" }, "All connectors"));

function header(kind) {
  const link = (name, text) =>
    h(
      "a",
      { href: `#/${name}`, "aria-current": kind === name || (kind.startsWith("connector") && !name) ? "page" : null },
      text,
    );
  const { view } = state;
  return [
    h(
      "a",
      { class: "brand", href: "#/", "aria-label": "rowtide, all connectors" },
      h("img", { src: "/page/icon.svg", alt: "", width: 26, height: 26 }),
      "rowtide",
    ),
    h(
      "nav",
      { "aria-label": "Views" },
      link("", "Connectors"),
      link("fleet", view?.fleet ? "Fleet" : "Worker"),
      link("levels", "Log levels"),
    ),
    h(
      "p",
      { class: "who" },
      h(
        "span",
        { class: state.problem || !view ? "live off" : "live", title: "Whether the page is up to date" },
        state.problem || !view ? "not live" : "live",
      ),
      view && h("span", {}, `${view.user.name} · may ${view.user.role}`),
      isLoggedIn() && h("button", { class: "quiet", type: "button", onclick: leave }, "Log out"),
    ),
  ];
}

function leave() {
  logOut();
  location.reload();
}

function loginForm() {
  const problem = h("p", { class: "bad", role: "alert" });
  const user = h("input", { id: "user", autocomplete: "username", "aria-describedby": "user-help" });
  const secret = h("input", { id: "secret", type: "password", autocomplete: "current-password", required: true });
  const enter = h("button", { class: "strong" }, "Log in");
  return h(
    "form",
    {
      class: "card login",
      onsubmit: async (event) => {
        event.preventDefault();
        enter.disabled = true;
        logIn(user.value.trim(), secret.value);
        try {
          await ask("GET", "/page/worker");
          location.reload();
        } catch (failure) {
          logOut();
          problem.textContent = failure.message;
          enter.disabled = false;
        }
      },
    },
    h("h1", {}, "Log in"),
    h("label", { for: "user" }, "User"),
    user,
    h("small", { id: "user-help" }, "Leave it empty to log in with a token."),
    h("label", { for: "secret" }, "Password or token"),
    secret,
    problem,
    enter,
  );
}

/** Keep the view up to date, for as long as the page is visible. */
async function follow() {
  for (;;) {
    if (document.hidden)
      await new Promise((shown) => document.addEventListener("visibilitychange", shown, { once: true }));
    const current = (stop = new AbortController());
    const onHidden = () => document.hidden && current.abort();
    document.addEventListener("visibilitychange", onHidden);
    try {
      await events(
        "/page/events",
        (view) => {
          state.problem = null;
          if (view !== null) state.view = view;
          redraw();
        },
        current.signal,
      );
    } catch (failure) {
      if (!current.signal.aborted)
        state.problem = failure instanceof Refused ? failure : new Refused(0, "The worker does not answer.");
      redraw();
      if (state.problem?.status === 401) return;
    } finally {
      document.removeEventListener("visibilitychange", onHidden);
    }
    if (!current.signal.aborted) await new Promise((later) => setTimeout(later, RETRY_MS));
  }
}

function navigate() {
  if (location.hash === "#main") return;
  const route = location.hash.replace(/^#\/?/, "").split("/").map(decode);
  const former = state.route.slice(0, 2).join("/");
  state.route = route;
  state.forms.clear();
  state.details = {};
  document.title = route[1] ? `${route[1]} · rowtide` : "rowtide";
  redraw();
  if (former && former !== route.slice(0, 2).join("/")) document.getElementById("main").focus();
}

function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

addEventListener("hashchange", navigate);
navigate();
follow();
