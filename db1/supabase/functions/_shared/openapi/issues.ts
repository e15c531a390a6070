// The operators' doors to issues, described.

import { ISSUE_QUERY, ISSUE_REPLAY_BODY, ISSUE_RESOLVE_BODY } from '../console/issues.ts';
import type { AnswerSchema, Descriptions } from './document.ts';
import { operators, ref } from './operators.ts';
import { COUNT, shape, TEXT, TEXT_OR_NULL } from './shapes.ts';

const listOf = (items: AnswerSchema): AnswerSchema => ({ type: 'array', items });

export const ISSUE_SCHEMAS: { readonly [name: string]: AnswerSchema } = {
  Issue: shape({
    id: TEXT,
    kind: { ...TEXT, description: 'claim, delivery, event or question' },
    lane: {
      ...TEXT_OR_NULL,
      description:
        'A claim’s pool, an event’s handler, the endpoint or site of a delivery, the tenant of a question.',
    },
    type: TEXT,
    error: {
      ...TEXT_OR_NULL,
      description:
        'The error with # for ids, numbers and addresses and “…” for what is quoted; as a filter it finds the issue’s events.',
    },
    state: { ...TEXT, description: 'open, reopened or resolved' },
    failures: { ...COUNT, description: 'How many there are now.' },
    dead_letters: COUNT,
    first_seen_at: TEXT,
    last_seen_at: TEXT,
    example_id: TEXT,
    example_error: { ...TEXT_OR_NULL, description: 'What it said; kept when the issue is resolved.' },
    opened_at: TEXT,
    openings: COUNT,
    resolved_at: TEXT_OR_NULL,
    resolved_by: { ...TEXT_OR_NULL, description: 'Null where nothing is left of it.' },
  }),
  IssueResult: shape({ id: TEXT, outcome: TEXT }),
};

const issues = operators('admin: issues');
const PARAMETER = { parameter: 'Its id.', errors: ['not_found', 'invalid_input'] } as const;

export const ISSUE_DESCRIPTIONS: Descriptions = {
  'GET /admin/issues': issues.reads(
    'Failures that are alike, by lane, type and shape of the error',
    shape({
      issues: listOf(ref('Issue')),
      away: listOf({ ...TEXT, description: 'A database that could not be asked.' }),
    }),
    { query: ISSUE_QUERY },
  ),
  'GET /admin/issues/:issue': issues.reads('One issue', ref('Issue'), PARAMETER),
  'POST /admin/issues/:issue/replay': issues.changes(
    'Send all that failed alike round again, which resolves the issue',
    {
      200: {
        description: 'One result per failure, of the 1000 oldest.',
        schema: shape({
          results: listOf(ref('IssueResult')),
          left: { ...COUNT, description: 'Failures beyond those: ask again.' },
        }),
      },
    },
    { ...PARAMETER, body: ISSUE_REPLAY_BODY },
  ),
  'POST /admin/issues/:issue/resolve': issues.changes(
    'Call an issue resolved until it comes back; its failures stay',
    { 200: { description: 'Resolved, now or before.', schema: ref('Issue') } },
    { ...PARAMETER, body: ISSUE_RESOLVE_BODY },
  ),
};
