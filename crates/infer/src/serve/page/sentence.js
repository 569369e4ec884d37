// A sentence and its translation: what the server says about it is asked for when it is needed, and kept.

import * as api from './api.js';
import { Attention } from './attention.js';
import { units } from './text.js';

/** How many alternatives are asked for. */
const COUNT = 6;

export class Sentence {
  /** `at` is the position of `source` in the whole text, or null; `body` holds model and options for requests. */
  constructor({ source, text, at, body }) {
    this.source = source;
    this.text = text;
    this.at = at;
    this.body = { ...body, sentences: false };
    this.prefix = null; // the beginning that was chosen
    this.attention = undefined; // an Attention, or null if there is none
    this.pending = null;
  }

  /** The units of the translation: those of the model once its tokens are known. */
  units() {
    return units(this.text, this.attention?.target);
  }

  get sourceTokens() {
    return this.attention?.source;
  }

  /** Fetches the attention once. Resolves to true if it is new. */
  async fetchAttention() {
    if (this.attention !== undefined) return false;
    this.pending ??= this.ask(this.text).finally(() => (this.pending = null));
    await this.pending;
    return this.attention !== undefined;
  }

  /**
   * Attention comes with a translation, which must be the one that is shown. After a choice, or with sampling, it is
   * that only if its beginning is given: the words up to the chosen one, or all of them.
   */
  async ask(text) {
    let refusal = null;
    for (const prefix of new Set([this.prefix, text])) {
      const body = { ...this.body, text: this.source, attention: true };
      if (prefix !== null) body.prefix = prefix;
      let answer;
      try {
        answer = await api.translate(body);
      } catch (error) {
        if (error.passes || error.status === 401 || error.status === 403) throw error;
        refusal = error; // such as a prefix that cannot be combined with an option
        continue;
      }
      const sentence = answer.translations[0].sentences[0];
      if (text !== this.text) return; // a choice was made meanwhile
      if (sentence?.text === text) {
        this.attention = sentence.attention ? new Attention(sentence.attention, this.source, text) : null;
        return;
      }
    }
    if (refusal && text === this.text) this.refusal = refusal;
    this.attention = null;
  }

  /** Other words for the place of a unit. */
  async words(unit, signal) {
    const body = { model: this.body.model, text: this.source, prefix: this.before(unit), count: COUNT };
    return (await api.alternatives(body, { signal })).alternatives;
  }

  before(unit) {
    return this.text.slice(0, unit.start).trimEnd();
  }

  /** Other translations of the whole sentence. */
  async others(beam, limit, signal) {
    const count = Math.min(COUNT, limit);
    const decode = { ...this.body.decode, beam: Math.max(count, this.body.decode?.beam ?? beam) };
    const body = { ...this.body, text: this.source, n_best: count, decode };
    const answer = await api.translate(body, { signal });
    const found = answer.translations[0].sentences[0]?.n_best ?? [];
    return found.filter(({ text }, i) => found.findIndex((other) => other.text === text) === i);
  }

  /** Takes another translation; `prefix` is the part of it that was chosen, or null for all of it. */
  choose(text, prefix) {
    if (text === this.text) return;
    this.text = text;
    this.prefix = prefix ?? text;
    this.attention = undefined;
    this.refusal = null;
  }
}
