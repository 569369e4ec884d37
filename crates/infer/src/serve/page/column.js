// One translation of the text: the model that it comes from, its words, and its attention.

import { wasCancelled } from './api.js';
import { Busy } from './busy.js';
import { Lines } from './lines.js';
import { Output } from './output.js';
import { Sentence } from './sentence.js';
import { languageTag, locate, percent } from './text.js';

export class Column {
  /** `page` gives models, limits and options, and is told of errors and choices. */
  constructor(page) {
    this.page = page;
    this.root = document.getElementById('column-template').content.cloneNode(true).firstElementChild;
    const part = (selector) => this.root.querySelector(selector);
    this.select = part('.model');
    this.layer = part('.layer');
    this.head = part('.head-select');
    this.status = part('.attends');
    this.announce = part('.announce');
    this.notes = part('.notes');
    this.busy = new Busy(part('.busy'));
    this.lines = new Lines();
    this.controller = null;
    this.parts = [];
    this.output = new Output(part('.output'), {
      pointed: (word) => this.page.pointedAtTarget(this, word),
      chosen: (word) => this.page.openAlternatives(this, word),
    });
    this.select.addEventListener('change', () => this.page.modelChanged(this));
    for (const select of [this.layer, this.head]) {
      select.addEventListener('change', () => this.page.pointing.again(this));
    }
    part('.copy').addEventListener('click', (event) => this.copy(event.currentTarget));
    part('.close').addEventListener('click', () => this.page.stopComparing());
    this.show([], []);
  }

  get model() {
    return this.page.models.find((model) => model.name === this.select.value) ?? null;
  }

  /** Offers the models of a source language, and keeps or takes the wanted one. */
  offer(models, wanted) {
    this.select.replaceChildren(
      ...models.map((model) => {
        const alone = models.filter((other) => other.target === model.target).length === 1;
        const label = alone ? model.target_name : `${model.target_name} · ${model.name}`;
        return new Option(label, model.name);
      }),
    );
    if (models.some((model) => model.name === wanted)) this.select.value = wanted;
    this.modelShown();
  }

  /** Follows a change of the model: language, layers and heads. */
  modelShown() {
    const { model } = this;
    this.root.setAttribute('aria-label', model ? `Translation: ${model.target_name}, model ${model.name}` : 'Translation');
    this.output.setLanguage(model?.target ?? '', model?.target_name ?? '');
    this.announce.lang = languageTag(model?.target);
    const fill = (select, count, all) => {
      const old = select.value;
      const numbers = Array.from({ length: count }, (_, i) => new Option(String(i + 1), String(i)));
      select.replaceChildren(new Option(all, ''), ...numbers);
      if (Number(old) < count) select.value = old;
      select.disabled = count === 0;
    };
    fill(this.layer, model?.attention?.layers ?? 0, 'mean of all');
    fill(this.head, model?.attention?.heads ?? 0, 'mean of heads');
  }

  /** The layer and the head to show; null is the mean of all. */
  get chosen() {
    const number = (select) => (select.value === '' ? null : Number(select.value));
    return [number(this.layer), number(this.head)];
  }

  /** Translates a text. A newer call ends an older one, whose answer is never shown. */
  async translate(text, options) {
    this.controller?.abort();
    const controller = new AbortController();
    this.controller = controller;
    const current = () => this.controller === controller;
    const { model } = this;
    if (text.trim() === '' || !model) {
      this.busy.stop();
      this.show([], []);
      return;
    }
    this.busy.start();
    const body = { model: model.name, ...options };
    try {
      const answers = await this.lines.translate(text, body, this.page.limits, controller.signal);
      if (current()) this.accept(text, answers, body);
    } catch (error) {
      if (current() && !wasCancelled(error)) throw error;
    } finally {
      if (current()) this.busy.stop();
    }
  }

