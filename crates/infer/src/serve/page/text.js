// Where words, sentences and lines are in a text. Positions are those of JavaScript strings.

/** Scripts that are written without spaces between words. */
const UNSPACED =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}\p{Script=Tibetan}]/u;

/** The number of characters as the server counts them: code points. */
export function characters(text) {
  let count = text.length;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if (unit >= 0xd800 && unit < 0xdc00) count--;
  }
  return count;
}

/** The positions of parts that follow each other in a text, or null for those that are not found. */
export function locate(text, parts) {
  let from = 0;
  return parts.map((part) => {
    const start = part === '' ? -1 : text.indexOf(part, from);
    if (start < 0) return null;
    from = start + part.length;
    return { start, end: from };
  });
}

/**
 * The positions of tokens, without the spaces around them. A token of nothing but spaces counts for the token that
 * follows; one that is not in the text (a part of a character, for example) counts for the token before it.
 */
export function locateTokens(text, tokens) {
  const ranges = locate(text, tokens.map((token) => token.trim()));
  for (let i = tokens.length - 1; i >= 0; i--) {
    if (!ranges[i] && tokens[i].trim() === '') ranges[i] = ranges[i + 1] ?? null;
  }
  for (let i = 1; i < tokens.length; i++) ranges[i] ??= ranges[i - 1];
  return ranges;
}

/**
 * The units of a text that can be pointed at: words between spaces. In scripts without spaces, they are the tokens
 * of the model if `tokens` (positions) is given, and otherwise what the browser takes for words.
 */
export function units(text, tokens) {
  const found = [];
  for (const match of text.matchAll(/\S+/gu)) {
    const start = match.index;
    const end = start + match[0].length;
    if (!UNSPACED.test(match[0])) {
      found.push({ start, end });
      continue;
    }
    const starts = tokens ? tokens.filter(Boolean).map((token) => token.start) : segments(match[0], start);
    const cuts = [...new Set([start, ...starts.filter((cut) => cut > start && cut < end), end])];
    cuts.sort((a, b) => a - b);
    for (let i = 1; i < cuts.length; i++) found.push({ start: cuts[i - 1], end: cuts[i] });
  }
  return found;
}

function segments(word, offset) {
  if (!globalThis.Intl?.Segmenter) return [];
  const segmenter = new Intl.Segmenter(undefined, { granularity: 'word' });
  return [...segmenter.segment(word)].map((segment) => segment.index + offset);
}

/** How many positions two ranges share. */
export function overlap(a, b) {
  return Math.max(0, Math.min(a.end, b.end) - Math.max(a.start, b.start));
}

/**
 * Cuts a list of lines into requests: the end of the one that begins with line `start`. At least one line is taken.
 * `limits` are those of the server; `body` counts bytes of JSON.
 */
export function endOfBatch(lines, start, limits) {
  let end = start;
  let count = 0;
  let bytes = 4096; // for the rest of the request
  while (end < lines.length && end - start < limits.texts) {
    count += characters(lines[end]);
    bytes += JSON.stringify(lines[end]).length * 3 + 1; // a position is at most 3 bytes of UTF-8
    if (end > start && (count > limits.characters || bytes > limits.body)) break;
    end++;
  }
  return end;
}

/** A probability or weight for people. */
export function percent(share) {
  if (share > 0 && share < 0.01) return '<1\u202f%';
  return `${Math.round(share * 100)}\u202f%`;
}

/** A language code as the `lang` attribute wants it. Two codes of LibreTranslate are its own. */
export function languageTag(code) {
  const own = { zt: 'zh-Hant', pb: 'pt-BR' };
  return own[code] ?? (code ?? '').replaceAll('_', '-');
}
