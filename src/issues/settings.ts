// Where alerts go, as the owner sets it.

import type { SignHook } from '#core/bridge/hook_request.ts';
import { readSign } from '../bridge/sign.ts';
import { StackError } from '../failure.ts';
import { FORMATS, type Format } from './message.ts';

export interface AlertSettings {
  readonly url: string;
  readonly format: Format;
  /** Alerts are not signed where left out. */
  readonly sign?: SignHook;
}

const SECRET = 'SLUICE_ALERT_SECRET';

export const ALERT_VARIABLES: Readonly<Record<string, string>> = {
  SLUICE_ALERT_URL:
    'where alerts are posted: issues, old backlogs, missing secrets (docs/observe.md); optional',
  SLUICE_ALERT_FORMAT: `${FORMATS.join(' (default) or ')}: how they are written`,
  [SECRET]: 'signs alerts as SLUICE_HOOK_SECRET signs hooks; optional',
};

/** Undefined where no address is set. */
export function readAlertSettings(env: NodeJS.ProcessEnv): AlertSettings | undefined {
  const { SLUICE_ALERT_URL: url, SLUICE_ALERT_FORMAT: format = 'json' } = env;
  if (!url) return undefined;
  if (!(URL.canParse(url) && /^https?:$/.test(new URL(url).protocol)))
    throw new StackError(
      // Its path may be what proves who may post there.
      'SLUICE_ALERT_URL is not an address such as https://alerts.example.com/sluice',
      'see docs/observe.md, "Alerts to an address of yours"',
    );
  if (!isFormat(format))
    throw new StackError(
      `SLUICE_ALERT_FORMAT is "${format}"`,
      `it must be one of ${FORMATS.join(', ')}; json where it is not set`,
    );
  const sign = readSign(env[SECRET], SECRET);
  return { url, format, ...(sign && { sign }) };
}

function isFormat(text: string): text is Format {
  return FORMATS.some((format) => format === text);
}
