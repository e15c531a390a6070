// How another process asks a running stack to stop or start one of its databases: HTTP on this machine, with a key that
// only the owner of the stack's folder can read. Not a Unix socket: its path has room for 100 characters.

import { randomBytes, timingSafeEqual } from 'node:crypto';
import { readFileSync, rmSync } from 'node:fs';
import { createServer, type ServerResponse } from 'node:http';
import { StackError } from '../failure.ts';
import { writePrivateFile } from './keys.ts';
import { LOOPBACK } from './ports.ts';
import { runningPid } from './run_files.ts';
import { layout } from './settings.ts';
import type { Side, SideName } from './stack.ts';

/** An outage is a stop that ends with the connection that asked for it, however that ends. */
export type Verb = 'stop' | 'start' | 'outage';

type Address = { url: string; key: string };
type Refusal = { message: string; hint: string };

const PATH = /^\/(db1|db2)\/(stop|start|outage)$/;

/** Listens, and writes to `file` how to ask. */
export async function startControl(
  file: string,
  sides: Record<SideName, Side>,
  say: (line: string) => void,
): Promise<{ stop(): Promise<void> }> {
  const key = randomBytes(24).toString('base64url');
  let isOver = false;
  const server = createServer(async (req, res) => {
    const [, name, verb] = PATH.exec(req.url ?? '') ?? [];
    if (!isSame(req.headers.authorization ?? '', `Bearer ${key}`))
      return answer(res, 401, { message: 'wrong key', hint: `${file} has it` });
    if (req.method !== 'POST' || name === undefined)
      return answer(res, 404, { message: 'nothing is here', hint: 'POST /db2/stop' });
    const side = sides[name as SideName];
    try {
      const refusal = verb === 'start' ? await start(side, say) : await stop(side, say);
      if (refusal !== undefined) return answer(res, 409, refusal);
      if (verb !== 'outage') return answer(res, 200, {});
      res.writeHead(200).flushHeaders();
      res.on('close', () => {
        // When the whole stack stops, it stops this database too.
        if (!isOver) start(side, say).catch((error: Error) => say(error.message));
      });
    } catch (error) {
      const hint = error instanceof StackError ? error.hint : 'the stack prints more where it runs';
      answer(res, 500, { message: (error as Error).message, hint });
    }
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, LOOPBACK, resolve);
  });
  const address = server.address();
  const port = typeof address === 'object' && address ? address.port : 0;
  writePrivateFile(file, JSON.stringify({ url: `http://${LOOPBACK}:${port}`, key } satisfies Address));
  return {
    async stop() {
      isOver = true;
      rmSync(file, { force: true });
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}

async function stop({ name, title, postgres }: Side, say: (line: string) => void) {
  if (!postgres.isWanted)
    return { message: `${title} is stopped already`, hint: `\`sluice dev start ${name}\` starts it` };
  await postgres.stop();
  say(`${title}: Postgres was stopped on request`);
  return undefined;
}

async function start({ title, postgres }: Side, say: (line: string) => void) {
  if (postgres.isWanted)
    return { message: `${title} runs already`, hint: 'one that died starts again by itself' };
  await postgres.start();
  say(`${title}: Postgres was started on request`);
  return undefined;
}

function isSame(given: string, wanted: string): boolean {
  return given.length === wanted.length && timingSafeEqual(Buffer.from(given), Buffer.from(wanted));
}

function answer(res: ServerResponse, status: number, body: Refusal | Record<string, never>): void {
  res.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

/** Asks the stack that runs in `dir`. An outage lasts until the body of the answer is cancelled. */
export async function askControl(dir: string, name: SideName, verb: Verb): Promise<Response> {
  const { url, key } = findControl(dir);
  const init = { method: 'POST', headers: { authorization: `Bearer ${key}` } };
  const response = await fetch(`${url}/${name}/${verb}`, init).catch((error: unknown) => {
    throw notReady(dir, error);
  });
  if (response.ok) return response;
  const { message, hint } = (await response.json()) as Refusal;
  throw new StackError(message, hint);
}

function findControl(dir: string): Address {
  if (runningPid(layout(dir).run) === undefined)
    throw new StackError(
      `no stack runs in ${dir}`,
      'start one with `npm start`; SLUICE_DIR names the folder of another',
    );
  try {
    return JSON.parse(readFileSync(layout(dir).control, 'utf8'));
  } catch (error) {
    throw notReady(dir, error);
  }
}

function notReady(dir: string, cause: unknown): StackError {
  return new StackError(
    `the stack in ${dir} does not answer`,
    'wait until it has started: it then prints its addresses',
    cause,
  );
}
