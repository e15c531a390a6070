// The requests that Twilio documents, by what they are about. Each is an event of its own.

import type { Documented } from './request.ts';

const ACCOUNT = { AccountSid: 'AC00000000000000000000000000000001', ApiVersion: '2010-04-01' };
const CALL = {
  ...ACCOUNT,
  CallSid: 'CA00000000000000000000000000000001',
  From: '+14158675309',
  To: '+18005551212',
  Direction: 'inbound',
};
const IN_PROGRESS = { ...CALL, CallStatus: 'in-progress' };
const CONFERENCE = {
  ...ACCOUNT,
  ConferenceSid: 'CF00000000000000000000000000000001',
  FriendlyName: 'Room 7',
};
const ROOM = {
  ...ACCOUNT,
  RoomSid: 'RM00000000000000000000000000000001',
  RoomName: 'DailyStandup',
  RoomType: 'group',
  RoomStatus: 'in-progress',
};
const MESSAGE = {
  ...ACCOUNT,
  MessageSid: 'SM00000000000000000000000000000001',
  SmsSid: 'SM00000000000000000000000000000001',
  From: '+14158675309',
  To: '+18005551212',
};
const at = (second: number) => new Date(1_770_000_000_000 + second * 1_000).toUTCString();

type Fields = Record<string, string>;

const form = (name: string, fields: Fields, type: string, query = ''): Documented => ({
  name,
  body: new URLSearchParams(fields).toString(),
  headers: { 'content-type': 'application/x-www-form-urlencoded' },
  query,
  types: [type],
});

const VOICE: Documented[] = [
  form('an inbound call', { ...CALL, CallStatus: 'ringing' }, 'voice.request'),
  form('a Gather', { ...IN_PROGRESS, Digits: '1', FinishedOnKey: '#' }, 'voice.gather'),
  form(
    'a second Gather in the same call',
    { ...IN_PROGRESS, Digits: '2', FinishedOnKey: '#' },
    'voice.gather',
  ),
  form(
    'the first Gather, asked at another step',
    { ...IN_PROGRESS, Digits: '1', FinishedOnKey: '#' },
    'voice.gather',
    'step=2',
  ),
  form('a Gather of speech', { ...IN_PROGRESS, SpeechResult: 'yes', Confidence: '0.97' }, 'voice.gather'),
  form(
    'a Record',
    {
      ...IN_PROGRESS,
      RecordingSid: 'RE00000000000000000000000000000001',
      RecordingUrl: 'https://api.twilio.com/r',
      RecordingDuration: '5',
      Digits: '#',
    },
    'voice.record',
  ),
  form(
    'a Record that ended with the call',
    {
      ...CALL,
      CallStatus: 'completed',
      RecordingUrl: 'https://api.twilio.com/r2',
      RecordingDuration: '9',
      Digits: 'hangup',
    },
    'voice.record',
  ),
  form(
    'a Dial that ended',
    {
      ...CALL,
      CallStatus: 'completed',
      DialCallSid: 'CA00000000000000000000000000000002',
      DialCallStatus: 'completed',
      DialCallDuration: '12',
    },
    'voice.dial',
  ),
  form(
    'an Enqueue that ended',
    { ...IN_PROGRESS, QueueSid: 'QU1', QueueResult: 'bridged', QueueTime: '5' },
    'voice.enqueue',
  ),
  form(
    'a fallback',
    { ...CALL, CallStatus: 'in-progress', ErrorCode: '11200', ErrorUrl: 'https://shop.example' },
    'voice.request',
  ),
];

