import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, it } from 'node:test';
import { loadAll } from '../../src/commands/all.ts';
import { offersOf } from '../../src/commands/completion.ts';
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

const ALL_PAGES = [
  ...PAGES,
  ...['ops', 'integrations'].flatMap((folder) =>
    readdirSync(join(PROJECT, 'docs', folder)).map((file) => `docs/${folder}/${file}`),
  ),
];

/** Only a global installation has this command; a page must say `npx sluice`. */
const BARE_COMMAND = /(?:^|[ (])(?<!npx )(?<!-- )(?<!--no-install )sluice (?=[a-z])/;
/** Without a terminal npx installs what it does not find, without asking. */
const FETCHES = /npx (?!--no-install )/;

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

/** Units and schedules that run without a person, from the blocks of other languages in a page. */
function unattendedBlocks(page: string): string[] {
  return [...page.matchAll(/^```(?:ini|systemd|cron|yaml)\n([\s\S]*?)^```/gm)].map(([, block = '']) => block);
}

/** What a sentence or a table says in the letters of a program, though it may go on in the next line. */
function inlineCommands(page: string): string[] {
  const prose = page.replace(/^```[\s\S]*?^```/gm, '');
  return [...prose.matchAll(/`([^`]+)`/g)].map(([, code = '']) => code.replace(/\s+/g, ' '));
}

function linesOf(program: RegExp, read = commandLines): { page: string; words: string[] }[] {
  return PAGES.flatMap((page) =>
    read(readFileSync(join(PROJECT, page), 'utf8')).flatMap((line) => {
      const [, rest] = program.exec(line) ?? [];
      return rest === undefined ? [] : [{ page, words: rest.trim().split(/\s+/) }];
    }),
  );
}

/** Where the product tells people what to run. */
const PRODUCT = ['src', 'console', 'db1/supabase', 'db2/supabase', 'monitoring'].flatMap((folder) =>
  readdirSync(join(PROJECT, folder), { recursive: true, encoding: 'utf8' })
    .filter((file) => /\.(tsx?|sql|yml|json)$/.test(file) && !/node_modules|\.test\./.test(file))
    .map((file) => `${folder}/${file}`),
);

/** Commands between backticks, which a template writes with a backslash before them. */
function hintsOf(files: readonly string[]): { page: string; words: string[] }[] {
  return files.flatMap((page) =>
    [
      ...readFileSync(join(PROJECT, page), 'utf8').matchAll(
        /`(?:npx )?sluice ([a-z]+(?![,a-z])[^`\\]*)\\?`/g,
      ),
    ].map(([, words = '']) => ({ page, words: words.trim().split(/\s+/) })),
  );
}

describe('the documents', () => {
  it('and the hints of the product name only commands and options that sluice has', async () => {
    const commands = await loadAll();
    const offers = offersOf(commands);
    const lines = linesOf(/^(?:[A-Z0-9_]+=\S+ )*(?:npx sluice|npm run sluice --|sluice) (.*)$/);
    const inline = linesOf(/^(?:[A-Z0-9_]+=\S+ )*npx sluice ([a-z].*)$/, inlineCommands);
    const hints = hintsOf(PRODUCT);
    assert.ok(lines.length > 20 && inline.length > 50, 'the documents show too few commands');
    assert.ok(hints.length > 50, 'the product names too few commands');
    for (const { page, words } of [...lines, ...inline, ...hints]) {
      const [name = '', ...rest] = words[0] === 'help' ? words.slice(1) : words;
      const command = commands[name];
      assert.ok(command, `${page}: unknown command ${name}`);
      const leads = (path: readonly string[]) => path.every((word, at) => word === [name, ...rest][at]);
      const place = offers.findLast(({ path }) => leads(path));
      const deeper = offers.filter(({ path }) => path.length === 2 && path[0] === name);
      if (deeper.length > 0 && /^[a-z]/.test(rest[0] ?? ''))
        assert.ok((place?.path.length ?? 0) >= 2, `${page}: sluice ${name} cannot ${rest[0]}`);
      for (const option of rest.join(' ').match(/(?<= )--[a-z-]+/g) ?? [])
        assert.ok(
          place?.offered.includes(option),
          `${page}: sluice ${place?.path.join(' ')} has no ${option}`,
        );
    }
  });

  it('call the command as it is there in a clone and in a folder where the package is installed', () => {
    for (const page of ALL_PAGES) {
      const text = readFileSync(join(PROJECT, page), 'utf8');
      const bare = commandLines(text).filter((line) => BARE_COMMAND.test(line));
      assert.deepEqual(bare, [], page);
      const inProse = [...text.matchAll(/`(sluice [a-z][^`]*)`/g)].map(([, words]) => words);
      assert.deepEqual(inProse, [], page);
    }
  });

  it('let nothing that runs by itself ask the registry for a package of our name', () => {
    const blocks = ALL_PAGES.flatMap((page) =>
      unattendedBlocks(readFileSync(join(PROJECT, page), 'utf8')).map((block) => ({ page, block })),
    );
    assert.ok(blocks.some(({ block }) => block.includes('sluice')));
    for (const { page, block } of blocks) assert.doesNotMatch(block, FETCHES, page);
    assert.match('ExecStart=/usr/bin/npx sluice serve', FETCHES);
    assert.doesNotMatch('npx --no-install sluice serve', FETCHES);
  });

  it('start the unit from the folder of the program, by a path that is there', () => {
    const page = readFileSync(join(PROJECT, 'docs', 'run_on_your_postgres.md'), 'utf8');
    const [unit = ''] = unattendedBlocks(page);
    const [, folder = '-'] = /^WorkingDirectory=(\/\S+)$/m.exec(unit) ?? [];
    const [, program = ''] = /^ExecStart=\/usr\/bin\/node (\S+) serve$/m.exec(unit) ?? [];
    assert.ok(program.startsWith(`${folder}/`), unit);
    assert.ok(existsSync(join(PROJECT, program.slice(folder.length))), program);
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

  it('show every picture that is kept, and none that is not', () => {
    const shown = ALL_PAGES.flatMap((page) =>
      [...readFileSync(join(PROJECT, page), 'utf8').matchAll(/!\[[^\]]*\]\(([^)]+)\)/g)].map(([, to = '']) =>
        join(dirname(page), to),
      ),
    );
    const kept = readdirSync(join(PROJECT, 'docs', 'pictures')).map((file) => `docs/pictures/${file}`);
    assert.deepEqual([...new Set(shown)].sort(), kept.sort());
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
      'console',
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
