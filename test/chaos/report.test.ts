import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { productHash, UNKNOWN } from '../../bench/provenance.ts';
import { MAX_SUMMARY_BYTES, type Raw, type Summary, summaryText } from '../../bench/summaries.ts';
import { CONTROLS } from '../../chaos/controls/controls.ts';
import { FAULT_KINDS } from '../../chaos/faults/kinds.ts';
import { judge, PROMISES } from '../../chaos/judge.ts';
import { duration, plain, small, table } from '../../chaos/markdown.ts';
import { NEIGHBOURS } from '../../chaos/options.ts';
import { clearer, pictureOf, plot } from '../../chaos/plot.ts';
import { type Results, readResults, reportOf, writeReport } from '../../chaos/report.ts';
import { joinRuns, type RunResult, resultOf, summaryOfRun } from '../../chaos/result.ts';
import { PROJECT } from '../support/dev.ts';
import { BAD_HISTORIES } from './bad_histories.ts';
import { addNeighbour } from './bad_neighbours.ts';
import { goodHistory } from './good_history.ts';
import { addOrders, HOLD_UNTIL } from './good_orders.ts';

/** Of the product files beside the page; not those of the sample runs. */
const TREE = 'd'.repeat(64);
const ORIGIN = {
  ...{ suite: 'chaos', at: '2026-01-01T00:00:00Z', commit: 'a'.repeat(40), product_hash: 'c'.repeat(64) },
  ...{ command: 'npm run chaos -- --seed 1', machine: { cores: 2 }, durability: { fsync: 'on' } },
};

function sampleRun(spoil: (typeof BAD_HISTORIES)[number]['spoil'] = () => undefined): RunResult {
  const history = goodHistory();
  history.faults.push({
    ...{ name: 'kill-db1-postmaster', target: 'db1 <&>' },
    ...{ startedAt: 30_000, healedAt: 33_000, recoveredAt: 33_500 },
  });
  history.operatorActions.push({
    ...{ action: 'dead_letter_replay', ids: [], reason: 'late', at: 60_000, answer: 'done', results: [] },
  });
  spoil(history);
  return resultOf(history, judge(history));
}

const rawOf = (result: RunResult, origin: Partial<typeof ORIGIN> = {}): Raw<RunResult> => ({
  ...{ ...ORIGIN, ...origin, product_hash_at_end: ORIGIN.product_hash, result },
});
const summaryOf = <Result>(result: Result): Summary<Result> => ({ ...ORIGIN, result });
const chaosOf = (...raw: Raw<RunResult>[]) => summaryOf(raw.map(summaryOfRun).reduce(joinRuns));

const control = {
  ...{ name: 'fence-off', why: 'no fence', promises: ['I9'] as const, seed: 4, elapsedMs: 12_345, rounds: 2 },
  ...{ violations: { I9: 3 }, example: { promise: 'I9' as const, what: 'message 7 was ended | late' } },
};

