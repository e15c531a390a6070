import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { solveChallenge } from '#client/solve.ts';
import { HttpError } from '#core/errors.ts';
import { Router } from '#core/router.ts';
import { loadChallengeVerifier, readBuyerSettings } from '../../src/server/buyer_settings.ts';
import { CHALLENGE_LIFETIME_SEC, type ChallengeVerifier, proofOfWork } from '../../src/server/challenge.ts';
import { createChallenges } from '../../src/server/challenge_route.ts';
import { HttpServer } from '../../src/server/http.ts';
import { memoryLog } from '../core/support.ts';
import { PROJECT } from '../support/dev.ts';
import { ask, assertRefusal, JWT_SECRET } from './support.ts';

const DIFFICULTY = 2_000;
const solve = async (verifier: ChallengeVerifier, pool: string, difficulty = DIFFICULTY): Promise<string> =>
  (await solveChallenge(JSON.parse(JSON.stringify(await verifier.issue(pool, difficulty))))) ?? '';
// biome-ignore lint/suspicious/noExplicitAny: an attacker changes whatever is there.
type Sent = any;
const changed = (solution: string, change: (sent: Sent) => void): string => {
  const sent = JSON.parse(atob(solution));
  change(sent);
  return btoa(JSON.stringify(sent));
};

describe('the proof of work', () => {
  const here = proofOfWork(JWT_SECRET, Date.now);
  /** Another server of the same project. */
  const there = proofOfWork(JWT_SECRET, Date.now);

  it('is good at every server of the project, and is the same one at each', async () => {
    const solution = await solve(here, 'p');
    const [first, second] = [
      await here.verify(solution, 'p', undefined),
      await there.verify(solution, 'p', '1.2.3.4'),
    ];
    assert.equal(first?.difficulty, DIFFICULTY);
    assert.match(first?.id ?? '', /^[0-9a-f]{64}$/);
    assert.deepEqual(second, first);
    const other = await here.verify(await solve(here, 'p'), 'p', undefined);
    assert.notEqual(other?.id, first?.id, 'two challenges are two');
  });

  it('fits into a claim, also in a pool with the longest name', async () => {
    const pool = '🎫'.repeat(200);
    const solution = await solve(here, pool);
    assert.ok(solution.length <= 2_048, `${solution.length} characters`);
    assert.equal((await here.verify(solution, pool, undefined))?.difficulty, DIFFICULTY);
  });

  it('is refused in another pool, of another project, when it is late, and however it was changed', async () => {
    const solution = await solve(here, 'p');
    const late = proofOfWork(JWT_SECRET, () => Date.now() - (CHALLENGE_LIFETIME_SEC + 2) * 1_000);
    const foreign = proofOfWork(`${JWT_SECRET}x`, Date.now);
    const tries: [string, string, string][] = [
      ['in another pool', solution, 'q'],
      ['of another project', await solve(foreign, 'p'), 'p'],
      ['made five minutes ago', await solve(late, 'p'), 'p'],
      [
        'kept alive',
        changed(await solve(late, 'p'), ({ challenge }) => (challenge.parameters.expiresAt += 600)),
        'p',
      ],
      ['without an end', changed(solution, ({ challenge }) => delete challenge.parameters.expiresAt), 'p'],
      [
        'made harder',
        changed(solution, ({ challenge }) => (challenge.parameters.data.difficulty = 1e9)),
        'p',
      ],
      ['without a key', changed(solution, (sent) => delete sent.solution.derivedKey), 'p'],
      ['without a solution', changed(solution, (sent) => delete sent.solution), 'p'],
      [
        'with half of the key',
        changed(solution, ({ challenge, solution: it }) => (it.derivedKey = challenge.parameters.keyPrefix)),
        'p',
      ],
      [
        'with a key of its own',
        changed(solution, ({ challenge }) => delete challenge.parameters.keySignature),
        'p',
      ],
      [
        'with a signature that is a list',
        changed(solution, ({ challenge }) => (challenge.signature = [...challenge.signature])),
        'p',
      ],
      ['without a signature', changed(solution, ({ challenge }) => delete challenge.signature), 'p'],
      ['without parameters', changed(solution, ({ challenge }) => (challenge.parameters = null)), 'p'],
      ['that is null', btoa('null'), 'p'],
      ['that is a text', btoa('"x"'), 'p'],
      ['that is nothing', '', 'p'],
      ['that is not base64', '{"challenge":1}', 'p'],
      [
        'of the first version',
        btoa(JSON.stringify({ algorithm: 'SHA-256', challenge: 'x', number: 1, salt: 'x', signature: 'x' })),
        'p',
      ],
    ];
    for (const [what, sent, pool] of tries)
      assert.equal(await here.verify(sent, pool, undefined), undefined, `a solution ${what}`);
    // The control: the one that was changed is good as it was.
    assert.ok(await here.verify(solution, 'p', undefined));
    assert.ok(
      await here.verify(
        changed(solution, () => undefined),
        'p',
        undefined,
      ),
    );
  });

  it('has one id however its solution is written', async () => {
    const solution = await solve(here, 'p');
    const ids = [];
    for (const written of [
      solution,
      btoa(JSON.stringify(JSON.parse(atob(solution)), null, 1)),
      changed(solution, (sent) => (sent.solution.time = 12_345)),
      changed(solution, (sent) => (sent.solution.counter = 1)),
      changed(
        solution,
        ({ challenge }) =>
          (challenge.parameters = Object.fromEntries(Object.entries(challenge.parameters).reverse())),
      ),
    ])
      ids.push((await here.verify(written, 'p', undefined))?.id);
    assert.ok(ids[0]);
    assert.deepEqual(new Set(ids), new Set([ids[0]]));
  });
});