const CALLBACKS: Documented[] = [
  ...['initiated', 'ringing', 'in-progress', 'completed', 'busy', 'failed', 'no-answer', 'canceled'].map(
    (CallStatus, index) =>
      form(
        `a call that is ${CallStatus}`,
        {
          ...CALL,
          CallStatus,
          CallbackSource: 'call-progress-events',
          SequenceNumber: String(index),
          Timestamp: at(index),
        },
        `call.${CallStatus}`,
      ),
  ),
  ...['in-progress', 'completed', 'absent', 'failed'].map((RecordingStatus) =>
    form(
      `a recording that is ${RecordingStatus}`,
      {
        ...ACCOUNT,
        CallSid: CALL.CallSid,
        RecordingSid: 'RE00000000000000000000000000000002',
        RecordingStatus,
        RecordingChannels: '1',
        RecordingSource: 'DialVerb',
      },
      `recording.${RecordingStatus}`,
    ),
  ),
  form(
    'a transcription of a recording',
    {
      ...CALL,
      CallStatus: 'completed',
      TranscriptionSid: 'TR00000000000000000000000000000001',
      TranscriptionText: 'hello',
      TranscriptionStatus: 'completed',
      RecordingSid: 'RE1',
      RecordingUrl: 'https://api.twilio.com/r',
    },
    'transcription.completed',
  ),
  ...['1', '2'].map((SequenceId) =>
    form(
      `content ${SequenceId} of a live transcription`,
      {
        ...ACCOUNT,
        CallSid: CALL.CallSid,
        TranscriptionSid: 'GT00000000000000000000000000000001',
        TranscriptionEvent: 'transcription-content',
        TranscriptionData: '{"transcript":"hi"}',
        SequenceId,
        Timestamp: '2026-02-24T10:00:00.000Z',
      },
      'transcription.transcription-content',
    ),
  ),
  form(
    'an answering machine',
    { ...ACCOUNT, CallSid: CALL.CallSid, AnsweredBy: 'machine_start', MachineDetectionDuration: '2990' },
    'request',
  ),
  ...['stream-started', 'stream-stopped'].map((StreamEvent) =>
    form(
      StreamEvent,
      {
        ...ACCOUNT,
        CallSid: CALL.CallSid,
        StreamSid: 'MZ00000000000000000000000000000001',
        StreamEvent,
        Timestamp: '2026-02-24T10:00:00Z',
      },
      `stream.${StreamEvent}`,
    ),
  ),
  ...[
    'conference-start',
    'participant-join',
    'participant-join',
    'participant-mute',
    'participant-hold',
    'participant-leave',
    'conference-end',
  ].map((StatusCallbackEvent, index) =>
    form(
      `${StatusCallbackEvent}, number ${index}`,
      {
        ...CONFERENCE,
        StatusCallbackEvent,
        SequenceNumber: String(index),
        Timestamp: at(index),
        CallSid: CALL.CallSid,
        Muted: 'false',
        Hold: 'false',
        Coaching: 'false',
        StartConferenceOnEnter: 'true',
        EndConferenceOnExit: 'false',
      },
      `conference.${StatusCallbackEvent}`,
    ),
  ),
  ...[
    'room-created',
    'participant-connected',
    'track-added',
    'recording-started',
    'recording-completed',
    'participant-disconnected',
    'room-ended',
  ].map((StatusCallbackEvent, index) =>
    form(
      `${StatusCallbackEvent} of a video room`,
      {
        ...ROOM,
        StatusCallbackEvent,
        SequenceNumber: String(index),
        Timestamp: `2026-02-24T10:00:0${index}.123Z`,
        ParticipantSid: 'PA00000000000000000000000000000001',
        ParticipantIdentity: 'ann',
      },
      `room.${StatusCallbackEvent}`,
    ),
  ),
  ...['10', '60'].map((PercentageDone) =>
    form(
      `a composition that is ${PercentageDone} % done`,
      {
        ...ACCOUNT,
        CompositionSid: 'CJ00000000000000000000000000000001',
        RoomSid: ROOM.RoomSid,
        StatusCallbackEvent: 'composition-progress',
        PercentageDone,
        Timestamp: '2026-02-24T10:00:00.000Z',
      },
      'composition.composition-progress',
    ),
  ),
];

const MESSAGES: Documented[] = [
  form(
    'an inbound message',
    { ...MESSAGE, SmsStatus: 'received', Body: "it's me", NumMedia: '0', NumSegments: '1' },
    'message.received',
  ),
  ...['queued', 'sending', 'sent', 'delivered', 'undelivered', 'failed', 'read'].map((MessageStatus) =>
    form(
      `a message that is ${MessageStatus}`,
      { ...MESSAGE, MessageStatus, SmsStatus: MessageStatus },
      `message.${MessageStatus}`,
    ),
  ),
  form(
    'a message in a conversation',
    {
      ...ACCOUNT,
      EventType: 'onMessageAdded',
      ConversationSid: 'CH1',
      MessageSid: 'IM1',
      Index: '1',
      Body: 'hello',
      Author: 'ann',
      DateCreated: '2026-02-24T10:00:00.000Z',
    },
    'onMessageAdded',
  ),
  form(
    'a task',
    {
      ...ACCOUNT,
      EventType: 'task.created',
      WorkspaceSid: 'WS1',
      TaskSid: 'WT1',
      TimestampMs: '1770000000000',
    },
    'task.created',
  ),
];

const streamed = [1, 2].map((index) => ({
  specversion: '1.0',
  type: 'com.twilio.messaging.message.delivered',
  source: '/2010-04-01/Accounts/AC1/Messages/SM1.json',
  id: `EZ0000000000000000000000000000000${index}`,
  time: '2026-02-24T10:00:00.000Z',
  data: { messageSid: 'SM1' },
}));

export const TWILIO: readonly Documented[] = [
  ...VOICE,
  ...CALLBACKS,
  ...MESSAGES,
  {
    name: 'a list of streamed events',
    body: JSON.stringify(streamed),
    headers: { 'content-type': 'application/json' },
    isHashed: true,
    types: streamed.map(({ type }) => type),
  },
];
