/** The name that was probably meant: the closest one, if it is close. */
export function nearest(word: string, names: readonly string[]): string | undefined {
  const scored = names.map((name) => ({ name, distance: distance(word, name) }));
  const [best] = scored.sort((a, b) => a.distance - b.distance);
  return best !== undefined && best.distance <= Math.ceil(word.length / 3) ? best.name : undefined;
}

/** How many letters to change, add or drop to get from one to the other (Levenshtein). */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const changed = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(changed, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