  /** Shows the answers for the lines of a text. */
  accept(text, answers, body) {
    this.translatedText = text;
    const lines = answers.length === 1 ? [text] : text.split('\n');
    const parts = [];
    let lineStart = 0;
    answers.forEach((answer, i) => {
      if (i > 0) parts.push('\n');
      const sources = locate(lines[i], answer.sentences.map((sentence) => sentence.source));
      const targets = locate(answer.text, answer.sentences.map((sentence) => sentence.text));
      let end = 0;
      answer.sentences.forEach(({ source, text: translated }, s) => {
        if (!targets[s]) return; // markup inside a sentence, for example: shown as text
        parts.push(answer.text.slice(end, targets[s].start));
        const at = sources[s] ? lineStart + sources[s].start : null;
        parts.push(new Sentence({ source, text: translated, at, body }));
        end = targets[s].end;
      });
      parts.push(answer.text.slice(end));
      lineStart += lines[i].length + 1;
    });
    this.show(parts, warnings(answers));
    this.page.translated(this);
  }

  show(parts, notes) {
    this.parts = parts;
    this.output.show(parts);
    this.status.replaceChildren();
    this.notes.replaceChildren(
      ...notes.map((note) => {
        const item = document.createElement('li');
        item.textContent = note;
        return item;
      }),
    );
    this.notes.hidden = notes.length === 0;
    this.root.querySelector('.copy').disabled = this.text === '';
    this.speak();
  }

  /** Says the translation to screen readers once it has been the same for a while. */
  speak() {
    clearTimeout(this.speaking);
    this.speaking = setTimeout(() => (this.announce.textContent = this.text), 800);
  }

  /** Shows a sentence again after a choice, or when its tokens have become known. */
  refresh(sentence) {
    this.output.refresh(sentence);
    this.speak();
  }

  get sentences() {
    return this.parts.filter((part) => part instanceof Sentence);
  }

  get text() {
    return this.parts.map((part) => (typeof part === 'string' ? part : part.text)).join('');
  }

  say(message) {
    this.status.textContent = message;
  }

  /** Says which words a word is connected to (`verb` says how), heaviest first. */
  explain(word, verb, others, weights) {
    const name = (text) => {
      const element = document.createElement('bdi');
      element.textContent = text;
      return element;
    };
    const strong = document.createElement('strong');
    strong.append(name(word));
    this.status.replaceChildren(strong, ` ${verb} `);
    const order = others.map((_, i) => i).sort((a, b) => weights[b] - weights[a]);
    const heavy = order.filter((i) => weights[i] >= 0.05).slice(0, 4);
    for (const [n, i] of (heavy.length ? heavy : order.slice(0, 1)).entries()) {
      this.status.append(n > 0 ? ', ' : '', name(others[i]), ` ${percent(weights[i])}`);
    }
  }

  async copy(button) {
    try {
      await navigator.clipboard.writeText(this.text);
    } catch {
      // Without a secure context there is no clipboard: select the text for Ctrl+C.
      getSelection().selectAllChildren(this.output.root);
      this.say('The browser does not let pages copy here. The text is selected: press Ctrl+C.');
      return;
    }
    this.say('Copied.');
    button.classList.add('done');
    setTimeout(() => button.classList.remove('done'), 1200);
  }
}

function warnings(answers) {
  const notes = [];
  if (answers.some((answer) => answer.cut)) notes.push('A translation was cut at its greatest length.');
  if (answers.some((answer) => answer.repeats)) notes.push('A translation repeats itself.');
  const missing = [...new Set(answers.flatMap((answer) => answer.missing_terms ?? []))];
  if (missing.length > 0) notes.push(`Not in the translation, although the glossary asks for it: ${missing.join(', ')}.`);
  const repaired = answers.map((answer) => answer.repaired).filter(Boolean);
  if (repaired.length > 0) notes.push(`Markup was repaired: ${repaired.join(', ')}.`);
  return notes;
}
