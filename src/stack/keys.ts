import { randomBytes, randomUUID } from 'node:crypto';
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { SignJWT } from 'jose';
import { StackError } from '../failure.ts';

/** Everything secret about one embedded stack; made once, on first start. */
export type Secrets = {
  createdAt: string;
  postgresPassword: string;
  authenticatorPassword: string;
  db1JwtSecret: string;
  db2JwtSecret: string;
  adminKey: string;
  hookSecret: string;
  ticketSecret: string;
  stripeWebhookSecret: string;
  stripeApiKey: string;
  twilioAuthToken: string;
  whatsappAppSecret: string;
  whatsappVerifyToken: string;
  dailyWebhookSecret: string;
  opsSiteId: string;
  opsSiteSecret: string;
};

export type ApiKeys = { anon: string; serviceRole: string };

const OWNER_ONLY = 0o600;
/** Live, as the pools are that say nothing else. */
const STAND_IN = 'sk_live_stand_in_';
const KEY_LIFETIME_SEC = 10 * 365 * 24 * 3600;

const token = (bytes: number) => randomBytes(bytes).toString('base64url');
const hex = (bytes: number) => randomBytes(bytes).toString('hex');

/** A shell that has read `.sluice/env`, of this stack or of one that was reset, has the stand-in's key and no other. */
export const isOfStripe = (key: string | undefined): boolean => Boolean(key) && !key?.startsWith(STAND_IN);

/** The shapes are the providers' own, so that their libraries take them. */
function makeSecrets(): Secrets {
  return {
    createdAt: new Date().toISOString(),
    postgresPassword: token(24),
    authenticatorPassword: token(24),
    db1JwtSecret: token(48),
    db2JwtSecret: token(48),
    adminKey: `sluice_admin_${token(24)}`,
    hookSecret: `whsec_${randomBytes(32).toString('base64')}`,
    ticketSecret: token(32),
    stripeWebhookSecret: `whsec_${token(24)}`,
    stripeApiKey: `${STAND_IN}${hex(12)}`,
    twilioAuthToken: hex(16),
    whatsappAppSecret: hex(16),
    whatsappVerifyToken: token(24),
    dailyWebhookSecret: randomBytes(32).toString('base64'),
    opsSiteId: randomUUID(),
    opsSiteSecret: token(32),
  };
}

/** Reads the secrets, making those that are missing: all on first start, a few after an upgrade. */
export function loadSecrets(file: string): Secrets {
  const made = makeSecrets();
  if (!existsSync(file)) return saveSecrets(file, made);
  let kept: Partial<Secrets>;
  try {
    kept = JSON.parse(readFileSync(file, 'utf8'));
  } catch (error) {
    throw new StackError(
      `${file} is not readable as JSON`,
      'the databases were created with the passwords in it: restore it, or start over with `npm run reset`',
      error,
    );
  }
  const complete = { ...made, ...kept };
  if (Object.keys(kept).length === Object.keys(complete).length) return complete;
  return saveSecrets(file, complete);
}

function saveSecrets(file: string, secrets: Secrets): Secrets {
  writePrivateFile(file, `${JSON.stringify(secrets, null, 2)}\n`);
  return secrets;
}

/** By rename: a reader sees the whole file or none, and it is never readable by others, not even for a moment. */
export function writePrivateFile(file: string, text: string): void {
  const draft = `${file}.${process.pid}`;
  writeFileSync(draft, text, { mode: OWNER_ONLY, flag: 'w' });
  renameSync(draft, file);
}

/** The two keys a Supabase project has. Dated by the secrets' birth, so they stay the same over restarts. */
export async function apiKeys(project: string, jwtSecret: string, createdAt: string): Promise<ApiKeys> {
  const issuedAt = Math.floor(Date.parse(createdAt) / 1000);
  const sign = (role: string) =>
    new SignJWT({ ref: project, role })
      .setProtectedHeader({ alg: 'HS256', typ: 'JWT' })
      .setIssuer('supabase')
      .setIssuedAt(issuedAt)
      .setExpirationTime(issuedAt + KEY_LIFETIME_SEC)
      .sign(new TextEncoder().encode(jwtSecret));
  return { anon: await sign('anon'), serviceRole: await sign('service_role') };
}
