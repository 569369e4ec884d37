// The text to translate. A text area cannot colour its words, so a mirror lies behind it: the same text with the same
// layout, whose words are elements.

import { languageTag, overlap, units } from './text.js';

/** Keys that move the cursor and change nothing. */
const MOVES = new Set(['ArrowLeft', 'ArrowRight', 'ArrowUp', 'ArrowDown', 'Home', 'End', 'PageUp', 'PageDown']);

export class Source {
  /** `changed()` is called after an edit, `pointed(unit or null)` when a word is pointed at. */
  constructor({ changed, pointed }) {
    this.area = document.getElementById('text');
    this.mirror = document.getElementById('mirror');
    this.pointed = pointed;
    this.active = null;
    this.units = [];
    this.sentences = [];
    this.area.addEventListener('input', () => {
      this.forget();
      changed();
    });
    this.area.addEventListener('pointermove', (event) => {
      if (event.pointerType !== 'touch') this.point(this.under(event));
    });
    this.area.addEventListener('pointerleave', () => this.point(null));
    this.area.addEventListener('blur', () => this.point(null));
    this.area.addEventListener('click', () => this.point(this.atCursor()));
    this.area.addEventListener('keyup', (event) => {
      if (MOVES.has(event.key)) this.point(this.atCursor());
    });
  }

  get text() {
    return this.area.value;
  }

  set text(value) {
    this.area.value = value;
    this.forget();
  }

  /** Shows the text without words, until its sentences are known. */
  forget() {
    this.units = [];
    this.sentences = [];
    this.active = null;
    this.mirror.replaceChildren(this.text + '\n');
  }

  /** Makes the words of sentences elements. A sentence has `source`, `at` (its position) and maybe `sourceTokens`. */
  show(sentences) {
    this.sentences = sentences;
    const pieces = [];
    const text = this.text;
    let end = 0;
    this.units = [];
    for (const sentence of sentences) {
      if (sentence.at === null) continue;
      const group = document.createElement('span');
      group.className = 'sentence';
      let inside = 0;
      for (const { start, end: stop } of units(sentence.source, sentence.sourceTokens)) {
        const element = document.createElement('span');
        element.className = 'word';
        element.textContent = sentence.source.slice(start, stop);
        group.append(sentence.source.slice(inside, start), element);
        inside = stop;
        const unit = { start: sentence.at + start, end: sentence.at + stop, text: element.textContent, element };
        element.unit = unit;
        this.units.push(unit);
      }
      group.append(sentence.source.slice(inside));
      pieces.push(text.slice(end, sentence.at), group);
      end = sentence.at + sentence.source.length;
    }
    // A newline at the end has a line of its own in a text area, but not in the mirror.
    this.mirror.replaceChildren(...pieces, text.slice(end) + '\n');
    this.active = null;
  }

  /** Divides a sentence into tokens, if that changes its words. */
  refine(sentence) {
    const range = { start: sentence.at, end: sentence.at + sentence.source.length };
    if (sentence.at !== null && units(sentence.source, sentence.sourceTokens).length !== this.within(range).length) {
      this.show(this.sentences);
    }
  }

  /** The words that lie in a range, at least in part. */
  within(range) {
    return this.units.filter((unit) => overlap(unit, range) > 0);
  }

  under({ clientX, clientY }) {
    const below = document.elementsFromPoint(clientX, clientY);
    return below.find((element) => element.unit && this.mirror.contains(element))?.unit ?? null;
  }

  atCursor() {
    const { selectionStart: start, selectionEnd: end } = this.area;
    if (start !== end) return null;
    return this.units.find((unit) => unit.start <= start && start <= unit.end) ?? null;
  }

  point(unit) {
    if (unit === this.active) return;
    this.active = unit;
    this.pointed(unit);
  }

  setLanguage(language) {
    this.area.lang = this.mirror.lang = languageTag(language);
  }
}