describe('the report', () => {
  let dir: string;
  const results: Results = {
    chaos: chaosOf(rawOf(sampleRun())),
    controls: summaryOf({ controls: [control] }),
    others: {},
  };
  before(() => {
    dir = mkdtempSync(join(tmpdir(), 'sluice-report-'));
  });
  after(() => rmSync(dir, { recursive: true, force: true }));

  test('in docs/ is the one that the kept summaries make', (t) => {
    if (productHash() === UNKNOWN) return t.skip('git does not say which files these are');
    const page = readFileSync(join(PROJECT, 'docs/reliability.md'), 'utf8');
    assert.equal(page, reportOf(readResults()), 'npm run bench -- figures writes it');
  });

  test('shows each kept summary, and no picture of a run that is not kept', () => {
    const kept = readResults();
    const page = reportOf(kept);
    const suites = [kept.chaos?.suite, kept.controls?.suite, ...Object.keys(kept.others)].filter(Boolean);
    for (const suite of suites)
      assert.ok(
        page.includes(`| [${suite}](../chaos/summaries/${suite}.json) | `),
        `${suite} is not on the page`,
      );
    const { chaos } = kept;
    const picture = chaos?.result.picture;
    if (picture)
      assert.ok(
        chaos?.result.runs.some(({ seed }) => seed === picture.seed),
        `the run with seed ${picture.seed} is not kept`,
      );
  });

  test('says of each source whether it is of the product files of this tree', () => {
    const same = reportOf(results, ORIGIN.product_hash);
    assert.match(same, /^\| \[chaos\]\(\S+\) \| 2026-01-01 \| aaaaaaa \| cccccccccccc \| yes \|$/m);
    assert.match(same, /All of them are of the product files of this tree/);
    const fuzz = { ...summaryOf({ requests: 1 }), suite: 'fuzz', product_hash: 'e'.repeat(64) };
    const mixed = reportOf({ ...results, others: { fuzz } }, TREE);
    assert.match(mixed, /^\| \[fuzz\]\(\S+\) \| 2026-01-01 \| aaaaaaa \| eeeeeeeeeeee \| \*\*no\*\* \|$/m);
    assert.match(mixed, /\*\*3 of 3 are of other product files.*2 versions/);
    assert.match(
      mixed,
      /- commit: aaaaaaa \(product files eeeeeeeeeeee\)\. \*\*The product files have changed/,
    );
  });

  test('counts a seed once: a run with a seed that is kept is refused', () => {
    const one = summaryOfRun(rawOf({ ...sampleRun(), seed: 1 }));
    const other = summaryOfRun(rawOf({ ...sampleRun(), seed: 2 }));
    const both = joinRuns(other, one);
    assert.deepEqual(
      both.runs.map(({ seed }) => seed),
      [1, 2],
    );
    assert.equal(both.faults['kill-db1-postmaster']?.times, 2);
    assert.throws(() => joinRuns(both, one), /a run with seed 1 of these product files is kept already/);
  });

  test('of six long runs is small enough to be kept', () => {
    const busy = sampleRun((history) => {
      const kinds = Object.keys(FAULT_KINDS);
      history.faults = kinds.map((name, at) => ({
        ...{
          name,
          target: 'all of them',
          startedAt: 10_000 + at,
          healedAt: 12_000 + at,
          recoveredAt: 13_000,
        },
      }));
    });
    const row = {
      ...{ requests: 100, failures: 0, failedWith: null, p99: 12, quietP99: 9, limit: 250 },
      ...{ verdict: 'kept' as const, why: null },
    };
    const neighbours = NEIGHBOURS.flatMap((neighbour) =>
      (['claim', 'ticket', 'event', 'effect'] as const).map((measure) => ({ ...row, neighbour, measure })),
    );
    const runs = [1, 2, 3, 4, 5, 6].map((seed) => rawOf({ ...busy, seed, neighbours }));
    const summary = chaosOf(...runs);
    assert.equal(summary.result.runs.length, 6);
    assert.equal(summary.result.neighbours.length, neighbours.length);
    assert.equal(summary.result.neighbours[0]?.requests, 600);
    const bytes = Buffer.byteLength(summaryText(summary));
    assert.ok(bytes < MAX_SUMMARY_BYTES, `${bytes} bytes`);
  });

  test('is written from summaries, with its picture', () => {
    const page = readFileSync(writeReport(results, dir), 'utf8');
    // 6 claims, 4 events, 1 call and 2 operator actions were acknowledged.
    assert.match(page, /13 acknowledgements, 3 faults \(2 crashes, 1 cuts\), \*\*0 violations\*\*/);
    assert.match(page, /3\/n = 0.23/);
    assert.match(
      page,
      /\| fence-off \| no fence \| 4 \| 12\.3 s \| I9 3 \| I9: message 7 was ended \\\| late \|/,
    );
    assert.match(page, /pictures\/throughput-through-a-fault\.svg/);
    assert.match(page, /!\[[^\]]*claims, events and calls together/);
    for (const name of Object.keys(PROMISES)) assert.match(page, new RegExp(`^\\| ${name} \\|`, 'm'));
    assert.match(page, /## Not tested/);
    assert.match(readFileSync(join(dir, 'pictures/throughput-through-a-fault.svg'), 'utf8'), /^<svg /);
  });

  test('names the commit of each run, and says which had changes', () => {
    const [one = '', other = ''] = ['a'.repeat(40), `${'b'.repeat(40)} with changes`];
    const runs = [
      rawOf({ ...sampleRun(), seed: 1 }, { commit: one }),
      rawOf({ ...sampleRun(), seed: 2 }, { commit: other }),
    ];
    const page = reportOf({ ...results, chaos: chaosOf(...runs) });
    assert.match(page, /^2 runs/m);
    assert.match(page, /^\| 1 \| aaaaaaa \|/m);
    assert.match(page, /^\| 2 \| bbbbbbb with changes \|/m);
  });

  test('says of I13 that it was not judged, and with neighbours what the healthy one met', () => {
    const without = reportOf(results);
    assert.match(without, /of the promises I1 to I12\./);
    assert.match(without, /^\| I13 \|[^|]*\| not judged \|/m);
    assert.doesNotMatch(without, /## Neighbours/);
    const beside = rawOf(sampleRun((history) => addNeighbour(history)));
    const page = reportOf({ ...results, chaos: chaosOf(beside) });
    assert.match(page, /of the promises I1 to I13\./);
    assert.match(page, /^\| I13 \|[^|]*\| 0 \|/m);
    assert.match(
      page,
      /^\| neighbour-slow-hook \| ticket \| 150 \| 0 \| 40 ms \| 40 ms \| 250 ms \| kept \|/m,
    );
  });

  test('says how long the longest hold was, and whether that is within its bound', () => {
    assert.doesNotMatch(reportOf(results), /## Holds/);
    const pageOf = (freedAfterMs: number): string => {
      const run = sampleRun((history) => {
        // A fault would excuse it.
        history.faults = [];
        const seat = addOrders(history).final.claims.find(({ claimId }) => claimId === 'o6');
        if (seat !== undefined) seat.freedAt = HOLD_UNTIL + freedAfterMs;
      });
      return reportOf({ ...results, chaos: chaosOf(rawOf(run)) });
    };
    const within = pageOf(800);
    assert.match(within, /of the promises I1 to I18\./);
    assert.match(
      within,
      /\*\*No seat was held longer than its bound\*\*: of 3 orders the longest kept its seats 800 ms past its hold \(never asked to pay\), and its bound is 1,000 ms\./,
    );
    assert.match(
      pageOf(2_500),
      /\*\*1 of 3 orders held seats longer than the bound\*\*, the longest 2,500 ms past its hold \(never asked to pay\), 1,500 ms more than its bound of 1,000 ms\./,
    );
  });

  test('does not claim a bound when there was a violation, and shows an example', () => {
    const page = reportOf({ ...results, chaos: chaosOf(rawOf(sampleRun(BAD_HISTORIES[0]?.spoil))) });
    assert.match(page, /\*\*1 violations\*\*/);
    assert.doesNotMatch(page, /95 %/);
    assert.match(page, /seed 1: I1 request r9 of pool rpc was acknowledged and has no claim/);
  });

  test('says "not found" of a control that found nothing', () => {
    const missed = { ...control, seed: null, violations: {}, example: null };
    assert.match(
      reportOf({ ...results, controls: summaryOf({ controls: [missed] }) }),
      /fence-off \| no fence \| – \| not found \| 0/,
    );
  });

  test('says what has no summary, and shows what has one, with its command and its note', () => {
    const result = { seed: 3, histories: 20_000, violations: [], controls: [{ name: 'x', seed: 9 }] };
    const model = { ...summaryOf(result), command: 'npm run model', note: 'on a busy machine' };
    const page = reportOf({ ...results, others: { model } });
    assert.match(page, /- command: `npm run model`\n- commit: aaaaaaa .*\n- note: on a busy machine\n/);
    assert.match(page, /- histories: 20,000/);
    assert.match(page, /- violations: none/);
    assert.match(page, /\| x \| 9 \|/);
    assert.match(page, /Fuzzed requests: no summary is kept/);
    assert.doesNotMatch(page, /Random histories against a model: no summary/);
  });

  test('of nothing says that nothing is kept', () => {
    const page = reportOf({ others: {} });
    assert.match(page, /No run is kept yet/);
    assert.doesNotMatch(page, /undefined|NaN|\[object/);
  });
});

describe('the picture', () => {
  const pictureOfAll = (...runs: RunResult[]) => runs.map((run) => pictureOf(run) ?? null).reduce(clearer);
  const drawn = (...runs: RunResult[]): string => {
    const picture = pictureOfAll(...runs);
    assert.ok(picture);
    // A kept one comes back from JSON.
    return plot(JSON.parse(JSON.stringify(picture)));
  };

  test('shows a fault that stops claims, says what else it counts, and is well-formed', () => {
    const svg = drawn(sampleRun());
    assert.match(svg, /<desc id="d">[^<]*claims, events and calls together/);
    assert.match(svg, /kill-db1-postmaster db1 &lt;&amp;&gt;/);
    assert.doesNotMatch(svg, /NaN|undefined|Infinity/);
    assert.match(svg, /prefers-color-scheme: dark/);
  });

  test('is of the run in which the fewest other faults went on meanwhile', () => {
    const cluttered = sampleRun((history) => {
      history.faults.push({ name: 'cut', target: 'x', startedAt: 1, healedAt: 90_000, recoveredAt: null });
    });
    const clear = { ...sampleRun(), seed: 7 };
    const calm = sampleRun((history) => {
      history.faults = [];
    });
    assert.equal(pictureOfAll(calm, cluttered, clear)?.seed, 7);
    assert.equal(pictureOfAll(clear, cluttered, calm)?.seed, 7);
    assert.match(drawn(calm, cluttered, clear), /seed 7/);
  });

  test('is left out where no such fault happened', () => {
    assert.equal(pictureOf({ ...sampleRun(), faults: [] }), undefined);
  });
});

describe('figures in the report', () => {
  test('read as people write them', () => {
    assert.equal(duration(null), '–');
    assert.equal(duration(1_234), '1,234 ms');
    assert.equal(duration(65_432), '65.4 s');
    assert.equal(small(0.000012), '1.2 × 10⁻⁵');
    assert.equal(table(['a', 'b'], [[1, 'x']]), '| a | b |\n|---:|---|\n| 1 | x |');
    assert.equal(plain({ a_b: 1, c: [{ d: null }] }), '- a b: 1\n\nc:\n\n| d |\n|---:|\n| – |');
  });
});

test('every negative control names the promise it breaks, and each promise is broken by a control', () => {
  const named = new Set(CONTROLS.flatMap((one) => one.promises));
  assert.ok(CONTROLS.every((one) => one.promises.length > 0 && one.why !== ''));
  assert.deepEqual(
    Object.keys(PROMISES).filter((name) => !named.has(name as keyof typeof PROMISES)),
    [],
  );
});
