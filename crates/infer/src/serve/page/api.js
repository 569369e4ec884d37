// Requests to the server that this page comes from.

/** A refusal of the server, or a server that does not answer (status 0). */
export class ServerError extends Error {
  constructor(status, message, hint, retryAfter) {
    super(prose(message));
    this.status = status;
    this.hint = hint && prose(hint);
    this.retryAfter = retryAfter;
  }

  /** Whether the same request may succeed later. */
  get passes() {
    return this.status === 0 || this.status === 408 || this.status === 503;
  }
}

/** The server's messages begin in lower case and have no full stop, as in a terminal. */
function prose(message) {
  const text = message.charAt(0).toUpperCase() + message.slice(1);
  return /[.!?…]$/.test(text) ? text : `${text}.`;
}

const KEY = 'attend.key';
let key = '';
try {
  key = sessionStorage.getItem(KEY) ?? '';
} catch {
  // Without storage, the key is kept until the page is closed.
}

export function apiKey() {
  return key;
}

export function setApiKey(value) {
  key = value.trim();
  try {
    sessionStorage.setItem(KEY, key);
  } catch {
    // As above.
  }
}

export function wasCancelled(error) {
  return error.name === 'AbortError';
}

/** Waits, unless the signal is aborted before. */
export function sleep(milliseconds, signal) {
  return new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer);
      reject(new DOMException('cancelled', 'AbortError'));
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', stop);
      resolve();
    }, milliseconds);
    if (signal?.aborted) stop();
    signal?.addEventListener('abort', stop, { once: true });
  });
}

async function once(path, body, signal) {
  const headers = {};
  if (body) headers['Content-Type'] = 'application/json';
  if (key) headers.Authorization = `Bearer ${key}`;
  let response, answer;
  try {
    response = await fetch(path, {
      method: body ? 'POST' : 'GET',
      headers,
      body: body && JSON.stringify(body),
      signal,
    });
    answer = await response.text();
  } catch (error) {
    if (wasCancelled(error)) throw error;
    throw new ServerError(0, 'The server does not answer.', 'Is it still running? This page tries again by itself.');
  }
  let json = null;
  try {
    json = JSON.parse(answer);
  } catch {
    // A proxy may answer with a page of its own.
  }
  if (response.ok && json) return json;
  const message = json?.error ?? `The server answered with status ${response.status}.`;
  throw new ServerError(response.status, message, json?.hint, Number(response.headers.get('Retry-After')) || 0);
}

/**
 * Sends a request. While the server is busy (503), it is repeated up to `patience` times with growing pauses;
 * `waiting` is called with each pause in seconds.
 */
export async function request(path, body, { signal, patience = 3, waiting = () => {} } = {}) {
  for (let attempt = 0; ; attempt++) {
    try {
      return await once(path, body, signal);
    } catch (error) {
      if (error.status !== 503 || attempt >= patience) throw error;
      const seconds = Math.min(30, Math.max(error.retryAfter, 0.5 * 2 ** attempt));
      waiting(seconds);
      await sleep(seconds * 1000, signal);
    }
  }
}

export const models = () => request('/v1/models');
export const translate = (body, options) => request('/v1/translate', body, options);
export const alternatives = (body, options) => request('/v1/alternatives', body, options);
