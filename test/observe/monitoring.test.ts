import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { readPage } from '../contract/docs.ts';
import { ensureDebianPackages } from '../pgtap/debian_packages.ts';
import { runCommand } from '../run/command.ts';
import { PROJECT } from '../support/dev.ts';
import { documentedMetrics } from './documented.ts';

const PROMETHEUS = join(PROJECT, 'monitoring', 'prometheus');
const RULES = readFileSync(join(PROMETHEUS, 'rules.yml'), 'utf8');
const CASES = readFileSync(join(PROMETHEUS, 'rules.test.yml'), 'utf8');

interface Panel {
  id: number;
  type: string;
  title: string;
  gridPos: { x: number; y: number; w: number; h: number };
  targets?: { expr: string }[];
}

const dashboard: { uid: string; title: string; panels: Panel[] } = JSON.parse(
  readFileSync(join(PROJECT, 'monitoring', 'grafana', 'sluice.json'), 'utf8'),
);
const drawn = dashboard.panels.flatMap(({ title, targets = [] }) =>
  targets.map(({ expr }) => ({ title, expr })),
);

/** One alert of rules.yml: its lines, up to the next. */
const alerts = RULES.split(/^ {6}- alert: /m)
  .slice(1)
  .map((text) => ({ name: text.slice(0, text.indexOf('\n')), text }));

/** The words of an expression that can only be names of metrics. */
function metricsIn(expression: string): string[] {
  const bare = expression
    .replace(/"[^"]*"/g, '')
    .replace(/\{[^}]*\}/g, '')
    .replace(/\[[^\]]*\]/g, '')
    .replace(/\b(?:by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)/g, '')
    .replace(/\boffset \w+/g, '');
  return [...bare.matchAll(/\b[a-z_]\w*\b(?!\s*\()/g)]
    .map(([word]) => word)
    .filter((word) => !['and', 'or', 'unless', 'bool'].includes(word));
}

const documented = documentedMetrics();
/** What each cell counts for itself, and every process tells of each cell. */
const COUNTED_BY_CELLS = [
  'sluice_queue_depth',
  'sluice_queue_messages_total',
  'sluice_dead_letters',
  'sluice_inbox_depth',
  'sluice_inbox_dead_letters',
  'sluice_orders_held',
  'sluice_orders_paying',
  'sluice_orders_past_bound',
  'sluice_checkouts_to_close',
];
/** Prometheus' own, and prom-client's. */
const FOREIGN = /^(up|(process|nodejs)_\w+)$/;

function isKnown(name: string): boolean {
  if (documented.has(name) || FOREIGN.test(name)) return true;
  return documented.get(name.replace(/_(bucket|sum|count)$/, ''))?.kind === 'histogram';
}

async function promtool(
  t: TestContext,
  args: string[],
): Promise<{ code: number | null; output: string } | undefined> {
  // Debian's package starts a Prometheus when it is installed; with this it does not.
  process.env.RUNLEVEL ??= '1';
  const reason = await ensureDebianPackages(['prometheus']);
  if (reason !== undefined) {
    t.skip(`no promtool here to ask: ${reason}`);
    return undefined;
  }
  return runCommand('promtool', args, { cwd: PROMETHEUS });
}

