// The panel in which a file is translated.

import { wasCancelled } from './api.js';
import { FileJob, readLines } from './filejob.js';
import { languageTag } from './text.js';

/** The greatest file, in bytes: text and translation are held in memory. */
const LARGEST = 32 * 1024 * 1024;

const part = (name) => document.getElementById(`file-${name}`);
const number = (value) => value.toLocaleString('en');

export class FilePanel {
  /** `request()` gives the model, the body of requests and the limits of the server. */
  constructor(request) {
    this.request = request;
    this.panel = part('panel');
    this.job = null;
    part('cancel').addEventListener('click', () => this.controller?.abort());
    part('retry').addEventListener('click', () => this.run());
    part('skip').addEventListener('click', () => {
      this.job.skip();
      this.run();
    });
    part('close').addEventListener('click', () => this.close());
    addEventListener('beforeunload', (event) => {
      if (!part('cancel').hidden && !this.panel.hidden) event.preventDefault(); // the browser asks
    });
  }

  close() {
    this.controller?.abort();
    this.job = null;
    this.forgetDownload();
    this.panel.hidden = true;
    document.getElementById('choose-file').focus();
  }

  async open(file) {
    this.controller?.abort();
    this.job = null;
    this.panel.hidden = false;
    part('title').textContent = file.name;
    part('sample').hidden = true;
    this.show({ status: 'Reading the file…' });
    this.panel.scrollIntoView({ block: 'nearest' });
    try {
      if (file.size > LARGEST) {
        throw new Error(`${file.name} has ${number(Math.ceil(file.size / 1048576))} MB; a file may have ` +
          `${LARGEST / 1048576} MB here. Split it, or use the command \`infer translate\`.`);
      }
      const text = await readLines(file);
      if (text.lines.length === 0) throw new Error(`${file.name} is empty.`);
      const { model, body, limits } = this.request();
      if (!model) throw new Error('There is no model to translate with.');
      this.name = file.name;
      this.model = model;
      part('title').textContent = `${file.name} into ${model.target_name} (${model.name})`;
      const job = new FileJob(text, body, limits, {
        progress: () => this.job === job && this.progress(),
        waiting: (seconds) => this.job === job && this.waiting(seconds),
      });
      this.job = job;
    } catch (error) {
      this.show({ error: error.message });
      return;
    }
    await this.run();
  }

  async run() {
    const { job } = this;
    const controller = new AbortController();
    this.controller = controller;
    this.began = performance.now();
    this.from = job.done;
    this.show({ running: true, status: this.counts() });
    try {
      await job.run(controller.signal);
      if (this.job === job) this.show({ status: `All ${number(job.lines.length)} lines are translated.` });
    } catch (error) {
      if (this.job !== job) return;
      if (wasCancelled(error)) {
        this.show({ status: `Cancelled. ${this.counts()}`, retry: 'Continue' });
      } else {
        const hint = error.hint ? ` ${error.hint}` : '';
        this.show({
          status: this.counts(),
          error: `Line ${number(error.line ?? job.done + 1)}: ${error.message}${hint}`,
          retry: 'Try again',
          skip: !error.passes,
        });
      }
    }
  }

  counts() {
    const { job } = this;
    return `${number(job.done)} of ${number(job.lines.length)} lines are translated.`;
  }

  progress() {
    const { job } = this;
    part('progress').max = job.lines.length;
    part('progress').value = job.done;
    const seconds = (performance.now() - this.began) / 1000;
    const left = (seconds / Math.max(1, job.done - this.from)) * (job.lines.length - job.done);
    part('status').textContent = seconds > 2 && !job.finished ? `${this.counts()} ${duration(left)}` : this.counts();
    const last = job.results.findLast((line) => line !== '');
    part('sample').textContent = last ?? '';
    part('sample').lang = languageTag(this.model.target);
    part('sample').hidden = !last;
  }

  waiting(seconds) {
    part('status').textContent = `${this.counts()} The server is busy; trying again in ${Math.ceil(seconds)} s.`;
  }

  /** Shows a state: what is said, and which buttons there are. */
  show({ status = '', error = '', running = false, retry = '', skip = false }) {
    const { job } = this;
    part('status').textContent = status;
    part('error').textContent = error;
    part('error').hidden = error === '';
    part('progress').hidden = !job;
    if (job) {
      part('progress').max = job.lines.length;
      part('progress').value = job.done;
    }
    part('cancel').hidden = !running;
    part('retry').hidden = !retry;
    part('retry').textContent = retry;
    part('skip').hidden = !skip;
    this.forgetDownload();
    const download = part('download');
    download.hidden = running || !job || job.done === 0;
    if (!download.hidden) {
      download.href = this.url = URL.createObjectURL(job.blob());
      download.download = translatedName(this.name, this.model.target);
      download.textContent = job.finished ? 'Download' : `Download the first ${number(job.done)} lines`;
    }
  }

  forgetDownload() {
    if (this.url) URL.revokeObjectURL(this.url);
    this.url = null;
    part('download').removeAttribute('href');
    part('download').hidden = true;
  }
}

/** `notes.txt` becomes `notes.de.txt`. */
function translatedName(name, language) {
  const dot = name.lastIndexOf('.');
  return dot > 0 ? `${name.slice(0, dot)}.${language}${name.slice(dot)}` : `${name}.${language}`;
}

function duration(seconds) {
  if (seconds < 90) return `About ${Math.max(1, Math.round(seconds))} s left.`;
  return `About ${Math.round(seconds / 60)} min left.`;
}
