// The attention of one sentence: which words of its translation look at which words of the source.

import { locateTokens, overlap } from './text.js';

export class Attention {
  /** `answer` is the server's; `source` and `target` are the sentence and its translation. */
  constructor(answer, source, target) {
    this.layers = answer.layers;
    this.heads = answer.heads;
    this.weights = answer.weights;
    // The last token of both sides ends the sentence and is no part of the text.
    this.source = [...locateTokens(source, answer.source.slice(0, -1)), null];
    this.target = [...locateTokens(target, answer.target.slice(0, -1)), null];
    this.means = new Map();
  }

  /** Weights [target token][source token] of one layer and head; null means the mean over all of them. */
  matrix(layer, head) {
    const name = `${layer} ${head}`;
    let mean = this.means.get(name);
    if (!mean) {
      const chosen = (list, index) => (index === null || index >= list.length ? list : [list[index]]);
      const parts = chosen(this.weights, layer).flatMap((heads) => chosen(heads, head));
      mean = this.target.map((_, t) =>
        this.source.map((_, s) => parts.reduce((sum, part) => sum + part[t][s], 0) / parts.length),
      );
      this.means.set(name, mean);
    }
    return mean;
  }

  /** What a part of the translation attends to: the weights of all source tokens, which sum to 1. */
  row(part, layer, head) {
    const matrix = this.matrix(layer, head);
    const sum = this.source.map(() => 0);
    let total = 0;
    this.target.forEach((range, t) => {
      const share = range ? overlap(range, part) / (range.end - range.start) : 0;
      if (share === 0) return;
      total += share;
      matrix[t].forEach((weight, s) => (sum[s] += share * weight));
    });
    return total === 0 ? sum : sum.map((weight) => weight / total);
  }

  /** The weight that a part of the translation gives to each of some parts of the source. */
  toSource(part, sources, layer, head) {
    const row = this.row(part, layer, head);
    return sources.map((source) => this.inside(row, source));
  }

  /** The weight that each of some parts of the translation gives to a part of the source. */
  toTarget(source, parts, layer, head) {
    return parts.map((part) => this.inside(this.row(part, layer, head), source));
  }

  inside(row, part) {
    let sum = 0;
    this.source.forEach((range, s) => {
      if (range) sum += (row[s] * overlap(range, part)) / (range.end - range.start);
    });
    return sum;
  }
}
