// Pictures of the last hour.

import { h } from "./dom.js";
import { clock } from "./format.js";

const WIDTH = 640;
const HEIGHT = 120;
const HOUR = 3600;

/**
 * Draw values over the last hour.
 * @param {string} title what is shown
 * @param {number} end the time at the right end, in seconds
 * @param {Array<{name: string, style: string, values: Array<[number, ?number]>}>} series values by time; with
 *     `stacked`, they are areas on top of each other
 * @param {(value: number) => string} text how a value is written
 * @param {{stacked?: boolean, top?: number}} options the upper end of the axis if it does not follow from the values
 */
export function chart(title, end, series, text, { stacked = false, top = null } = {}) {
  const known = series.flatMap((one) => one.values.map(([, value]) => value)).filter((value) => value !== null);
  const highest = top ?? niceTop(Math.max(0, ...known));
  const x = (at) => ((at - end + HOUR) / HOUR) * WIDTH;
  const y = (value) => HEIGHT - (Math.min(value, highest) / highest) * HEIGHT;
  const last = series.map((one) => one.values.findLast(([, value]) => value !== null)?.[1]);
  const now = series
    .map((one, at) => `${one.name} ${last[at] === undefined ? "not known" : text(last[at])}`)
    .join(", ");
  const floor = new Map();
  const shapes = series
    .flatMap((one) =>
      runs(one.values).map((run) => {
        const upper = run.map(([at, value]) => [x(at), y((stacked ? (floor.get(at) ?? 0) : 0) + value)]);
        const lower = run.map(([at]) => [x(at), y(stacked ? (floor.get(at) ?? 0) : 0)]).reverse();
        if (stacked) for (const [at, value] of run) floor.set(at, (floor.get(at) ?? 0) + value);
        const area = h("path", { class: `area ${one.style}`, d: `M${join([...upper, ...lower])}Z` });
        return stacked ? [area] : [area, h("path", { class: `line ${one.style}`, d: `M${join(upper)}` })];
      }),
    )
    .flat();
  const point = (event) => {
    const { left, width } = event.currentTarget.getBoundingClientRect();
    const at = end - HOUR * (1 - (event.clientX - left) / width);
    const near = series[0].values.reduce(
      (best, [time]) => (Math.abs(time - at) < Math.abs(best - at) ? time : best),
      Infinity,
    );
    const known = series.map((one) => [one.name, one.values.find(([time]) => time === near)?.[1] ?? null]);
    event.currentTarget.querySelector(".under").textContent =
      `${clock(near)}  ${known.map(([name, value]) => `${name} ${value === null ? "–" : text(value)}`).join("  ")}`;
  };
  const clear = (event) => {
    event.currentTarget.querySelector(".under").textContent = "";
  };
  const times = [60, 45, 30, 15].map((minutes) => h("span", {}, `−${minutes} min`));
  return h(
    "figure",
    { class: "chart", key: title },
    h(
      "figcaption",
      {},
      h("strong", {}, title),
      h(
        "span",
        { class: "legend" },
        series.map((one, at) =>
          h(
            "span",
            {},
            h("i", { class: one.style, "aria-hidden": "true" }),
            `${one.name} `,
            h("b", {}, last[at] === undefined ? "–" : text(last[at])),
          ),
        ),
      ),
    ),
    h(
      "div",
      { class: "plot", onpointermove: point, onpointerleave: clear },
      h("span", { class: "under", "data-own": true, "aria-hidden": "true" }),
      h("span", { class: "top", "aria-hidden": "true" }, text(highest)),
      h(
        "svg",
        {
          viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
          preserveAspectRatio: "none",
          role: "img",
          "aria-label": `${title}, over the last hour. Now: ${now}`,
        },
        [0.25, 0.5, 0.75].map((part) =>
          h("line", { class: "grid", x1: 0, x2: WIDTH, y1: HEIGHT * part, y2: HEIGHT * part }),
        ),
        shapes,
      ),
    ),
    h("div", { class: "times", "aria-hidden": "true" }, times, h("span", {}, end ? clock(end) : "now")),
  );
}

/** Split values at those that are not known. */
function runs(values) {
  const found = [[]];
  for (const [at, value] of values) {
    if (value === null) found.push([]);
    else found.at(-1).push([at, value]);
  }
  return found.filter((run) => run.length);
}

const join = (points) => points.map(([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`).join("L");

function niceTop(value) {
  if (!value) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].find((step) => step * power >= value) * power;
}
