// Where the services are that a server asks: read and checked with the other settings, before anything is opened.

import { StackError } from '../failure.ts';

interface ServiceUrls {
  readonly redisUrl?: string;
  readonly jwksUrl?: string;
}

const REDIS = /^(rediss?|unix):$/;
/** Nothing, or the number of a database. */
const REDIS_PATH = /^(\/\d*)?$/;

export function readServiceUrls(env: NodeJS.ProcessEnv): ServiceUrls {
  const { SLUICE_REDIS_URL: redis, SLUICE_JWKS_URL: jwks } = env;
  // Its password stands in it.
  if (redis && !isRedis(redis))
    throw new StackError(
      'SLUICE_REDIS_URL is not an address such as redis://127.0.0.1:6379',
      'correct it, or unset it: each server then remembers call events itself (docs/ops/call_events.md)',
    );
  if (jwks && !(URL.canParse(jwks) && /^https?:$/.test(new URL(jwks).protocol)))
    throw new StackError(
      `SLUICE_JWKS_URL is "${jwks}"; it must be an address such as https://<project>.supabase.co/auth/v1/.well-known/jwks.json`,
      'correct it, or unset it: tokens are then checked with SLUICE_JWT_SECRET alone',
    );
  return { ...(redis && { redisUrl: redis }), ...(jwks && { jwksUrl: jwks }) };
}

function isRedis(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, pathname } = new URL(text);
  return REDIS.test(protocol) && (protocol === 'unix:' || REDIS_PATH.test(pathname));
}
