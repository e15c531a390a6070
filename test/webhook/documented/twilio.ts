// The requests that Twilio documents, by what they are about. Each is an event of its own.

import type { Documented } from './request.ts';
import { ACCOUNT, form } from './twilio_form.ts';
import { MESSAGES } from './twilio_messages.ts';

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
const at = (second: number) => new Date(1_770_000_000_000 + second * 1_000).toUTCString();

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
  ...['1', '2'].map((QueuePosition) =>
    form(
      `the wait of an Enqueue at place ${QueuePosition}`,
      {
        ...IN_PROGRESS,
        QueueSid: 'QU1',
        QueuePosition,
        QueueTime: '5',
        AvgQueueTime: '9',
        CurrentQueueSize: '2',
      },
      'voice.request',
    ),
  ),
  form(
    'the call that leaves a queue',
    {
      ...IN_PROGRESS,
      QueueSid: 'QU1',
      QueueTime: '9',
      DequeingCallSid: 'CA00000000000000000000000000000003',
    },
    'voice.request',
  ),
  form(
    'a call whose answering machine is known',
    { ...IN_PROGRESS, AnsweredBy: 'human', MachineDetectionDuration: '1200' },
    'voice.request',
  ),
  form(
    'a Pay that ended',
    {
      ...IN_PROGRESS,
      Result: 'success',
      PaymentToken: 'tok',
      PaymentCardNumber: 'xxxx-4242',
      PaymentCardType: 'visa',
    },
    'voice.request',
  ),
  form('a Refer', { ...IN_PROGRESS, ReferTransferTarget: 'sip:a@b.example' }, 'voice.request'),
  form(
    'a Connect that ended',
    { ...IN_PROGRESS, VirtualAgentStatus: 'completed', VirtualAgentProvider: 'x' },
    'voice.request',
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
  ...['needed', 'received', 'authorized'].map((For, index) =>
    form(
      `a Pay at step ${index}`,
      { ...ACCOUNT, CallSid: CALL.CallSid, PaymentSid: 'PK1', For, Attempt: '1', PartialResult: 'true' },
      'request',
    ),
  ),
  ...['siprec-started', 'siprec-stopped'].map((SiprecEvent) =>
    form(
      SiprecEvent,
      { ...ACCOUNT, CallSid: CALL.CallSid, SiprecSid: 'SR1', SiprecEvent },
      `siprec.${SiprecEvent}`,
    ),
  ),
  ...['transcription-started', 'transcription-stopped', 'transcription-error'].map(
    (TranscriptionEvent, index) =>
      form(
        TranscriptionEvent,
        {
          ...{ ...ACCOUNT, CallSid: CALL.CallSid, TranscriptionSid: 'GT00000000000000000000000000000001' },
          ...{ TranscriptionEvent, SequenceId: String(index + 5), Timestamp: '2026-02-24T10:00:00.000Z' },
        },
        `transcription.${TranscriptionEvent}`,
      ),
  ),
  ...['received', 'delivered', 'failed', 'canceled'].map((FaxStatus) =>
    form(
      `a fax that is ${FaxStatus}`,
      { ...ACCOUNT, FaxSid: 'FX1', FaxStatus, From: '+1', To: '+2' },
      `fax.${FaxStatus}`,
    ),
  ),
  form(
    'an error of the account',
    {
      ...{ AccountSid: ACCOUNT.AccountSid, Sid: 'NO1', ParentAccountSid: '', Level: 'ERROR' },
      ...{
        Timestamp: '2026-02-24T10:00:00.000Z',
        PayloadType: 'application/json',
        Payload: '{"error_code":"11200"}',
      },
    },
    'request',
  ),
  ...['stream-started', 'stream-stopped', 'stream-error'].map((StreamEvent) =>
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
    'participant-unhold',
    'participant-unmute',
    'participant-modify',
    'participant-speech-start',
    'participant-speech-stop',
    'announcement-end',
    'announcement-fail',
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
    'participant-reconnecting',
    'participant-reconnected',
    'track-added',
    'track-enabled',
    'track-disabled',
    'track-removed',
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
        Timestamp: `2026-02-24T10:00:${String(index).padStart(2, '0')}.123Z`,
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
  {
    name: 'one event of Verify',
    body: JSON.stringify({
      account_sid: 'AC1',
      event_id: 'VE1',
      type: 'factor.verified',
      uid: 'YF1',
      timestamp: '2026-02-24T10:00:00Z',
    }),
    headers: { 'content-type': 'application/json' },
    isHashed: true,
    types: ['request'],
  },
];
