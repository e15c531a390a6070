// The samples of docs/integrations, read out of the pages themselves: what a reader copies is what the tests run.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { PROJECT } from '../support/dev.ts';

export const DOCUMENTED = ['stripe', 'twilio', 'whatsapp', 'daily'] as const;

export interface DocSample {
  body: string;
  contentType: string;
  secret: string;
  /** The command of the page as words, without `npx sluice`. */
  command: string[];
}

export function readPage(path: string): string {
  return readFileSync(join(PROJECT, 'docs', path), 'utf8');
}

/** The blocks of one language, in their order, without the newline before the closing fence. */
export function blocksOf(page: string, language: string): string[] {
  return [...page.matchAll(new RegExp(`^\`\`\`${language}\n([\\s\\S]*?)\n\`\`\`$`, 'gm'))].map(
    ([, text]) => text ?? '',
  );
}

/** The text below a heading of the second level, up to the next one. */
export function sectionOf(page: string, heading: string): string {
  return page.split(/^## /m).find((part) => part.startsWith(`${heading}\n`)) ?? '';
}

export function readSample(provider: string): DocSample {
  const page = readPage(`integrations/${provider}.md`);
  const [body] = [...blocksOf(page, 'json'), ...blocksOf(page, 'text')];
  const line = blocksOf(page, 'sh').find((text) => text.startsWith('npx sluice webhooks verify'));
  assert(body !== undefined && line !== undefined, `${provider}.md has no sample`);
  const command = wordsOf(line).slice(2);
  const type = command.find((word) => word.startsWith('Content-Type: ')) ?? '';
  return {
    body,
    contentType: type.slice('Content-Type: '.length),
    secret: command[command.indexOf('--secret') + 1] ?? '',
    command,
  };
}

/** A command line of the pages: words, single quotes, a backslash at the end of a line. Nothing else is used there. */
function wordsOf(line: string): string[] {
  const words = line.replaceAll('\\\n', ' ').matchAll(/'([^']*)'|[^\s']+/g);
  return [...words].map(([word, quoted]) => quoted ?? word);
}
