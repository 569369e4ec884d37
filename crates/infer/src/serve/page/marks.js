// Colours of words by weight. The colour itself is in page.css, as a function of `--weight`.

/** Weights are shown relative to the greatest, or to this if all are smaller: an even distribution stays pale. */
const FULL = 0.5;

let marked = [];

export function clearMarks() {
  for (const element of marked) {
    element.classList.remove('marked', 'active');
    element.style.removeProperty('--weight');
  }
  marked = [];
}

/** Marks the word that is pointed at. */
export function markActive(element) {
  element.classList.add('active');
  marked.push(element);
}

export function markWeights(elements, weights) {
  const full = Math.max(FULL, ...weights);
  elements.forEach((element, i) => {
    element.classList.add('marked');
    element.style.setProperty('--weight', (weights[i] / full).toFixed(3));
    marked.push(element);
  });
}
