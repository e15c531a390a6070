// How an alert reads. Pure. It holds the shape of an error, which keeps a name that has no digit, and no payload.

import type { Issue } from '#core/console/issues.ts';

export const FORMATS = ['json', 'slack'] as const;
export type Format = (typeof FORMATS)[number];

/** A row of public.take_alerts. */
export interface Alert {
  readonly id: number;
  readonly token: string;
  readonly what: 'issue_opened' | 'issue_reopened' | 'secret_missing' | 'alert';
  readonly subject: string;
  readonly at: string;
  readonly issue: Pick<Issue, 'id' | 'kind' | 'lane' | 'type' | 'error' | 'failures' | 'dead_letters'> | null;
}

export interface Message {
  /** The same at each try. */
  readonly id: string;
  readonly what: Alert['what'];
  readonly text: string;
  readonly database: string;
  readonly at: string;
  /** Of its page in the console, where the server knows its own address. */
  readonly url?: string;
  readonly issue?: NonNullable<Alert['issue']>;
}

const HEADINGS: Readonly<Record<Alert['what'], string>> = {
  issue_opened: 'New issue',
  issue_reopened: 'An issue is back',
  secret_missing: 'A secret is missing',
  alert: 'Alert',
};

export function messageOf(alert: Alert, database: string, consoleUrl: string | undefined): Message {
  const { id, what, at, issue } = alert;
  const page = issue !== null ? `issues/${issue.id}` : what === 'secret_missing' ? 'webhooks' : 'history';
  return {
    id: `${database}_${id}`,
    what,
    text: `${HEADINGS[what]}: ${describe(alert)}`,
    database,
    at,
    ...(consoleUrl !== undefined && { url: new URL(page, consoleUrl).href }),
    ...(issue !== null && { issue }),
  };
}

function describe({ subject, issue }: Alert): string {
  if (issue === null) return subject;
  const { kind, lane, type, error, failures } = issue;
  const many = `${failures} ${kind}${failures === 1 ? '' : 's'}`;
  return `${many}${lane === null ? '' : ` of ${lane}`}, ${type}${error === null ? '' : `: ${error}`}`;
}

export function bodyOf(message: Message, format: Format): object {
  if (format === 'json') return message;
  const { text, database, url } = message;
  return {
    text: `${escaped(text)} (${escaped(database)})${url === undefined ? '' : ` <${url}|Open in Sluice>`}`,
  };
}

/** What Slack asks for: all else is shown as it is. */
function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
