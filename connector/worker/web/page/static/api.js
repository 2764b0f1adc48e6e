// Requests to the worker, with the log-in of the user, and the events that it sends.

const STORED = "rowtide.login"; // of this tab: other sites never send it, because it is not a cookie

export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

export const logIn = (user, secret) =>
  sessionStorage.setItem(STORED, user ? `Basic ${base64(`${user}:${secret}`)}` : `Bearer ${secret}`);
export const logOut = () => sessionStorage.removeItem(STORED);
export const isLoggedIn = () => sessionStorage.getItem(STORED) !== null;

const base64 = (text) => btoa(String.fromCharCode(...new TextEncoder().encode(text)));

/** Send a request; resolves to the JSON of the answer, or `null` if it has none. Throws `Refused` if it is not done. */
export async function ask(method, path, body) {
  const answer = await send(method, path, body);
  const text = await answer.text();
  return text ? JSON.parse(text) : null;
}

async function send(method, path, body, signal) {
  const headers = {};
  const login = sessionStorage.getItem(STORED);
  if (login !== null) headers.Authorization = login;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let answer;
  try {
    // Without credentials, the browser does not ask for a log-in itself, and uses none that it knows.
    answer = await fetch(path, {
      method,
      headers,
      body: JSON.stringify(body),
      signal,
      credentials: "omit",
      redirect: "error",
    });
  } catch (failure) {
    if (signal?.aborted) throw failure;
    throw new Refused(0, "The worker does not answer.");
  }
  if (answer.ok) return answer;
  const text = await answer.text();
  let message = text;
  try {
    message = JSON.parse(text).message ?? text;
  } catch {
    /* of a proxy, which has its own form */
  }
  throw new Refused(answer.status, message || `status ${answer.status}`);
}

/** The path of a resource of a connector. */
export const pathOf = (name, ...rest) => ["/connectors", encodeURIComponent(name), ...rest].join("/");

/** Receive server-sent events until they end; `EventSource` cannot send the log-in. */
export async function events(path, onEvent, signal) {
  const answer = await send("GET", path, undefined, signal);
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let rest = ""; ;) {
    const { value, done } = await reader.read();
    if (done) return;
    const parts = (rest + value).split("\n\n");
    rest = parts.pop();
    for (const part of parts) {
      const data = part.split("\n").find((line) => line.startsWith("data: "));
      onEvent(data === undefined ? null : JSON.parse(data.slice(6)));
    }
  }
}
