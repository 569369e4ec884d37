// The words of a translation: pointed at by mouse, touch or keyboard. One of them is in the order of the tab key; the
// arrow keys move between them.

import { languageTag } from './text.js';

export class Output {
  /** `pointed(word or null)` is called for hovering, focus and the first tap; `chosen(word)` for a click. */
  constructor(root, { pointed, chosen }) {
    this.root = root;
    this.words = [];
    this.groups = new Map();
    this.pointed = pointed;
    this.chosen = chosen;
    this.active = null;
    this.held = false; // while the menu of a word is open
    root.addEventListener('pointerover', (event) => {
      if (event.pointerType !== 'touch') this.point(wordOf(event));
    });
    root.addEventListener('pointerleave', (event) => {
      if (event.pointerType !== 'touch') this.point(wordOf({ target: document.activeElement }));
    });
    root.addEventListener('focusin', (event) => this.focused(wordOf(event)));
    root.addEventListener('focusout', () => this.point(null));
    root.addEventListener('pointerdown', (event) => {
      this.touched = event.pointerType === 'touch';
      this.before = this.active;
    });
    root.addEventListener('click', (event) => this.click(wordOf(event)));
    root.addEventListener('keydown', (event) => this.key(event));
  }

  setLanguage(code, name) {
    this.root.lang = languageTag(code);
    this.root.setAttribute('aria-label', name ? `Translation into ${name}` : 'Translation');
  }

  /** Parts are texts and sentences, in order. */
  show(parts) {
    this.groups = new Map();
    this.active = null;
    this.root.replaceChildren(
      ...parts.map((part) => {
        if (typeof part === 'string') return part;
        const group = document.createElement('span');
        group.className = 'sentence';
        this.groups.set(part, group);
        this.fill(group, part);
        return group;
      }),
    );
    this.collect(0);
  }

  fill(group, sentence) {
    const pieces = [];
    let end = 0;
    for (const unit of sentence.units()) {
      const element = document.createElement('span');
      element.className = 'word';
      element.setAttribute('role', 'button');
      element.setAttribute('aria-haspopup', 'menu');
      element.setAttribute('aria-expanded', 'false');
      element.tabIndex = -1;
      element.textContent = sentence.text.slice(unit.start, unit.end);
      element.word = { sentence, unit, text: element.textContent, element };
      pieces.push(sentence.text.slice(end, unit.start), element);
      end = unit.end;
    }
    group.replaceChildren(...pieces, sentence.text.slice(end));
  }

  collect(current) {
    this.words = [...this.root.querySelectorAll('.word')].map((element) => element.word);
    const word = this.words[Math.min(current, this.words.length - 1)];
    if (word) word.element.tabIndex = 0;
  }

  /** Builds the words of a sentence again. Focus and pointer stay at the same place of the text. */
  refresh(sentence) {
    const group = this.groups.get(sentence);
    if (!group) return;
    const held = group.contains(document.activeElement) ? document.activeElement.word : null;
    const active = this.active?.sentence === sentence ? this.active : null;
    const current = this.words.findIndex((word) => word.element.tabIndex === 0);
    this.fill(group, sentence);
    this.collect(Math.max(0, current));
    if (active) this.active = this.at(sentence, active.unit.start);
    if (held) this.at(sentence, held.unit.start)?.element.focus({ preventScroll: true });
  }

  /** The word of a sentence at a position, or its last one. */
  at(sentence, position) {
    const words = this.wordsOf(sentence);
    return words.find((word) => word.unit.end > position) ?? words.at(-1) ?? null;
  }

  wordsOf(sentence) {
    const group = this.groups.get(sentence);
    return group ? [...group.querySelectorAll('.word')].map((element) => element.word) : [];
  }

  point(word) {
    if (word === this.active || this.held) return;
    this.active = word;
    this.pointed(word);
  }

  /** After a menu, a word stays pointed at only if it has the focus again. */
  release() {
    this.held = false;
    if (!this.root.contains(document.activeElement)) this.point(null);
  }

  focused(word) {
    if (!word) return;
    for (const other of this.words) other.element.tabIndex = -1;
    word.element.tabIndex = 0;
    this.point(word);
  }

  click(word) {
    if (!word || !getSelection().isCollapsed) return;
    // The first tap shows attention, as hovering does; the second one opens the menu.
    if (this.touched && this.before !== word) return;
    this.chosen(word);
  }

  key(event) {
    const word = wordOf(event);
    if (!word || event.ctrlKey || event.metaKey || event.altKey) return;
    const now = this.words.indexOf(word);
    const forward = getComputedStyle(this.root).direction === 'rtl' ? 'ArrowLeft' : 'ArrowRight';
    const steps = {
      ArrowLeft: () => this.words[now + (forward === 'ArrowLeft' ? 1 : -1)],
      ArrowRight: () => this.words[now + (forward === 'ArrowRight' ? 1 : -1)],
      ArrowUp: () => this.besides(word, -1),
      ArrowDown: () => this.besides(word, 1),
      Home: () => this.words[0],
      End: () => this.words.at(-1),
    };
    if (event.key in steps) steps[event.key]()?.element.focus();
    else if (event.key === 'Enter' || event.key === ' ') this.chosen(word);
    else if (event.key === 'Escape') this.point(null);
    else return;
    event.preventDefault();
  }

  /** The nearest word in the row above (-1) or below (1). */
  besides(word, direction) {
    const middle = (box) => [(box.left + box.right) / 2, (box.top + box.bottom) / 2];
    const [x, y] = middle(word.element.getBoundingClientRect());
    let best = null;
    let least = Infinity;
    for (const other of this.words) {
      const box = other.element.getBoundingClientRect();
      const [left, top] = middle(box);
      const rows = ((top - y) * direction) / box.height;
      if (rows < 0.5) continue;
      const distance = Math.round(rows) * 1e5 + Math.abs(left - x);
      if (distance < least) [best, least] = [other, distance];
    }
    return best;
  }
}

function wordOf({ target }) {
  return target?.closest?.('.word')?.word ?? null;
}