describe('the route of challenges', () => {
  const verifier = proofOfWork(JWT_SECRET, Date.now);
  const pools: Record<string, number | null> = { puzzle: DIFFICULTY, plain: null };
  const log = memoryLog();
  let server: HttpServer;
  let url: string;
  let isBroken = false;
  before(async () => {
    const { routes } = createChallenges({
      verifier: {
        ...verifier,
        issue: async (...given) => {
          if (isBroken) throw new Error('the other service is down');
          return verifier.issue(...given);
        },
      },
      difficultyOf: async (pool) => pools[pool],
    });
    server = new HttpServer(new Router(routes(), log), log);
    url = `http://127.0.0.1:${await server.listen(0)}`;
  });
  after(() => server.close());

  it('gives each who asks a challenge of their own, which nothing may keep', async () => {
    const [first, second] = [
      await ask(`${url}/v1/pools/puzzle/challenge`),
      await ask(`${url}/v1/pools/puzzle/challenge`),
    ];
    assert.equal(first.status, 200);
    assert.equal(first.headers['cache-control'], 'no-store');
    assert.notEqual(first.json.signature, second.json.signature);
    const solution = (await solveChallenge(first.json)) ?? '';
    assert.equal((await verifier.verify(solution, 'puzzle', undefined))?.id, first.json.signature);
  });

  it('says null for a pool that asks for none, and 404 for one that is not there', async () => {
    const plain = await ask(`${url}/v1/pools/plain/challenge`);
    assert.deepEqual([plain.status, plain.text], [200, 'null']);
    assertRefusal(await ask(`${url}/v1/pools/nowhere/challenge`), 404, 'unknown_pool');
  });

  it('answers 503 while the verifier cannot make one', async () => {
    isBroken = true;
    const answer = await ask(`${url}/v1/pools/puzzle/challenge`);
    isBroken = false;
    assertRefusal(answer, 503, 'auth_unavailable');
    assert.ok(answer.headers['retry-after']);
  });
});

const EXAMPLE = 'turnstile.ts';
/** The pool, as Turnstile's cdata can hold it. */
const P = createHash('sha256').update('p').digest('hex');

/** The worked example, as the page has it. */
function exampleOnPage(): string {
  const page = readFileSync(join(PROJECT, 'docs', 'secure.md'), 'utf8');
  const text = /```ts\n(\/\/ turnstile\.ts\n[\s\S]*?)```/.exec(page)?.[1];
  assert.ok(text, 'docs/secure.md has the example');
  return text;
}

