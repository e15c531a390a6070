// The limits for each address as the environment sets them.

import { DEFAULT_LIMITS, type LimitSettings } from './address_limits.ts';
import type { Rate } from './token_buckets.ts';

const OFF = 'off';
const RATE = /^([1-9][0-9]{0,6}),([1-9][0-9]{0,6})$/;
const COUNT = /^[1-9][0-9]{0,6}$/;

/** The settings, or what is wrong with them. */
export function readLimitSettings(env: NodeJS.ProcessEnv): LimitSettings | string {
  const rates = {
    claims: readRate(env, 'SLUICE_LIMIT_CLAIMS'),
    deliveries: readRate(env, 'SLUICE_LIMIT_DELIVERIES'),
    signIns: readRate(env, 'SLUICE_LIMIT_WRONG_KEYS'),
  };
  const wrong = Object.values(rates).find((rate) => typeof rate === 'string');
  if (wrong !== undefined) return wrong;
  const { SLUICE_LIMIT_STREAMS: streams, SLUICE_LIMIT_LOOPBACK: loopback } = env;
  if (streams && streams !== OFF && !COUNT.test(streams))
    return `SLUICE_LIMIT_STREAMS is "${streams}"; it must be a whole number from 1 to 9999999, or ${OFF}.`;
  if (loopback && loopback !== '1')
    return `SLUICE_LIMIT_LOOPBACK is "${loopback}"; it must be 1, or not set.`;
  const given = Object.entries(rates).filter(([, rate]) => rate !== undefined);
  return {
    ...(Object.fromEntries(given) as LimitSettings),
    ...(streams && { streams: streams === OFF ? (false as const) : Number(streams) }),
    loopback: loopback === '1',
  };
}

/** Undefined where it is not set; a text says what is wrong with it. */
function readRate(env: NodeJS.ProcessEnv, name: string): Rate | false | string | undefined {
  const text = env[name];
  if (!text) return undefined;
  if (text === OFF) return false;
  const [, burst, perSec] = RATE.exec(text) ?? [];
  if (burst === undefined)
    return `${name} is "${text}"; it must be "burst,per second", such as 100,10, or ${OFF}.`;
  return { burst: Number(burst), perSec: Number(perSec) };
}

const { claims, deliveries, signIns, streams } = DEFAULT_LIMITS;
const shown = ({ burst, perSec }: Rate) => `${burst},${perSec}`;

/** For the help page. */
export const LIMIT_VARIABLES = {
  SLUICE_LIMIT_CLAIMS: `claims of buyers from one address: burst, then so many a second; more are answered 429; off: no limit; default ${shown(claims)}`,
  SLUICE_LIMIT_DELIVERIES: `the same for webhooks and call events without a valid signature; default ${shown(deliveries)}`,
  SLUICE_LIMIT_WRONG_KEYS: `the same for wrong admin keys; the right one always passes; default ${shown(signIns)}`,
  SLUICE_LIMIT_STREAMS: `live streams that one address may have open; off: no limit; default ${streams}`,
  SLUICE_LIMIT_LOOPBACK: '1 also limits what comes from this machine; optional',
};
