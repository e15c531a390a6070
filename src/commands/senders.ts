// What webhook endpoints and call sites have in common on the command line: secrets by their names, which can be rotated,
// and a switch.

import { check, SchemaError } from '#core/schema.ts';
import { SECRET_NAME } from '#core/webhook/endpoint_settings.ts';
import type { Rotation } from '#core/webhook/operators.ts';
import { type Action, action, UsageError, type Values } from './grammar.ts';
import { OPTION } from './operator.ts';

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
  change(name: string, changes: { is_active: boolean }, values: ChangeValues): Promise<number>;
  /** Throws for an unknown name, and for a new secret that cannot be used. */
  rotate(name: string, rotation: Rotation, values: ChangeValues): Promise<number>;
}

export function senderActions({ args, path, sample, change, rotate: turn }: Sender): Record<string, Action> {
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
      const secretNames = readSecretNames('--secret-name', names);
      if (secretNames.length === 0) throw new UsageError('rotate needs --secret-name');
      return turn(name, { secretNames, only }, values);
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
