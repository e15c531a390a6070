// What Daily documents, and the body with which it tries a new webhook.

import { type Documented, json } from './request.ts';

const TYPES = [
  'meeting.started',
  'meeting.ended',
  'participant.joined',
  'participant.left',
  'waiting-participant.joined',
  'waiting-participant.left',
  'recording.started',
  'recording.ready-to-download',
  'recording.error',
  'streaming.started',
  'streaming.updated',
  'streaming.ended',
  'streaming.error',
  'batch-processor.job-finished',
  'batch-processor.error',
  'dialin.ready',
  'dialin.connected',
  'dialin.error',
  'dialin.stopped',
  'dialin.warning',
  'dialout.connected',
  'dialout.answered',
  'dialout.error',
  'dialout.stopped',
  'dialout.warning',
  'transcript.started',
  'transcript.ready-to-download',
  'transcript.error',
  'calltransfer.triggered',
  'calltransfer.initiated',
  'calltransfer.answered',
  'calltransfer.completed',
  'calltransfer.error',
];
/** Whose documents show no id. */
const WITHOUT_ID = ['dialout.answered', 'calltransfer.answered'];

export const DAILY: readonly Documented[] = [
  json('the test of a new webhook', { test: 'test' }, 'test'),
  ...WITHOUT_ID.map((type) =>
    json(
      `${type} without an id`,
      {
        version: '1.0.0',
        type,
        event_ts: 1_770_000_002.5,
        payload: { room: 'consultation-7', session_id: 's-1' },
      },
      type,
    ),
  ),
  ...TYPES.map((type) =>
    json(
      type,
      {
        version: '1.0.0',
        type,
        id: `${type}-d4e5f6`,
        payload: { room: 'consultation-7', meeting_id: 'a-b-c', start_ts: 1_770_000_000.123 },
        event_ts: 1_770_000_001.456,
      },
      type,
    ),
  ),
];
