// `node bench/start.js`: how long `sluice` takes to start, as times of a Node that does nothing. Plain JavaScript, because
// what it measures is a start without a compiler.

import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const SLUICE = fileURLToPath(new URL('../bin/sluice.js', import.meta.url));
const ROUNDS = 21;

const CASES = [
  { name: 'node -e 0', args: ['-e', '0'] },
  { name: 'sluice --version', args: [SLUICE, '--version'], atMost: 4 },
  { name: 'sluice serve --help', args: [SLUICE, 'serve', '--help'], atMost: 10 },
];

function startMs(args) {
  const startedAt = performance.now();
  const { status, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`${args.join(' ')} ended with ${status}: ${stderr}`);
  return performance.now() - startedAt;
}

const median = (values) => values.sort((a, b) => a - b)[Math.floor(values.length / 2)];

// The first start may build, and reads every file for the first time.
for (const { args } of CASES) startMs(args);
const times = CASES.map(() => []);
// In turn, so that what else the machine does meets all of them alike.
for (let round = 0; round < ROUNDS; round++)
  for (const [i, { args }] of CASES.entries()) times[i].push(startMs(args));

const [nothing, ...rest] = times.map(median);
console.log(`${CASES[0].name}: ${nothing.toFixed(0)} ms (median of ${ROUNDS})`);
for (const [i, ms] of rest.entries()) {
  const { name, atMost } = CASES[i + 1];
  const ratio = ms / nothing;
  const verdict = ratio <= atMost ? 'ok' : 'NOT MET';
  console.log(`${name}: ${ms.toFixed(0)} ms, ${ratio.toFixed(1)} times (at most ${atMost}) ${verdict}`);
}
