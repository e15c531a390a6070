// Bugs of strangers, and of what operators run, as they would come back.

import type { Bug } from '../bugs.ts';
import { CORE } from '../parts.ts';

export const OPERATORS: readonly Bug[] = [
  {
    name: 'known-by-its-id',
    was: 'the id of an unverified claim was enough to release it',
    file: `${CORE}/claim_owner.ts`,
    from: ': secret_matches === true;',
    to: ': true;',
    test: 'test/core/claim.test.ts',
    finds: 'shows the status alone of a claim without a secret, and releases it for no stranger',
  },
  {
    name: 'guests-pass',
    was: 'anonymous sign-ins passed require_auth',
    file: 'db1/supabase/migrations/20260224100001_intake_engine_functions.sql',
    from: 'when p_pool.require_auth and p_request.guest and not p_pool.allow_guests then',
    to: 'when false then',
    test: 'db1/supabase/tests/claim/callers.test.sql',
    finds: 'an anonymous sign-in is not enough',
  },
  {
    name: 'function-by-a-path',
    was: 'the name of a commit function could be a path',
    file: 'db1/supabase/migrations/20260224100000_intake_engine_setup.sql',
    from: "check (commit_rpc_name ~ '^[A-Za-z_][A-Za-z0-9_]{0,62}$')",
    to: 'check (true)',
    test: 'test/operators/hosts.test.ts',
    finds: 'is an identifier, and no path',
  },
  {
    name: 'short-jwt-secret',
    was: 'a server started with the JWT secret "secret"',
    file: 'src/commands/serve.ts',
    from: '.length < MIN_JWT_SECRET_CHARS)\n',
    to: '.length < 1)\n',
    test: 'test/server/serve.test.ts',
    finds: 'refuses a JWT secret that is shorter than HS256 needs, on loopback too',
  },
  {
    name: 'two-hosts',
    was: 'two Host headers were answered',
    file: 'src/server/http.ts',
    from: 'const isNamed = hosts === 1 ||',
    to: 'const isNamed = hosts >= 1 ||',
    test: 'test/abuse/limits.test.ts',
    finds: 'answers 400 of its own where HTTP/1.1 names no host or two, and takes an unknown expectation',
  },
  {
    name: 'page-for-each-reader',
    was: 'the page of metrics was made for each of its readers',
    file: 'src/server/metrics_route.ts',
    from: 'const EVERY_MS = 1_000;',
    to: 'const EVERY_MS = 0;',
    test: 'test/server/metrics.test.ts',
    finds: 'is one for all readers that ask within a second, also while it is being made',
  },
  {
    name: 'asked-for-nothing',
    was: 'made-up pools, endpoints and sites each cost the database a question',
    file: `${CORE}/answer_cache.ts`,
    from: '      this.#missing.add(key);\n',
    to: '',
    test: 'test/core/answer_cache.test.ts',
    finds: 'is asked for once a second for each key, also where the answer is undefined',
  },
  {
    name: 'empty-code',
    was: 'PostgREST answered a claim 400 with an empty code in a crash, which a client takes for a no',
    file: 'src/stack/gateway.ts',
    from: "JSON.parse(body.toString())?.code === '';",
    to: "JSON.parse(body.toString())?.code === 'never';",
    test: 'test/stack/gateway.test.ts',
    finds:
      'an error with an empty code, or one that is cut off, is answered 503 with Retry-After; others pass',
  },
  {
    name: 'stacked-domain',
    was: 'generated types had pool_id: unknown',
    file: 'db1/supabase/migrations/20260224100000_intake_engine_setup.sql',
    from: 'create domain public.given_pool_id as text\n',
    to: 'create domain public.given_pool_id as public.given_id\n',
    test: 'test/house/domains.test.ts',
    finds: 'every domain stands on a type of Postgres, so that generated types know it',
  },
];
