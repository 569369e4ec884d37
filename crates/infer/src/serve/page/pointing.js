// Pointing at a word of either side shows the words of the other side that it is connected to by attention.

import { clearMarks, markActive, markWeights } from './marks.js';
import { units } from './text.js';

/** How long a word is pointed at before its attention is asked for, in milliseconds. */
const PAUSE = 80;

export class Pointing {
  constructor(page) {
    this.page = page;
    this.turn = 0; // counts what was pointed at, so that late answers are not shown
    this.last = null; // the last word of a translation, with its column
  }

  begin() {
    clearMarks();
    for (const column of this.page.columns) column.status.replaceChildren();
    return ++this.turn;
  }

  /** Shows the last word of a column again, with another layer or head. */
  again(column) {
    if (this.last?.column === column) this.atTarget(column, this.last.word);
  }

  async atTarget(column, word) {
    const turn = this.begin();
    if (!word) return;
    this.last = { column, word };
    const { sentence, unit } = word;
    markActive(word.element);
    if (!(await this.fetch(column, sentence, turn))) return;
    const { attention } = sentence;
    const now = column.output.at(sentence, unit.start); // its element may be new
    clearMarks();
    markActive(now.element);
    // A source that has been edited, or that has markup, may not have the words any more. They can still be named.
    const range = { start: sentence.at, end: sentence.at + sentence.source.length };
    const shown = sentence.at === null ? [] : this.page.source.within(range);
    const inside = shown.map(({ start, end }) => ({ start: start - sentence.at, end: end - sentence.at }));
    const parts = shown.length > 0 ? inside : units(sentence.source, sentence.sourceTokens);
    const weights = attention.toSource(now.unit, parts, ...column.chosen);
    markWeights(shown.map(({ element }) => element), weights);
    const names = parts.map(({ start, end }) => sentence.source.slice(start, end));
    const rest = 1 - weights.reduce((sum, weight) => sum + weight, 0);
    column.explain(now.text, 'looks at', [...names, '(end of the sentence)'], [...weights, rest]);
  }

  async atSource(unit) {
    const turn = this.begin();
    if (!unit) return;
    markActive(unit.element);
    const position = unit.start;
    await Promise.all(this.page.columns.map((column) => this.lookers(column, position, turn)));
  }

  /** Marks the words of a column that look at the source at a position. */
  async lookers(column, position, turn) {
    const inside = ({ at, source }) => at !== null && at <= position && position < at + source.length;
    const sentence = column.sentences.find(inside);
    if (!sentence || !(await this.fetch(column, sentence, turn))) return;
    const unit = this.page.source.within({ start: position, end: position + 1 })[0];
    if (!unit) return;
    markActive(unit.element);
    const words = column.output.wordsOf(sentence);
    const part = { start: unit.start - sentence.at, end: unit.end - sentence.at };
    const weights = sentence.attention.toTarget(part, words.map((word) => word.unit), ...column.chosen);
    markWeights(words.map(({ element }) => element), weights);
    column.explain(unit.text, 'is seen by', words.map(({ text }) => text), weights);
  }

  /** Makes sure that a sentence has its attention. False if there is none, or if something else is pointed at. */
  async fetch(column, sentence, turn) {
    if (!column.model?.attention) {
      column.say('This model has no attention to the source.');
      return false;
    }
    if (sentence.attention === undefined) {
      await new Promise((resolve) => setTimeout(resolve, PAUSE));
      if (turn !== this.turn) return false;
      try {
        if (await sentence.fetchAttention()) this.known(column, sentence);
      } catch (error) {
        if (turn === this.turn) column.say(error.message);
        return false;
      }
    }
    if (turn !== this.turn || !column.sentences.includes(sentence)) return false;
    if (sentence.attention) return true;
    const reason = sentence.refusal ? `: ${sentence.refusal.message}` : '.';
    column.say(`There is no attention for this sentence${reason}`);
    return false;
  }

  /** In scripts without spaces, words are tokens, which are known only now. */
  known(column, sentence) {
    const { source, columns } = this.page;
    if (!sentence.attention || !column.sentences.includes(sentence)) return;
    if (sentence.units().length !== column.output.wordsOf(sentence).length) column.refresh(sentence);
    if (column === columns[0]) {
      const active = source.active;
      source.refine(sentence);
      if (active) source.active = source.within({ start: active.start, end: active.start + 1 })[0] ?? null;
    }
  }
}
