import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, it } from 'node:test';
import type { Ack } from '../../src/db/ack.ts';
import { judgeCell } from '../../src/doctor/cell.ts';
import type { Finding } from '../../src/doctor/finding.ts';
import { type Facts, type Look, look } from '../../src/doctor/look.ts';
import { type Patroni, readPatroni } from '../../src/doctor/patroni.ts';
import { type Pair, startPair } from '../support/standby.ts';

const shortly = (findings: readonly Finding[]) => findings.map(({ check, status }) => `${status} ${check}`);
const ONE = 'postgres://h/db';
const SEVERAL = 'postgres://a,b,c/db';
const SAFE: Patroni = {
  version: '3.3.0',
  config: {
    synchronous_mode: true,
    synchronous_mode_strict: true,
    maximum_lag_on_failover: 0,
    failsafe_mode: true,
    primary_start_timeout: 0,
  },
};
const STANDBYS = [
  { name: 'p2', state: 'streaming', sync_state: 'sync' },
  { name: 'p3', state: 'streaming', sync_state: 'async' },
];

function judge(
  url: string,
  facts: Partial<Facts>,
  { ack, patroni }: { ack?: Ack; patroni?: Patroni } = {},
): string[] {
  const seen = {
    url,
    facts: {
      is_standby: false,
      synchronous_commit: 'on',
      synchronous_standby_names: '',
      standbys: [],
      ...facts,
    },
  } as unknown as Look;
  return shortly(judgeCell('DB', seen, ack, patroni));
}

describe('what the doctor thinks of a cell', () => {
  const inStep = { synchronous_standby_names: 'p2', standbys: STANDBYS };

  it('says what an acknowledgement means on a server without standbys', () => {
    assert.deepEqual(judge(ONE, {}), ['ok DB: acknowledged']);
    assert.deepEqual(judge(ONE, {}, { ack: 'local' }), ['ok DB: acknowledged']);
  });

  it('is content with a synchronous, strict cell of three', () => {
    const all = ['ok DB: acknowledged', 'ok DB: standbys', 'ok DB: Patroni'];
    assert.deepEqual(judge(SEVERAL, inStep, { patroni: SAFE }), all);
    assert.deepEqual(judge(SEVERAL, inStep, { ack: 'quorum', patroni: SAFE }), all);
  });

  const acks: [why: string, got: string[], expected: string][] = [
    ['several hosts without a standby that commits wait for', judge(SEVERAL, { standbys: STANDBYS }), 'fail'],
    ['quorum asked of a server that waits for none', judge(ONE, {}, { ack: 'quorum' }), 'fail'],
    ['commits that wait for none', judge(ONE, { ...inStep, synchronous_commit: 'local' }), 'fail'],
    ['commits that wait for no disk', judge(ONE, { ...inStep, synchronous_commit: 'remote_write' }), 'warn'],
    ['local on a cell', judge(SEVERAL, inStep, { ack: 'local' }), 'warn'],
  ];
  for (const [why, got, expected] of acks)
    it(`finds ${why}`, () => assert.equal(got[0], `${expected} DB: acknowledged`));

  it('finds standbys that are not there, and those that it may not see', () => {
    const standbys = (...list: Facts['standbys']) => judge(ONE, { ...inStep, standbys: list })[1];
    assert.equal(standbys(), 'fail DB: standbys');
    assert.equal(standbys({ name: 'p3', state: 'streaming', sync_state: 'async' }), 'fail DB: standbys');
    assert.equal(standbys({ name: 'p2', state: 'streaming', sync_state: 'sync' }), 'warn DB: standbys');
    assert.equal(standbys({ name: 'p2', state: null, sync_state: null }), 'skip DB: standbys');
  });

  it('refuses what loses data, and warns of what costs time', () => {
    const patroni = (change: Record<string, unknown>, version = '3.3.0') =>
      judge(SEVERAL, inStep, { patroni: { version, config: { ...SAFE.config, ...change } } })[2];
    assert.equal(
      patroni({ synchronous_mode: false, maximum_lag_on_failover: 1_048_576 }),
      'fail DB: Patroni',
    );
    assert.equal(patroni({ synchronous_mode_strict: false }), 'fail DB: Patroni');
    assert.equal(patroni({}, '3.0.2'), 'warn DB: Patroni');
    assert.equal(patroni({}, '3.0.3'), 'ok DB: Patroni');
    assert.equal(patroni({}, '4.0.1'), 'ok DB: Patroni');
    assert.equal(patroni({ failsafe_mode: false }), 'warn DB: Patroni');
    assert.equal(patroni({ primary_start_timeout: 300 }), 'warn DB: Patroni');
    assert.equal(judge(SEVERAL, inStep)[2], 'skip DB: Patroni');
  });
});

describe('the REST API of Patroni', () => {
  it('is read where it answers, and not missed where it does not', async () => {
    const server = createServer((request, response) =>
      response.end(
        JSON.stringify(request.url === '/config' ? SAFE.config : { patroni: { version: '3.3.0' } }),
      ),
    );
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const given = `http://127.0.0.1:1,http://127.0.0.1:${port}`;
    assert.deepEqual(await readPatroni(SEVERAL, given), SAFE);
    server.close();
    server.closeAllConnections();
    assert.equal(await readPatroni(SEVERAL, given), undefined);
    assert.equal(await readPatroni(ONE, undefined), undefined);
  });
});

describe('the doctor at a primary and its standby', () => {
  let pair: Pair;
  before(async () => {
    pair = await startPair('db1');
  });
  after(() => pair?.stop());
  const findings = async (url: string) =>
    shortly(judgeCell('DB', await look('db1', url), undefined, undefined));

  it('finds the primary by itself, and says whether its standby is waited for', async () => {
    assert.deepEqual((await findings(pair.url)).slice(0, 2), ['fail DB: acknowledged', 'fail DB: standbys']);
    await pair.synchronous(true);
    assert.deepEqual((await findings(pair.url)).slice(0, 2), ['ok DB: acknowledged', 'warn DB: standbys']);
    assert.deepEqual(await findings(pair.second.url), []);
  });
});
