// What is mutated, part by part, and the tests that have to notice. All of them run on ports in memory: a mutant is judged
// in a fraction of a second, and a test that needs a database to fail would say nothing about the core alone.

export const CORE = 'db1/supabase/functions/_shared';

export interface Part {
  readonly name: string;
  /** Of the core. */
  readonly sources: readonly string[];
  /** In the order in which they are tried on a mutant: those that notice much in little time first. */
  readonly tests: readonly string[];
}

function part(name: string, sources: readonly string[], tests: readonly string[]): Part {
  return {
    name,
    sources: sources.map((source) => `${CORE}/${source}.ts`),
    tests: tests.map((test) => `test/${test}.test.ts`),
  };
}

const under = (folder: string, names: string): string[] =>
  names.split(' ').map((name) => `${folder}/${name}`);

export const PARTS: readonly Part[] = [
  part(
    'verify',
    [
      ...under('webhook', 'signature scheme signed_url hmac form list bytes providers verdict'),
      ...under('webhook/providers', 'daily github hmac shopify slack standard stripe'),
      ...under('webhook/providers', 'twilio twilio_url whatsapp whole_body'),
      'calls/signature',
    ],
    [
      ...under('webhook/verify', 'details spellings twilio_url own_scheme read_more vectors read scheme'),
      ...under('webhook', 'form signed_url verdict'),
      'calls/signature',
    ],
  ),
  part(
    'bridge',
    [
      ...under(
        'bridge',
        'address bridge commit store delivery ends gathering observe payload targets tickets trouble hooks hook_request refusals',
      ),
      ...['breaker', 'failure', 'halving', 'heartbeat', 'lease_worker', 'limiter', 'target', 'text'],
    ],
    [
      ...under('core', 'failure halving text heartbeat target lease_worker lease_worker_run'),
      ...under(
        'bridge',
        'address core observe databases step edges validation spent reasons hook hook_request breaker outage ender rooms',
      ),
      ...under('bridge', 'stuck_finish own_function late_refusal'),
    ],
  ),
  part(
    'record',
    [
      ...under('webhook', 'record read routes secrets'),
      ...under('calls', 'routes record store body replay_cache guarded_cache'),
      ...['digits', 'coalescer', 'request_queue', 'side_lane'],
    ],
    [
      ...under('webhook', 'routes_core answers recorder core'),
      ...under('core', 'digits calls_routes calls_body calls_store guarded_cache coalescer side_lane'),
      ...under('webhook/verify', 'documents read read_more'),
      'calls/replay_cache',
    ],
  ),
  part(
    'process',
    under('webhook', 'processor set_size inline run_handler outcome handlers trace'),
    under('webhook', 'processor handler_breaker handler_rooms run_handler inline outcome core'),
  ),
];

/** In the same folders, but not mutated: nothing but types, or nothing without a database or an operator's routes. */
export const LEFT_OUT: readonly string[] = [
  ...under('webhook', 'ports provider store admin operators endpoint_settings unnamed_payments'),
  'bridge/ports',
  'calls/operators',
].map((source) => `${CORE}/${source}.ts`);
