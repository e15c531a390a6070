// Where a kept number comes from, in the words of pages. A page that shows a number names its run, its commit and the hash of the
// product files, and says whether these are the files of the tree that the page is in.

import type { Origin, Summary } from './summaries.ts';

const COMMIT = /^([0-9a-f]{7})[0-9a-f]{33}/;
const HASH_CHARS = 12;
const DATE_CHARS = 10;
/** What an acknowledgement rests on; a run without one of them says less. */
const SETTINGS = ['fsync', 'synchronous_commit', 'full_page_writes', 'autovacuum'];

/** As much of a commit as git shows; what follows it says that there were changes. */
export const shortCommit = (commit: string): string => commit.replace(COMMIT, '$1');
export const shortHash = (hash: string): string => hash.slice(0, HASH_CHARS);
export const dateOf = ({ at }: Pick<Origin, 'at'>): string => at.slice(0, DATE_CHARS);

export const isOfTree = ({ product_hash }: Pick<Origin, 'product_hash'>, tree: string): boolean =>
  product_hash === tree;

/** A sentence. */
export const standingOf = (origin: Pick<Origin, 'product_hash'>, tree: string): string =>
  isOfTree(origin, tree)
    ? 'These are the product files of this tree.'
    : '**The product files have changed since.**';

/** A few sentences: which run of the bench, on what, whether it is of this tree, and the file that has all of it. */
export function originOf(summary: Summary, tree: string): string {
  const { suite, commit, product_hash, command, machine, durability, note } = summary;
  const settings = SETTINGS.filter((name) => durability[name] !== undefined);
  return [
    `Measured on ${dateOf(summary)} by \`${command}\`, on commit ${shortCommit(commit)} (product files ${shortHash(product_hash)}).`,
    standingOf(summary, tree),
    `Machine: ${machine.cpu}, ${machine.cores} cores, ${machine.memory_gib} GiB, Node ${machine.node}.`,
    ...(settings.length === 0
      ? []
      : [`Postgres: ${settings.map((name) => `${name} ${durability[name]}`).join(', ')}.`]),
    ...(note === undefined ? [] : [note]),
    `All of it: \`bench/summaries/${suite}.json\`.`,
  ].join(' ');
}
