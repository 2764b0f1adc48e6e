// Numbers, times and states as texts.

const UNITS = ["B", "kB", "MB", "GB", "TB", "PB"];
const NUMBER = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });
const SHORT = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

const isKnown = (value) => value !== null && value !== undefined;

export const NONE = "–";

export const number = (value) => (isKnown(value) ? NUMBER.format(value) : NONE);

/** A number that may be shortened, such as 1.2M. */
export const short = (value) => (isKnown(value) ? (value < 10000 ? NUMBER : SHORT).format(value) : NONE);

export const rate = (value) => (isKnown(value) ? `${short(value < 10 ? value : Math.round(value))}/s` : NONE);

export function bytes(value) {
  if (!isKnown(value)) return NONE;
  let at = 0;
  for (; value >= 1000 && at < UNITS.length - 1; at++) value /= 1000;
  return `${NUMBER.format(at ? value : Math.round(value))} ${UNITS[at]}`;
}

export function seconds(value) {
  if (!isKnown(value)) return NONE;
  if (value < 60) return `${NUMBER.format(value)} s`;
  if (value < 3600) return `${Math.floor(value / 60)} min ${Math.round(value % 60)} s`;
  if (value < 86400) return `${Math.floor(value / 3600)} h ${Math.round((value % 3600) / 60)} min`;
  return `${Math.floor(value / 86400)} d ${Math.round((value % 86400) / 3600)} h`;
}

export const clock = (epochSeconds) =>
  new Date(epochSeconds * 1000).toLocaleTimeString([], {
    hour: "2-digit",
    minute: "2-digit",
    second: "2-digit",
    hourCycle: "h23",
  });

export const moment = (epochSeconds) =>
  new Date(epochSeconds * 1000).toISOString().replace("T", " ").slice(0, 19) + " UTC";

export const count = (value, word) => `${number(value)} ${word}${value === 1 ? "" : "s"}`;

/** A position of a binlog on one line. */
export function position(at) {
  if (!at) return NONE;
  return at.file ? `${at.file}:${at.pos}` : (at.gtids ?? NONE);
}

const KINDS = {
  FAILED: "bad",
  RECONNECTING: "bad",
  RESTARTING: "warn",
  PAUSED: "off",
  STOPPED: "off",
  STOPPING: "off",
  UNASSIGNED: "warn",
  STANDBY: "off",
  SNAPSHOT: "busy",
  RECOVERING: "busy",
  STARTING: "busy",
  RUNNING: "good",
};

/** What a connector is doing, in a word, and its kind for the colour. */
export function doing(connector) {
  if (connector.activity === "blocked") return ["bad", `blocked by ${connector.sink}`];
  if (connector.state === "RUNNING" && connector.activity) return ["good", connector.activity];
  return [KINDS[connector.state] ?? "off", connector.state.toLowerCase()];
}
