import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { loadAll } from '../../src/commands/all.ts';
import { wordsOf } from '../../src/commands/completion.ts';
import { runCommand } from '../run/command.ts';
import { PROJECT } from '../support/dev.ts';

const SUPABASE = 'supabase@3.1.0';

/** Documents of which every command line is checked; those of other stations are checked with them. */
const PAGES = [
  'README.md',
  ...readdirSync(join(PROJECT, 'docs'))
    .filter((file) => file.endsWith('.md'))
    .map((file) => `docs/${file}`),
];

/** Each command line in a block of shell, without comments and with what was continued joined. */
function commandLines(page: string): string[] {
  const blocks = [...page.matchAll(/^```(?:sh|bash)\n([\s\S]*?)^```/gm)].map(([, block = '']) => block);
  return blocks.flatMap((block) =>
    block
      .replace(/\\\n/g, ' ')
      .split('\n')
      .map((line) => line.replace(/\s+#.*$/, '').trim()),
  );
}

function linesOf(program: RegExp): { page: string; words: string[] }[] {
  return PAGES.flatMap((page) =>
    commandLines(readFileSync(join(PROJECT, page), 'utf8')).flatMap((line) => {
      const [, rest] = program.exec(line) ?? [];
      return rest === undefined ? [] : [{ page, words: rest.trim().split(/\s+/) }];
    }),
  );
}

describe('the documents', () => {
  it('name only commands and options that sluice has', async () => {
    const commands = await loadAll();
    const lines = linesOf(/^(?:[A-Z0-9_]+=\S+ )*(?:npx sluice|npm run sluice --|sluice) (.*)$/);
    assert.ok(lines.length > 20, 'the documents show too few commands');
    for (const { page, words } of lines) {
      const [name = '', ...rest] = words;
      const command = commands[name];
      assert.ok(command, `${page}: there is no command ${name}`);
      const known = wordsOf(command.usage);
      for (const option of rest.join(' ').match(/--[a-z-]+/g) ?? [])
        assert.ok(known.includes(option), `${page}: sluice ${name} has no ${option}`);
    }
  });

  it('name only commands and options that the Supabase CLI has', async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'sluice-docs-'));
    t.after(() => rmSync(folder, { recursive: true }));
    const help = async (words: string[]) => {
      const quiet = ['DO_NOT_TRACK=1', 'SUPABASE_TELEMETRY_DISABLED=1'];
      return runCommand('env', [...quiet, 'npx', '--yes', SUPABASE, ...words, '--help'], { cwd: folder });
    };
    const reachable = await help([]);
    if (reachable.code !== 0) {
      t.skip(`npx cannot fetch ${SUPABASE}: ${reachable.output}`);
      return;
    }
    const pages = new Map<string, string>();
    for (const { page, words } of linesOf(/^supabase (.*)$/)) {
      // "db push", "projects create", "login": the words before the first option or argument, two at most.
      const name = words.slice(0, 2).filter((word) => /^[a-z-]+$/.test(word) && !word.startsWith('-'));
      const key = name.join(' ');
      if (!pages.has(key)) pages.set(key, (await help(name)).output);
      const text = pages.get(key) ?? '';
      assert.match(
        text,
        new RegExp(`^ {2}supabase ${key}(?: |$)`, 'm'),
        `${page}: supabase has no ${key}\n${text}`,
      );
      for (const option of words.join(' ').match(/--[a-z-]+/g) ?? [])
        assert.match(text, new RegExp(`${option}\\b`), `${page}: supabase ${key} has no ${option}`);
    }
    assert.ok(pages.size > 5, 'the documents show too few commands');
  });

  it('are listed in the index', () => {
    const index = readFileSync(join(PROJECT, 'docs', 'README.md'), 'utf8');
    const pages = [
      'start',
      'run_on_your_postgres',
      'deploy_on_supabase',
      'operate',
      'secure',
      'tune',
      'client',
      'api',
    ];
    for (const page of pages) {
      assert.ok(existsSync(join(PROJECT, 'docs', `${page}.md`)), page);
      assert.ok(index.includes(`(${page}.md)`), `${page} is not in docs/README.md`);
    }
  });
});

describe('commandLines', () => {
  it('joins what was continued, drops comments, and reads blocks of shell only', () => {
    const page = '```sh\nsluice a \\\n  --b   # why\n```\n\n```sql\nsluice c\n```\n';
    assert.deepEqual(commandLines(page).filter(Boolean), ['sluice a    --b']);
  });
});
