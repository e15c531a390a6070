// Looks for issues in every database, and for endpoints whose secret this server cannot use. All servers do; each look is done once.

import type { CallFunction } from '#core/call_function.ts';
import type { Log } from '#core/ports.ts';
import { namedSecrets } from '#core/webhook/admin.ts';
import type { EndpointRow } from '#core/webhook/operators.ts';
import { providerNamed } from '#core/webhook/providers.ts';
import { minSecretChars, type Secrets } from '#core/webhook/secrets.ts';
import { type Loop, last, startLoop } from '../loop.ts';
import type { NewMark } from '../samples/outages.ts';

export interface NamedDatabase {
  readonly name: string;
  /** Functions of schema public. */
  readonly call: CallFunction;
}

export interface WatchPorts {
  readonly databases: readonly NamedDatabase[];
  readonly db2: CallFunction;
  /** Functions of schema webhook. */
  readonly webhook: CallFunction;
  readonly secrets: Pick<Secrets, 'faultOf'>;
  readonly log: Log;
}

const LOOK_EVERY_MS = 2_000;
/** A mark whose teller is silent for two minutes counts as ended. */
const SECRETS_EVERY_MS = 30_000;
/** public.note_marks takes no more at once. */
const MOST_MARKS = 50;

export function startIssueWatch(ports: WatchPorts): Loop {
  const looks = ports.databases.map(({ name, call }) =>
    startLoop(`the look for issues in ${name}`, LOOK_EVERY_MS, ports.log, async () => {
      await call('note_issues', {});
    }),
  );
  const missing = new MissingSecrets();
  const tell = async (faults: ReadonlyMap<string, string>): Promise<void> => {
    const marks = missing.marks(faults, Date.now()).slice(0, MOST_MARKS);
    if (marks.length > 0) await ports.db2('note_marks', { p_marks: marks });
  };
  const secrets = startLoop('the look for missing secrets', SECRETS_EVERY_MS, ports.log, async () =>
    tell(await faultsOfEndpoints(ports)),
  );
  return {
    async stop() {
      await Promise.all([...looks, secrets].map((loop) => loop.stop()));
      // A server that is gone misses nothing: what it missed may be mended when it starts again. Another that does tells so again.
      if (secrets.isFailing) return;
      await last(
        tell(new Map()).catch((error: unknown) => ports.log.debug('no mark was ended', { cause: error })),
      );
    },
  };
}

/** Active endpoints by name that verify with a secret that is not there, not allowed or too short, and which of these. */
async function faultsOfEndpoints({ webhook, secrets }: WatchPorts): Promise<ReadonlyMap<string, string>> {
  const endpoints = (await webhook<EndpointRow>('list_endpoints', {})).filter(({ is_active }) => is_active);
  const faults = await Promise.all(
    endpoints.map((endpoint) =>
      secrets.faultOf(namedSecrets(endpoint), minSecretChars(providerNamed(endpoint.provider))),
    ),
  );
  return new Map(
    endpoints.flatMap(({ name }, index): [string, string][] => {
      const fault = faults[index];
      return fault === undefined ? [] : [[name, fault]];
    }),
  );
}

/** Since when this server misses each secret. */
export class MissingSecrets {
  readonly #sinceMs = new Map<string, number>();

  /** What the ledger has to be told: those that are missing, and those that no longer are. */
  marks(faults: ReadonlyMap<string, string>, nowMs: number): NewMark[] {
    const ended = [...this.#sinceMs].filter(([name]) => !faults.has(name));
    for (const [name] of ended) this.#sinceMs.delete(name);
    for (const name of faults.keys()) if (!this.#sinceMs.has(name)) this.#sinceMs.set(name, nowMs);
    const mark = ([name, began_ms]: [string, number], ended_ms: number | null): NewMark => {
      const why = faults.get(name);
      return { kind: 'secret', subject: `endpoint ${name}`, began_ms, ended_ms, ...(why && { why }) };
    };
    return [...ended.map((one) => mark(one, nowMs)), ...[...this.#sinceMs].map((one) => mark(one, null))];
  }
}
