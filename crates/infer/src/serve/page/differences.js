// Marks the words in which two translations of a line differ.

/** Longer lines are not compared: the time grows with the square of their length. */
const LONGEST = 600;

export function markDifferences(columns) {
  for (const column of columns) {
    for (const { element } of column.output.words) element.classList.remove('differs');
  }
  if (columns.length < 2 || columns.some((column) => column.output.words.length === 0)) return;
  if (columns[0].model?.target !== columns[1].model?.target) return;
  const [left, right] = columns.map(wordsByLine);
  for (let i = 0; i < Math.min(left.length, right.length); i++) {
    if (Math.max(left[i].length, right[i].length) > LONGEST) continue;
    for (const { element } of unshared(left[i], right[i])) element.classList.add('differs');
  }
}

function wordsByLine(column) {
  const lines = [[]];
  for (const part of column.parts) {
    if (part === '\n') lines.push([]);
    else if (typeof part !== 'string') lines.at(-1).push(...column.output.wordsOf(part));
  }
  return lines;
}

/** The words of both lists that are not in their longest common subsequence. */
function unshared(a, b) {
  const length = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      length[i][j] =
        a[i].text === b[j].text ? length[i + 1][j + 1] + 1 : Math.max(length[i + 1][j], length[i][j + 1]);
    }
  }
  const found = [];
  let i = 0;
  let j = 0;
  while (i < a.length && j < b.length) {
    if (a[i].text === b[j].text) {
      i++;
      j++;
    } else if (length[i + 1][j] >= length[i][j + 1]) {
      found.push(a[i++]);
    } else {
      found.push(b[j++]);
    }
  }
  return [...found, ...a.slice(i), ...b.slice(j)];
}
