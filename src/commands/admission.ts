// Whether the holder of SLUICE_OPERATOR_KEY may run a command that reaches a database, and who that is.

import type { CallFunction } from '#core/call_function.ts';
import { within } from '#core/deadline.ts';
import { blameOf } from '#core/failure.ts';
import { allows, type Operator } from '#core/roles.ts';
import { createDatabase } from '../db/database.ts';
import { StackError } from '../failure.ts';
import { operatorsCell } from '../fleet/operate.ts';
import { createLog } from '../log.ts';
import { hashOfKey, type OperatorRow } from '../server/known_operators.ts';
import { explained } from './db2.ts';
import type { Admit } from './grammar.ts';
import { asOperator, readDatabaseUrls } from './operator.ts';
import { ruleOf } from './roles.ts';

/** A copy older than this is told of: servers write it every ten seconds. */
const OLD_COPY_SEC = 60;
/** A database that is away must not keep the copy in the other from being asked. */
const WAIT_MS = 5_000;

export const admit: Admit = async (words, set, run) => {
  const [least, prover] = ruleOf(words, set);
  const key = process.env.SLUICE_OPERATOR_KEY;
  if (!key || prover !== 'database') return run();
  const operator = await findOperator(key);
  if (!allows(operator.role, least))
    throw new StackError(
      `sluice ${words.join(' ')} needs the role ${least}; the key of ${operator.name} has the role ${operator.role}`,
      'an admin gives roles: `sluice operators list` shows them',
    );
  return asOperator(operator.name, run);
};

async function findOperator(key: string): Promise<Operator> {
  const rows = await readOperators();
  const hash = hashOfKey(key);
  const found = rows.find(
    ({ key_hash, is_revoked }) => !is_revoked && key_hash.toString('base64url') === hash,
  );
  if (found === undefined)
    throw new StackError(
      'SLUICE_OPERATOR_KEY is not the key of an operator',
      'unset it to act as the owner of the databases, or let an admin run `sluice operators rotate <your name>`',
    );
  if (found.age_sec > OLD_COPY_SEC)
    console.error(`DB2's copy of the operators is ${Math.round(found.age_sec)} s old, and was used.`);
  return found;
}

/** Those of the intake in which the operators stand, where that answers, else the copy in DB2. */
async function readOperators(): Promise<OperatorRow[]> {
  const { env } = process;
  const isDb2Alone = env.DATABASE_URL && !env.DB1_URL && !env.DB2_URL;
  const { cells, db2Url } = isDb2Alone ? { cells: [], db2Url: env.DATABASE_URL } : readDatabaseUrls(env);
  const sides = Object.entries({ DB1: cells, DB2: db2Url ? [{ name: 'db2', url: db2Url }] : [] });
  let failure: unknown = new StackError(
    'SLUICE_OPERATOR_KEY is set, but neither DB1_URL nor DB2_URL is, and no stack runs here',
    'set the address of a database that knows the operators',
  );
  for (const [name, place] of sides) {
    if (place.length === 0) continue;
    const open = place.map((cell) => {
      const db = createDatabase({ url: cell.url, max: 1, applicationName: 'sluice-cli', log: createLog() });
      const call: CallFunction = (functionName, args) => db.call(`public.${functionName}`, args);
      return { name: cell.name, call, end: () => db.end() };
    });
    try {
      return await within(
        async () => (await operatorsCell(open)).call<OperatorRow>('known_operators', {}),
        WAIT_MS,
      );
    } catch (error) {
      failure = unmigrated(error, name) ?? explained(error, name);
    } finally {
      await Promise.all(open.map(({ end }) => end()));
    }
  }
  throw failure;
}

/** An operator's key opens nothing before the operators are there: the migrations are the owner's. */
function unmigrated(error: unknown, database: string): StackError | undefined {
  if (blameOf(error) !== 'missing') return undefined;
  return new StackError(
    `${database} knows no operators: its migrations are missing`,
    'unset SLUICE_OPERATOR_KEY, and let the owner of the databases run `sluice migrate`',
    error,
  );
}
