// The page: wires source, columns, options and files to each other.

import * as api from './api.js';
import { openAlternatives } from './alternatives.js';
import { Column } from './column.js';
import { markDifferences } from './differences.js';
import { FilePanel } from './file.js';
import { Options } from './options.js';
import { Pointing } from './pointing.js';
import { Source } from './source.js';
import { characters } from './text.js';

const PAUSE = 250; // after the last key, in milliseconds
const CHOICE = 'attend.models';
const element = (id) => document.getElementById(id);

class Page {
  constructor() {
    this.models = [];
    this.limits = { characters: Infinity, texts: 1, beam: 1, body: Infinity };
    this.columns = [];
    this.source = new Source({
      changed: () => this.edited(),
      pointed: (unit) => this.pointing.atSource(unit),
    });
    this.pointing = new Pointing(this);
    this.options = new Options(() => this.schedule());
    this.file = new FilePanel(() => this.fileRequest());
    this.retry = 0; // the pause before the next attempt after an error, in seconds
    this.addColumn();
    this.listen();
    if (matchMedia('(pointer: fine)').matches) this.source.area.focus();
  }

  listen() {
    element('source-language').addEventListener('change', () => {
      this.offerModels();
      this.schedule(0);
    });
    element('swap').addEventListener('click', () => this.swap());
    element('clear').addEventListener('click', () => {
      this.source.text = '';
      this.edited();
      this.source.area.focus();
    });
    element('compare').addEventListener('click', () => (this.columns[1] ? this.stopComparing() : this.startComparing()));
    element('key').value = api.apiKey();
    element('key').addEventListener('input', () => {
      api.setApiKey(element('key').value);
      this.schedule(2 * PAUSE);
    });
    element('key-field').addEventListener('submit', (event) => {
      event.preventDefault();
      this.schedule(0);
    });
    element('choose-file').addEventListener('click', () => element('file').click());
    element('file').addEventListener('change', () => {
      const [file] = element('file').files;
      if (file) this.file.open(file);
      element('file').value = ''; // so that the same file can be chosen again
    });
    const hasFile = (event) => event.dataTransfer?.types.includes('Files');
    addEventListener('dragover', (event) => {
      if (!hasFile(event)) return;
      event.preventDefault();
      element('drop').hidden = false;
    });
    addEventListener('dragleave', (event) => {
      if (!event.relatedTarget) element('drop').hidden = true;
    });
    addEventListener('drop', (event) => {
      element('drop').hidden = true;
      if (!hasFile(event)) return;
      event.preventDefault();
      this.file.open(event.dataTransfer.files[0]);
    });
  }

  /** Asks for the models; again later if the server does not answer. */
  async start() {
    try {
      const { models, limits, key_required: keyRequired } = await api.models();
      this.models = models;
      this.limits = limits;
      element('key-field').hidden = !keyRequired;
      this.recovered();
    } catch (error) {
      this.report(error);
      setTimeout(() => this.start(), 3000);
      return;
    }
    const choice = load();
    const first = this.models.find((model) => model.name === choice.models?.[0]) ?? this.models[0];
    const languages = new Map(this.models.map((model) => [model.source, model.source_name]));
    const select = element('source-language');
    select.replaceChildren(...[...languages].map(([code, name]) => new Option(name || code, code)));
    if (first) select.value = first.source;
    this.offerModels([first?.name, choice.models?.[1]]);
    if (choice.models?.[1] && !element('compare').hidden) this.startComparing(choice.models[1]);
    this.edited();
  }

  addColumn() {
    const column = new Column(this);
    this.columns.push(column);
    element('panes').append(column.root);
    this.arrange();
    return column;
  }

  arrange() {
    const comparing = this.columns.length > 1;
    element('panes').classList.toggle('comparing', comparing);
    element('compare').setAttribute('aria-pressed', String(comparing));
    this.columns.forEach((column, i) => {
      column.root.querySelector('.close').hidden = i === 0;
    });
  }

  /** The models of the chosen source language go into the columns. */
  offerModels(wanted = this.columns.map((column) => column.select.value)) {
    const source = element('source-language').value;
    const models = this.models.filter((model) => model.source === source);
    this.columns.forEach((column, i) => column.offer(models, wanted[i]));
    element('compare').hidden = models.length < 2;
    if (models.length < 2 && this.columns.length > 1) this.stopComparing();
    this.modelsShown();
  }

