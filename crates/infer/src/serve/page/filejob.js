// Translates the lines of a file in batches. It can be stopped and continued at any line.

import * as api from './api.js';
import { characters, endOfBatch } from './text.js';

/** Batches are small, so that progress is seen and little is lost if one fails. */
const LINES = 32;
const CHARACTERS = 4000;
/** How often a busy server is asked again before it counts as an error. */
const PATIENCE = 12;
/** Refusals that have nothing to do with the text. */
const FOR_ALL = new Set([0, 401, 403, 404, 408, 503]);

/** Reads a text file: its lines without their ends, or an error with a message for people. */
export async function readLines(file) {
  let text;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(await file.arrayBuffer());
  } catch (error) {
    if (error instanceof TypeError) {
      throw new Error(`${file.name} is not text in UTF-8. Save it as UTF-8 and choose it again.`);
    }
    throw new Error(`${file.name} cannot be read: ${error.message}`);
  }
  if (text.includes('\0')) throw new Error(`${file.name} is not a text file.`);
  const ending = text.includes('\r\n') ? '\r\n' : '\n';
  const lines = text.split(/\r?\n/);
  // What follows the last line end is a line only if there is something.
  const closed = lines.at(-1) === '';
  if (closed) lines.pop();
  return { lines, ending, closed };
}

/** An error of one line. */
export class LineError extends Error {
  constructor(line, cause) {
    super(cause.message);
    this.line = line;
    this.hint = cause.hint;
    this.passes = FOR_ALL.has(cause.status);
  }
}

export class FileJob {
  /** `progress()` is called after each batch, `waiting(seconds)` while the server is busy. */
  constructor({ lines, ending, closed }, body, limits, { progress, waiting }) {
    this.lines = lines;
    this.ending = ending;
    this.closed = closed;
    this.body = body;
    this.limits = limits;
    this.batch = {
      ...limits,
      texts: Math.min(LINES, limits.texts),
      characters: Math.min(CHARACTERS, limits.characters),
    };
    this.progress = progress;
    this.waiting = waiting;
    this.results = [];
  }

  get done() {
    return this.results.length;
  }

  get finished() {
    return this.done === this.lines.length;
  }

  /** Translates from the first line that has no translation. Throws a LineError if a line is refused. */
  async run(signal) {
    while (!this.finished) {
      const end = endOfBatch(this.lines, this.done, this.batch);
      try {
        await this.send(end, signal);
      } catch (error) {
        if (api.wasCancelled(error)) throw error;
        if (end - this.done === 1 || FOR_ALL.has(error.status)) throw new LineError(this.done + 1, error);
        // One line at a time, up to the one that is refused.
        while (this.done < end) {
          try {
            await this.send(this.done + 1, signal);
          } catch (single) {
            if (api.wasCancelled(single)) throw single;
            throw new LineError(this.done + 1, single);
          }
        }
      }
    }
  }

  async send(end, signal) {
    const texts = this.lines.slice(this.done, end);
    const length = characters(texts[0]);
    if (length > this.limits.characters) {
      throw new api.ServerError(413, `The line has ${length} characters, more than the server takes at once.`,
        `Split it into lines of at most ${this.limits.characters} characters.`);
    }
    let translations = texts.map(() => ({ text: '' }));
    if (texts.some((text) => text.trim() !== '')) {
      const options = { signal, patience: PATIENCE, waiting: this.waiting };
      ({ translations } = await api.translate({ ...this.body, text: texts }, options));
    }
    // A line stays a line, whatever the model writes.
    for (const { text } of translations) this.results.push(text.replace(/[\r\n]+/g, ' '));
    this.progress();
  }

  /** Leaves a line without translation. */
  skip() {
    this.results.push('');
    this.progress();
  }

  /** What is translated so far. */
  blob() {
    const end = this.finished && !this.closed ? '' : this.ending;
    const text = this.done === 0 ? [] : [this.results.join(this.ending), end];
    return new Blob(text, { type: 'text/plain;charset=utf-8' });
  }
}