describe('a verifier of the operator’s own', () => {
  let folder: string;
  let service: Server;
  const asked: Record<string, string>[] = [];
  let answer: (form: Record<string, string>) => [number, unknown] = () => [500, {}];
  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'sluice-verifier-'));
    service = createServer(async (request, response) => {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk);
      const form = Object.fromEntries(new URLSearchParams(Buffer.concat(chunks).toString()));
      asked.push({ ...form, path: `${request.method} ${request.url}` });
      const [status, body] = answer(form);
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    });
    await new Promise<void>((resolve) => service.listen(0, '127.0.0.1', resolve));
    process.env.TURNSTILE_SITE_KEY = '1x00000000000000000000AA';
    process.env.TURNSTILE_SECRET = 'the secret of the site';
    process.env.TURNSTILE_URL = `http://127.0.0.1:${(service.address() as AddressInfo).port}/siteverify`;
    writeFileSync(join(folder, EXAMPLE), exampleOnPage());
  });
  after(async () => {
    for (const name of ['TURNSTILE_SITE_KEY', 'TURNSTILE_SECRET', 'TURNSTILE_URL']) delete process.env[name];
    await new Promise((resolve) => service.close(resolve));
    rmSync(folder, { recursive: true, force: true });
  });
  const load = async () => {
    const verifier = await loadChallengeVerifier(join(folder, EXAMPLE));
    assert.ok(verifier);
    return createChallenges({ verifier, difficultyOf: async () => 1 });
  };

  it('asks Turnstile with secret, response and remoteip, and takes its word', async () => {
    const { verify } = await load();
    answer = () => [200, { success: true, cdata: P }];
    const first = await verify('a token', 'p', '192.0.2.7');
    assert.deepEqual(asked.at(-1), {
      path: 'POST /siteverify',
      secret: 'the secret of the site',
      response: 'a token',
      remoteip: '192.0.2.7',
    });
    assert.match(first?.id ?? '', /^[\x21-\x7e]{1,200}$/);
    assert.deepEqual(await verify('a token', 'p', undefined), first, 'the same token is the same id');
    assert.equal(asked.at(-1)?.remoteip, undefined);
    assert.notEqual((await verify('another', 'p', undefined))?.id, first?.id);
  });

  it('refuses what Turnstile refuses, and a token of another pool', async () => {
    const { verify } = await load();
    answer = () => [200, { success: false, 'error-codes': ['timeout-or-duplicate'] }];
    assert.equal(await verify('an old token', 'p', undefined), undefined);
    answer = () => [200, { success: true, cdata: 'of another' }];
    assert.equal(await verify('a token', 'p', undefined), undefined);
  });

  it('cannot tell while Turnstile is down, which is a 503 and not a refusal', async () => {
    const { verify } = await load();
    answer = () => [502, 'bad gateway'];
    await assert.rejects(
      verify('a token', 'p', undefined),
      (error: unknown) => error instanceof HttpError && error.kind.code === 'auth_unavailable',
    );
  });

  it('gives out what its page needs, which our solver leaves alone', async () => {
    const verifier = await loadChallengeVerifier(join(folder, EXAMPLE));
    const issued = await verifier?.issue('p', 1);
    assert.deepEqual(issued, { turnstile: { sitekey: '1x00000000000000000000AA', cdata: P } });
    assert.equal(await solveChallenge(issued), undefined);
  });

  it('is checked when it is loaded, and what it says when it is asked', async () => {
    assert.equal(await loadChallengeVerifier(undefined), undefined);
    const wrong = join(folder, 'wrong.ts');
    for (const [text, reason] of [
      ['export default 7', /no functions issue and verify/],
      ['export default { issue() {} }', /no functions issue and verify/],
      ['export default (', /the verifier of challenges in .* cannot be loaded/],
    ] as const) {
      writeFileSync(wrong, text);
      await assert.rejects(loadChallengeVerifier(wrong), reason);
    }
    for (const login of ['tickets.example.com', 'javascript:alert(1)'])
      await assert.rejects(readBuyerSettings({ SLUICE_LOGIN_URL: login }), /SLUICE_LOGIN_URL is/);
    assert.deepEqual(await readBuyerSettings({ SLUICE_LOGIN_URL: '' }), {});
    for (const said of [
      { id: '', difficulty: 1 },
      { id: 'a b', difficulty: 1 },
      { id: 'x', difficulty: 1.5 },
      { id: 'x' },
    ]) {
      const verifier = { issue: async () => 1, verify: async () => said } as unknown as ChallengeVerifier;
      const { verify } = createChallenges({ verifier, difficultyOf: async () => 1 });
      await assert.rejects(verify('s', 'p', undefined), HttpError, JSON.stringify(said));
    }
  });
});
