// Elements, and how a view that was drawn becomes the next one. Texts are always text: nothing is parsed as markup.

const SVG = "http://www.w3.org/2000/svg";
const SVG_TAGS = new Set(["svg", "path", "line", "polyline", "rect", "g", "text", "title"]);

/**
 * Make an element.
 * @param {string} tag its name
 * @param {object} attributes its attributes; `onclick` and other functions are handlers, `false` and `null` are omitted,
 *     and `key` tells elements of a list apart. An element with `data-own` keeps what it contains when it is redrawn
 * @param {...(Node|string|number|null|Array)} children what it contains
 */
export function h(tag, attributes = {}, ...children) {
  const element = SVG_TAGS.has(tag) ? document.createElementNS(SVG, tag) : document.createElement(tag);
  element.handlers = {};
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === false || value === null || value === undefined) continue;
    if (typeof value === "function") element[name] = element.handlers[name] = value;
    else if (name === "key") element.key = value;
    else if (name === "value") element.value = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...present(children).map((child) => (child.kept ? placeOf(child) : child)));
  return element;
}

const present = (children) =>
  children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false);

/** What stands for a kept element in a new view, so that the element stays where it is until the view is drawn. */
function placeOf(kept) {
  const place = document.createComment("");
  place.keeps = kept;
  return place;
}

/** Give an element the children of a newly drawn view. Those that are the same stay, with their focus and scroll. */
export function draw(parent, ...children) {
  const wanted = present(children);
  wanted.forEach((child, index) => {
    const next = child.keeps ?? (child instanceof Node ? child : document.createTextNode(String(child)));
    const old = parent.childNodes[index];
    if (old === next) return;
    if (old !== undefined && isSame(old, next)) return update(old, next);
    if (old === undefined) parent.append(next);
    else old.replaceWith(next);
    settle(next);
  });
  while (parent.childNodes.length > wanted.length) parent.lastChild.remove();
}

/** Put kept elements at their places in a part of the view that is new. */
function settle(part) {
  const places = document.createTreeWalker(part, NodeFilter.SHOW_COMMENT);
  const found = [];
  while (places.nextNode()) if (places.currentNode.keeps) found.push(places.currentNode);
  for (const place of found) place.replaceWith(place.keeps);
}

function isSame(old, next) {
  return old.nodeName === next.nodeName && old.key === next.key && !old.kept && !next.kept;
}

function update(old, next) {
  if (old.nodeType === Node.TEXT_NODE) {
    if (old.nodeValue !== next.nodeValue) old.nodeValue = next.nodeValue;
    return;
  }
  for (const { name } of [...old.attributes]) {
    if (!next.hasAttribute(name) && !(name === "open" && old.nodeName === "DETAILS")) old.removeAttribute(name);
  }
  for (const { name, value } of next.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  for (const name of Object.keys(old.handlers ?? {})) if (!(name in next.handlers)) old[name] = null;
  Object.assign(old, next.handlers);
  old.handlers = next.handlers;
  if (!old.hasAttribute("data-own")) draw(old, ...next.childNodes);
}

/** Mark an element that keeps its own state, such as a form: it is never redrawn, only replaced by another one. */
export function keep(element) {
  element.kept = true;
  return element;
}

/** Show a message for some seconds; errors stay until they are closed. */
export function say(text, isError = false) {
  const close = h("button", { class: "quiet", type: "button", "aria-label": "Close the message" }, "×");
  const message = h("p", { class: isError ? "message error" : "message" }, h("span", {}, text), close);
  close.onclick = () => message.remove();
  document.getElementById("messages").append(message);
  if (!isError) setTimeout(() => message.remove(), 5000);
}

/** Ask before something that cannot be taken back; resolves to whether it shall be done. */
export function confirmed(title, text, action) {
  return new Promise((resolve) => {
    const cancel = h("button", { type: "button" }, "Cancel");
    const act = h("button", { type: "button", class: "strong" }, action);
    const heading = h("h2", { id: "asked" }, title);
    const dialog = h(
      "dialog",
      { "aria-labelledby": "asked" },
      heading,
      h("p", {}, text),
      h("p", { class: "actions" }, cancel, act),
    );
    let answer = false;
    cancel.onclick = () => dialog.close();
    act.onclick = () => {
      answer = true;
      dialog.close();
    };
    dialog.onclose = () => {
      dialog.remove();
      resolve(answer);
    };
    document.body.append(dialog);
    dialog.showModal();
  });
}
