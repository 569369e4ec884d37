// The menu of a word: other words for its place, and other translations of its sentence.

import { wasCancelled } from './api.js';
import { closeMenu, openMenu } from './menu.js';
import { languageTag, percent } from './text.js';

export function openAlternatives(page, column, word) {
  const menu = new WordMenu(page, column, word);
  menu.open(`Other words for “${word.text}”`, 'Looking for other words…', () => menu.words());
}

class WordMenu {
  constructor(page, column, word) {
    this.page = page;
    this.column = column;
    this.word = word;
    this.controller = new AbortController();
    column.output.held = true; // until the menu is closed
  }

  show(label, items) {
    const closed = () => {
      this.controller.abort();
      this.column.output.release();
    };
    openMenu(this.word.element, label, items, { lang: languageTag(this.column.model.target), closed });
  }

  /** Shows a message, then the items that `find` resolves to. */
  async open(label, message, find) {
    this.show(label, [{ label: message }]);
    let items;
    try {
      items = await find();
      this.page.recovered();
    } catch (error) {
      if (wasCancelled(error)) return;
      items = [{ label: [error.message, error.hint].filter(Boolean).join(' ') }];
    }
    if (!this.controller.signal.aborted) this.show(label, items);
  }

  async words() {
    const { sentence, unit, text: current } = this.word;
    const found = await sentence.words(unit, this.controller.signal);
    const before = sentence.before(unit);
    const gap = sentence.text.slice(before.length, unit.start);
    const items = found.map(({ word, probability, text }) => ({
      label: word || '(end here)',
      detail: percent(probability),
      share: probability,
      checked: word === current,
      run: () => this.choose(text, word && before + gap + word),
    }));
    if (items.length === 0) items.push({ label: 'There are no other words for this place.' });
    items.push({ label: 'Other translations of the sentence…', plain: true, run: () => this.sentences() });
    return items;
  }

  sentences() {
    const label = 'Other translations of the sentence';
    this.open(label, 'Looking for other translations…', async () => {
      const { sentence } = this.word;
      const { beam } = this.column.model;
      const found = await sentence.others(beam, this.page.limits.beam, this.controller.signal);
      const items = found.map(({ text, score }) => ({
        label: text,
        detail: score?.toFixed(2),
        checked: text === sentence.text,
        run: () => this.choose(text, null),
      }));
      return items.length > 0 ? items : [{ label: 'There are no other translations.' }];
    });
  }

  choose(text, prefix) {
    const { sentence } = this.word;
    // The text must begin with the prefix; otherwise (spaces that differ) all of it counts as chosen.
    sentence.choose(text, prefix && text.startsWith(prefix) ? prefix : null);
    closeMenu();
    this.column.refresh(sentence);
    this.page.compared();
    this.page.pointedAtTarget(this.column, this.column.output.active);
  }
}