describe('the dashboard', () => {
  it('draws only metrics that docs/metrics.md has', () => {
    assert.ok(drawn.length > 30);
    for (const { title, expr } of drawn) {
      const names = metricsIn(expr);
      assert.ok(names.length > 0, `${title} draws nothing`);
      for (const name of names) assert.ok(isKnown(name), `${title}: unknown metric ${name}`);
    }
    assert.equal(isKnown('sluice_made_up_total'), false);
  });

  it('draws every metric of ours somewhere', () => {
    const names = new Set(drawn.flatMap(({ expr }) => metricsIn(expr)));
    const isDrawn = (name: string) => [name, `${name}_bucket`].some((one) => names.has(one));
    assert.deepEqual(
      [...documented.keys()].filter((name) => !isDrawn(name)),
      [],
    );
  });

  it('adds up what several cells count, and shows that one of them is down', async (t) => {
    const counts = drawn.filter(({ expr }) =>
      metricsIn(expr).some((name) => COUNTED_BY_CELLS.includes(name)),
    );
    assert.deepEqual(new Set(counts.flatMap(({ expr }) => metricsIn(expr))), new Set(COUNTED_BY_CELLS));
    const ups = drawn.filter(({ expr }) => metricsIn(expr).includes('sluice_intake_up'));
    // Two processes tell of both cells. The second has 2 of each, or counts twice as fast, and is down.
    const series = ['one', 'two'].flatMap((instance) =>
      [1, 2].flatMap((n) => [
        ...COUNTED_BY_CELLS.map((name) => ({
          series: `${name}{cell="${n}", instance="${instance}"}`,
          values: name.endsWith('_total') ? `0+${60 * n}x10` : `${n}x10`,
        })),
        { series: `sluice_intake_up{cell="${n}", instance="${instance}"}`, values: `${2 - n}x10` },
      ]),
    );
    const answer = (value: number) => (panel: { expr: string }) => ({
      expr: panel.expr.replaceAll('$__rate_interval', '2m'),
      eval_time: '5m',
      exp_samples: [{ labels: '{}', value }],
    });
    const dir = mkdtempSync(join(tmpdir(), 'sluice-cells-'));
    t.after(() => rmSync(dir, { recursive: true }));
    const file = join(dir, 'cells.json');
    const tests = [
      {
        interval: '1m',
        input_series: series,
        promql_expr_test: [...counts.map(answer(3)), ...ups.map(answer(0))],
      },
    ];
    writeFileSync(file, JSON.stringify({ rule_files: [], evaluation_interval: '1m', tests }));
    const checked = await promtool(t, ['test', 'rules', file]);
    if (checked !== undefined) assert.equal(checked.code, 0, checked.output);
  });

  it('has a place of its own for each panel', () => {
    const { panels } = dashboard;
    assert.equal(new Set(panels.map(({ id }) => id)).size, panels.length);
    const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
      Array.from({ length: w * h }, (_, n) => `${x + (n % w)} ${y + Math.floor(n / w)}`),
    );
    assert.equal(new Set(cells).size, cells.length);
  });

  it('asks questions that Prometheus understands', async (t) => {
    const dir = mkdtempSync(join(tmpdir(), 'sluice-dashboard-'));
    t.after(() => rmSync(dir, { recursive: true }));
    const rules = drawn.map(({ expr }, n) => ({
      record: `sluice:panel_${n}`,
      expr: expr.replaceAll('$__rate_interval', '1m'),
    }));
    const file = join(dir, 'panels.json');
    // JSON is YAML.
    writeFileSync(file, JSON.stringify({ groups: [{ name: 'panels', rules }] }));
    const checked = await promtool(t, ['check', 'rules', file]);
    if (checked !== undefined) assert.equal(checked.code, 0, checked.output);
  });
});

describe('the alerts', () => {
  it('go by metrics that docs/metrics.md has', () => {
    assert.ok(alerts.length >= 9);
    for (const { name, text } of alerts) {
      const [, expression = ''] = /^ {8}expr: ([\s\S]*?)^ {8}for:/m.exec(text) ?? [];
      const metrics = metricsIn(expression.replace(/^\|/, ''));
      assert.ok(metrics.length > 0, `${name} goes by nothing`);
      for (const metric of metrics) assert.ok(isKnown(metric), `${name}: unknown metric ${metric}`);
    }
  });

  it('each say what it is, and link to what to do about it', () => {
    const headings = new Set(
      [...readPage('observe.md').matchAll(/^### (\w+)$/gm)].map(([, heading = '']) => heading.toLowerCase()),
    );
    for (const { name, text } of alerts) {
      for (const field of ['severity', 'summary', 'description'])
        assert.match(text, new RegExp(`^ +${field}: \\S`, 'm'), `${name} has no ${field}`);
      const [, anchor = ''] = /runbook_url: docs\/observe\.md#(\w+)$/m.exec(text) ?? [];
      assert.ok(headings.has(anchor), `${name} links to #${anchor}, which is not there`);
    }
  });

  it('each have a case in which they fire', () => {
    const firing = new Set(
      [...CASES.matchAll(/alertname: (\w+)\n +exp_alerts:\n/g)].map(([, name = '']) => name),
    );
    assert.deepEqual(
      alerts.map(({ name }) => name).filter((name) => !firing.has(name)),
      [],
    );
  });

  for (const args of [
    ['check', 'rules', 'rules.yml'],
    ['check', 'config', 'prometheus.yml'],
    ['test', 'rules', 'rules.test.yml'],
  ])
    it(`pass promtool ${args.join(' ')}`, async (t) => {
      const checked = await promtool(t, args);
      if (checked !== undefined) assert.equal(checked.code, 0, checked.output);
    });

  it('do not pass promtool where a rule is broken', async (t) => {
    const dir = mkdtempSync(join(tmpdir(), 'sluice-rules-'));
    t.after(() => rmSync(dir, { recursive: true }));
    const file = join(dir, 'rules.yml');
    writeFileSync(
      file,
      RULES.replace('max(sluice_queue_oldest_seconds) > 60', 'max(sluice_queue_oldest_seconds >'),
    );
    const checked = await promtool(t, ['check', 'rules', file]);
    if (checked !== undefined) assert.notEqual(checked.code, 0);
  });
});
