// What webhook endpoints and call sites have in common on the command line: secrets by their names, which can be rotated,
// and a switch.

import { check, SchemaError } from '#core/schema.ts';
import { SECRET_NAME } from '#core/webhook/endpoint_settings.ts';
import { type Action, action, UsageError, type Values } from './grammar.ts';
import { OPTION } from './operator.ts';

const MAX_SECRETS = 5;

const CHANGE_OPTIONS = { reason: OPTION.reason, json: OPTION.json };

export type ChangeValues = Values<typeof CHANGE_OPTIONS>;

/** What adding and rotating take. */
export const SENDER_OPTIONS = {
  'secret-name': {
    value: 'NAME',
    multiple: true,
    about:
      'the name of a secret on the list of `sluice webhooks secrets`, never the secret; newest first, up to five',
  },
  ...CHANGE_OPTIONS,
} as const;

interface Sender {
  readonly args: '<name>' | '<site>';
  /** The words before the action, and a name, for the examples. */
  readonly path: string;
  readonly sample: string;
  /** The sender's present secrets. Throws for an unknown name, and for a new secret that cannot be used. */
  secretsOf(name: string, given: readonly string[]): Promise<readonly string[]>;
  change(
    name: string,
    changes: { secret_names: string[] } | { is_active: boolean },
    values: ChangeValues,
  ): Promise<number>;
}

export function senderActions({ args, path, sample, secretsOf, change }: Sender): Record<string, Action> {
  const switchTo = (word: string, is_active: boolean, about: string) =>
    action({
      about,
      args,
      options: CHANGE_OPTIONS,
      examples: [`sluice ${path} ${word} ${sample}`],
      run: (values, [name]) => change(name, { is_active }, values),
    });
  const rotate = action({
    about: 'Put a new secret first; the old ones stay valid until a rotation with --only',
    args,
    options: { only: { about: 'make the old secrets invalid' }, ...SENDER_OPTIONS },
    examples: [`sluice ${path} rotate ${sample} --secret-name NEW_SECRET --reason 'the old one leaked'`],
    async run({ only, 'secret-name': names, ...values }, [name]) {
      const given = readSecretNames('--secret-name', names);
      if (given.length === 0) throw new UsageError('rotate needs --secret-name');
      return change(name, { secret_names: rotated(given, await secretsOf(name, given), only) }, values);
    },
  });
  return {
    rotate,
    disable: switchTo('disable', false, 'Refuse its requests within a second'),
    enable: switchTo('enable', true, 'Take its requests again'),
  };
}

/** A wrong name may be the secret itself, so the message does not repeat it. */
export function readSecretNames(option: string, names: readonly string[]): string[] {
  try {
    for (const name of names) check(SECRET_NAME, name);
    return [...names];
  } catch (error) {
    if (!(error instanceof SchemaError)) throw error;
    throw new UsageError(
      `${option} takes the name of a secret, such as STRIPE_WEBHOOK_SECRET, never the secret itself`,
    );
  }
}

/** The given ones first; those of before stay good, as far as there is room, until `only`: a sender changes later than we do. */
function rotated(given: readonly string[], known: readonly string[], only: boolean): string[] {
  const kept = only ? [] : known;
  return [...new Set([...given, ...kept])].slice(0, Math.max(MAX_SECRETS, given.length));
}
