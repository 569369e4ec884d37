// The panel of options. What is left at its default is not sent, so that the server's own settings count.

const field = (id) => document.getElementById(id);

/** Reads `term = translation` lines: the terms, or the first line that is none. */
export function parseGlossary(text) {
  const terms = {};
  for (const [i, line] of text.split('\n').entries()) {
    if (line.trim() === '') continue;
    const at = line.indexOf('=');
    const term = line.slice(0, at).trim();
    const translation = line.slice(at + 1).trim();
    if (at < 0 || term === '' || translation === '') {
      return { terms, problem: `Line ${i + 1} is not “term = translation”.` };
    }
    terms[term] = translation;
  }
  return { terms, problem: '' };
}

export class Options {
  constructor(changed) {
    const form = field('options-form');
    form.addEventListener('input', () => {
      this.check();
      changed();
    });
    form.addEventListener('submit', (event) => event.preventDefault());
    form.addEventListener('reset', () => {
      // The fields have their defaults only after this event.
      setTimeout(() => {
        this.check();
        changed();
      });
    });
    this.check();
  }

  /** The limits of the server, and the beam of the model that is used. */
  setLimits(limits, beam) {
    field('beam').max = limits.beam;
    field('beam').placeholder = beam;
  }

  check() {
    const sampling = field('sampling').checked;
    field('temperature').disabled = field('seed').disabled = !sampling;
    const { problem } = parseGlossary(field('glossary').value);
    field('glossary-error').textContent = problem;
    field('glossary').setAttribute('aria-invalid', String(problem !== ''));
    for (const id of ['beam', 'length-penalty', 'temperature', 'seed']) {
      field(id).setAttribute('aria-invalid', String(!field(id).validity.valid));
    }
    const { decode = {}, ...rest } = this.body();
    const changed = Object.keys(decode).length + Object.keys(rest).length;
    field('options-changed').hidden = changed === 0;
    field('options-changed').textContent = `${changed} changed`;
  }

  /** The part of a request that the options decide. */
  body() {
    const decode = {};
    const number = (id, key) => {
      const { value, validity, disabled } = field(id);
      if (value !== '' && validity.valid && !disabled) decode[key] = Number(value);
    };
    number('beam', 'beam');
    number('length-penalty', 'length_penalty');
    if (field('sampling').checked) decode.sampling = true;
    number('temperature', 'temperature');
    number('seed', 'seed');
    const body = {};
    if (Object.keys(decode).length > 0) body.decode = decode;
    if (!field('sentences').checked) body.sentences = false;
    if (field('format').value !== 'text') body.format = field('format').value;
    const { terms, problem } = parseGlossary(field('glossary').value);
    if (!problem && Object.keys(terms).length > 0) body.glossary = terms;
    return body;
  }
}
