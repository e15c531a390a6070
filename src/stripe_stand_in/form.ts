// Stripe's request bodies: forms whose names have brackets, as `line_items[0][price_data][currency]`.

import { Refusal } from './refusal.ts';

export type Form = { [name: string]: string | Form };

const NAME = /^([^[\]]+)((?:\[[^[\]]*\])*)$/;

/** Lists are objects with their numbers as names. */
export function parseForm(body: string): Form {
  const form: Form = {};
  for (const [name, value] of new URLSearchParams(body)) {
    const [, first = '', rest = ''] = NAME.exec(name) ?? [];
    if (first === '') throw new Refusal(400, `Invalid parameter name: ${name}`);
    const path = [first, ...[...rest.matchAll(/\[([^[\]]*)\]/g)].map(([, part]) => part ?? '')];
    put(form, path, value);
  }
  return form;
}

function put(form: Form, path: readonly string[], value: string): void {
  const [name = '', ...rest] = path;
  if (name === '__proto__') throw new Refusal(400, 'Invalid parameter name: __proto__');
  if (rest.length === 0) {
    form[name] = value;
    return;
  }
  const known = form[name];
  const inner = typeof known === 'object' ? known : {};
  form[name] = inner;
  put(inner, rest[0] === '' ? [String(Object.keys(inner).length), ...rest.slice(1)] : rest, value);
}

export function textIn(form: Form, name: string): string | undefined {
  const value = form[name];
  return typeof value === 'string' ? value : undefined;
}

export function formIn(form: Form, name: string): Form {
  const value = form[name];
  return typeof value === 'object' ? value : {};
}

export function textsIn(form: Form): Record<string, string> {
  return Object.fromEntries(
    Object.entries(form).flatMap(([name, value]) => (typeof value === 'string' ? [[name, value]] : [])),
  );
}

/** A whole number, or a refusal that names the parameter. */
export function wholeIn(form: Form, name: string, param = name): number | undefined {
  const text = textIn(form, name);
  if (text === undefined) return undefined;
  if (!/^-?\d{1,15}$/.test(text))
    throw new Refusal(400, `Invalid integer: ${text}`, { code: 'parameter_invalid_integer', param });
  return Number(text);
}

export function required(param: string): Refusal {
  return new Refusal(400, `Missing required param: ${param}.`, { code: 'parameter_missing', param });
}
