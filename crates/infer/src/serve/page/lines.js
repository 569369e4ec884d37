// Translates the lines of a text. Lines do not depend on each other, so that while somebody types, only the lines that
// have changed are sent.

import * as api from './api.js';
import { endOfBatch } from './text.js';

/** At most this many lines are kept. */
const KEPT = 4000;

export class Lines {
  constructor() {
    this.forRequest = '';
    this.known = new Map();
  }

  /** The answers for all lines of a text, in order. `body` holds model and options. */
  async translate(text, body, limits, signal) {
    // Tags may span lines, and samples depend on the number of a line: such a text is sent as it is.
    const whole = body.format === 'html' || body.decode?.sampling;
    const lines = whole ? [text] : text.split('\n');
    const request = JSON.stringify(body);
    if (request !== this.forRequest || this.known.size > KEPT) {
      this.forRequest = request;
      this.known = new Map();
    }
    const known = this.known;
    const missing = [...new Set(lines)].filter((line) => line.trim() !== '' && !known.has(line));
    for (let start = 0; start < missing.length; ) {
      const end = endOfBatch(missing, start, limits);
      const texts = missing.slice(start, end);
      const answer = await api.translate({ ...body, text: texts }, { signal });
      answer.translations.forEach((translation, i) => known.set(texts[i], translation));
      start = end;
    }
    const blank = { text: '', sentences: [], missing_terms: [] };
    return lines.map((line) => known.get(line) ?? blank);
  }
}