  modelsShown() {
    const { model } = this.columns[0];
    this.source.setLanguage(model?.source ?? '');
    this.options.setLimits(this.limits, model?.beam ?? '');
    element('swap').disabled = !this.reverse();
    save(this.columns.map((column) => column.model?.name));
  }

  modelChanged(column) {
    column.modelShown();
    this.modelsShown();
    this.schedule(0);
  }

  reverse() {
    const { model } = this.columns[0];
    return model && this.models.find((other) => other.source === model.target && other.target === model.source);
  }

  swap() {
    const reverse = this.reverse();
    if (!reverse) return;
    const text = this.columns[0].text;
    element('source-language').value = reverse.source;
    this.offerModels([reverse.name]);
    if (text) this.source.text = text;
    this.edited(0);
  }

  startComparing(wanted) {
    const first = this.columns[0].select.value;
    const models = this.models.filter((model) => model.source === element('source-language').value);
    const pair = this.columns[0].model;
    const other =
      models.find((model) => model.name !== first && model.target === pair.target) ??
      models.find((model) => model.name !== first);
    this.addColumn().offer(models, wanted ?? other?.name);
    this.modelsShown();
    this.schedule(0);
  }

  stopComparing() {
    const column = this.columns.pop();
    column.controller?.abort();
    column.root.remove();
    this.arrange();
    this.modelsShown();
    this.compared();
    element('compare').focus();
  }

  edited(pause = PAUSE) {
    const count = characters(this.source.text);
    const { characters: limit } = this.limits;
    const number = (value) => value.toLocaleString('en');
    element('count').textContent = Number.isFinite(limit) ? `${number(count)} / ${number(limit)}` : '';
    element('count').classList.toggle('over', count > limit);
    element('clear').hidden = count === 0;
    this.schedule(pause);
  }

  schedule(pause = PAUSE) {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.translate(), pause);
  }

  async translate() {
    clearTimeout(this.timer);
    const text = this.source.text;
    if (characters(text) > this.limits.characters) {
      this.report(new api.ServerError(413, 'The text is longer than the server takes at once.',
        'Shorten it, or save it as a file and translate the file.'));
      return;
    }
    const options = this.options.body();
    const results = await Promise.allSettled(this.columns.map((column) => column.translate(text, options)));
    const failed = results.find((result) => result.status === 'rejected');
    if (failed) this.report(failed.reason);
    else if (text === this.source.text) this.recovered();
  }

  /** A column has a new translation of the text. */
  translated(column) {
    // An answer may be late, when the text has changed already. Its words are shown, but not in the source.
    if (column === this.columns[0] && column.translatedText === this.source.text) this.source.show(column.sentences);
    this.compared();
  }

  compared() {
    markDifferences(this.columns);
  }

  pointedAtTarget(column, word) {
    this.pointing.atTarget(column, word);
  }

  openAlternatives(column, word) {
    openAlternatives(this, column, word);
  }

  fileRequest() {
    const { model } = this.columns[0];
    return { model, body: { model: model?.name, ...this.options.body() }, limits: this.limits };
  }

  /** Shows an error until a request succeeds. What may pass is tried again. */
  report(error) {
    if (api.wasCancelled(error)) return;
    element('error-message').textContent = error.message;
    element('error-hint').textContent = error.hint ?? '';
    element('error').hidden = false;
    if (error.status === 401 || error.status === 403) element('key-field').hidden = false;
    if (error.passes && this.models.length > 0) {
      this.retry = Math.min(30, Math.max(2, 2 * this.retry));
      this.schedule(this.retry * 1000);
    }
  }

  recovered() {
    element('error').hidden = true;
    this.retry = 0;
  }
}

function load() {
  try {
    return JSON.parse(localStorage.getItem(CHOICE)) ?? {};
  } catch {
    return {};
  }
}

function save(models) {
  try {
    localStorage.setItem(CHOICE, JSON.stringify({ models }));
  } catch {
    // Without storage, the choice is forgotten.
  }
}

new Page().start();
